"""Shards as threads of one process: the exchanges of real shards, without their start."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch


class Exchange:
    """Where the threads of `count` shards meet."""

    def __init__(self, count):
        self.barrier = threading.Barrier(count, timeout=60)
        self.slots = [None] * count


@dataclass(frozen=True, eq=False)
class ThreadShards:
    index: int
    count: int
    exchange: Exchange

    def _all(self, values):
        self.exchange.slots[self.index] = values.clone()
        self.exchange.barrier.wait()
        found = list(self.exchange.slots)
        self.exchange.barrier.wait()
        return found

    def sum(self, values):
        total = torch.zeros_like(values)
        for part in self._all(values):
            total = total + part
        return total

    def gather(self, rows):
        return torch.cat(self._all(rows))


def in_threads(count, function):
    """The results of `function(shards)` in each of `count` shards."""
    exchange = Exchange(count)

    def run(index):
        try:
            return function(ThreadShards(index, count, exchange))
        except BaseException:
            exchange.barrier.abort()  # the other threads end as well
            raise

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(run, index) for index in range(count)]
    errors = [f.exception() for f in futures if f.exception() is not None]
    own = [e for e in errors if not isinstance(e, threading.BrokenBarrierError)]
    if errors:
        raise (own or errors)[0]
    return [future.result() for future in futures]

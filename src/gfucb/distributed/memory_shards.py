"""Shards as processes of one machine that exchange numbers through shared memory."""

from __future__ import annotations

import mmap
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import GFUCBError, InvalidInputError
from gfucb.core.shards import of_each

# All buffers together have at most this many bytes, and each at most this many.
LARGEST_FILE, LARGEST_BUFFER = 2**25, 2**19
# A shard that waits looks again at once so many times, then lets others run for so long, and then
# sleeps between two looks. Steps of a fit differ by milliseconds between shards, and two hardware
# threads share one core: who looks all the time slows down the shard for which it waits.
SPINS, YIELD_SECONDS, SLEEP_SECONDS = 20, 100e-6, 50e-6
CACHE_LINE = 64
# With more numbers than this for each process, they share the work of a sum.
LARGE = 256
SCHEME = "memory://"
# Where processes see the writes of another one in the order in which it made them.
ORDERED_MACHINES = ("x86_64", "AMD64")
SHARED_DIRECTORY = Path("/dev/shm")


class MemoryShards:
    """The processes that have opened one file, see `meeting_address`.

    A process writes its numbers to a buffer of its own, then the number of the exchange, and waits
    until all others have. There are two buffers each, used in turn: who writes to one again has
    seen that all have read the numbers in it, because they have begun the next exchange. An
    exchange takes microseconds, where sockets take about a millisecond with 16 processes.
    """

    def __init__(self, path: str | Path, *, index: int, count: int, timeout: float) -> None:
        if not 0 <= index < count:
            raise InvalidInputError(f"index must be from 0 to count - 1 = {count - 1}, got {index}")
        self.index, self.count, self.timeout = index, count, timeout
        self._size = _buffer_size(count)
        with Path(path).open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _file_size(count))
        numbers = np.frombuffer(self._memory, np.int64, count * CACHE_LINE // 8)
        self._exchanges = numbers.reshape(count, -1)[:, 0]
        shape = (2, count, self._size)
        self._buffers = np.frombuffer(self._memory, np.uint8, offset=count * CACHE_LINE)
        self._buffers = self._buffers[: int(np.prod(shape))].reshape(shape)
        self._exchange = 0

    def sum(self, values: Tensor) -> Tensor:
        """The sum over processes, the same bits in each of them."""
        flat = values.detach().cpu().contiguous().flatten()
        total = torch.empty_like(flat)
        step = self._size // flat.element_size()
        for first in range(0, max(1, len(flat)), step):
            own = flat[first : first + step].numpy()
            total[first : first + step] = torch.from_numpy(self._sum(own))
        return total.view(values.shape).to(values.device)

    def _sum(self, values: np.ndarray) -> np.ndarray:
        """The sum of values [n] that fit into a buffer."""
        found = self._all(values)
        if len(values) < LARGE * self.count:
            return found.sum(0, dtype=values.dtype)
        # Each process adds up one part, and all read the sums: they read 2 n numbers instead of
        # n for each process.
        width = -(-len(values) // self.count)
        part = found[:, self.index * width : (self.index + 1) * width].sum(0, dtype=values.dtype)
        padded = np.zeros(width, values.dtype)
        padded[: len(part)] = part
        return self._all(padded).flatten()[: len(values)]

    def gather(self, rows: Tensor) -> Tensor:
        """The rows [n, ...] of all processes."""
        lengths = [int(length) for length in of_each(self, len(rows)).squeeze(1).tolist()]
        most, width = max(lengths), rows[:1].numel() if len(rows) else int(np.prod(rows.shape[1:]))
        if most == 0:
            return rows
        flat = rows.detach().cpu().contiguous().flatten()
        padded = flat.new_zeros(most * width)
        padded[: len(flat)] = flat
        found = padded.new_empty(self.count, most * width)
        step = self._size // padded.element_size()
        for first in range(0, max(1, most * width), step):
            part = self._all(padded[first : first + step].numpy())
            found[:, first : first + step] = torch.from_numpy(part)
        parts = [own[: length * width] for own, length in zip(found, lengths, strict=True)]
        shape = (sum(lengths), *rows.shape[1:])
        return torch.cat(parts).view(shape).to(rows.device)

    def _all(self, values: np.ndarray) -> np.ndarray:
        """The values [n] of all processes, a view [shard, n]: valid until the next call but one."""
        self._exchange += 1
        size = values.nbytes
        buffers = self._buffers[self._exchange % 2]
        buffers[self.index, :size] = np.ascontiguousarray(values).view(np.uint8)
        self._exchanges[self.index] = self._exchange
        self._wait()
        return buffers[:, :size].view(values.dtype)

    def _wait(self) -> None:
        for _ in range(SPINS):
            if int(self._exchanges.min()) >= self._exchange:
                return
        begin = time.monotonic()
        while int(self._exchanges.min()) < self._exchange:
            waited = time.monotonic() - begin
            if waited > self.timeout:
                raise GFUCBError(f"a shard has not answered for {self.timeout:g} seconds")
            if waited < YIELD_SECONDS:
                os.sched_yield()
            else:
                time.sleep(SLEEP_SECONDS)


@contextmanager
def meeting_address(count: int) -> Iterator[str]:
    """The address at which `count` processes of this machine meet, see `connected`.

    They exchange numbers through memory if they can, and through sockets otherwise.
    """
    parent = SHARED_DIRECTORY if os.access(SHARED_DIRECTORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="gfucb-shards-", dir=parent) as directory:
        path = Path(directory) / "exchange"
        if platform.machine() not in ORDERED_MACHINES or not hasattr(os, "sched_yield"):
            yield f"file://{path}"
        else:
            with path.open("wb") as file:
                file.truncate(_file_size(count))
            yield f"{SCHEME}{path}"


def _buffer_size(count: int) -> int:
    size = min(LARGEST_BUFFER, LARGEST_FILE // (2 * count))
    return max(CACHE_LINE, size - size % CACHE_LINE)


def _file_size(count: int) -> int:
    return count * CACHE_LINE + 2 * count * _buffer_size(count)

"""Shards as processes that exchange numbers through torch.distributed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.shards import Shards
from gfucb.distributed.memory_shards import SCHEME, MemoryShards

# An exchange that takes longer than this has lost a shard.
TIMEOUT_SECONDS = 300.0
# Gloo moves tensors of the CPU, NCCL those of GPUs.
BACKENDS = "cpu:gloo,cuda:nccl"


@dataclass(frozen=True, eq=False)
class ProcessShards:
    """The processes of the default group of torch.distributed; see `connected`."""

    index: int
    count: int

    def sum(self, values: Tensor) -> Tensor:
        """The sum over processes, the same bits in each of them."""
        total = values.detach().clone().contiguous()
        dist.all_reduce(total)
        return total

    def gather(self, rows: Tensor) -> Tensor:
        """The rows [n, ...] of all processes."""
        rows = rows.detach().contiguous()
        sizes = [torch.zeros(1, dtype=torch.int64, device=rows.device) for _ in range(self.count)]
        dist.all_gather(sizes, torch.tensor([len(rows)], device=rows.device))
        lengths = [int(size) for size in sizes]
        if max(lengths) == 0:
            return rows
        # Every process sends as many rows as the largest one has.
        padded = rows.new_zeros(max(lengths), *rows.shape[1:])
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in range(self.count)]
        dist.all_gather(parts, padded)
        return torch.cat([part[:length] for part, length in zip(parts, lengths, strict=True)])


@contextmanager
def connected(
    address: str | None = None,
    *,
    index: int | None = None,
    count: int | None = None,
    timeout: float = TIMEOUT_SECONDS,
) -> Iterator[Shards]:
    """The shards of this process and of all others that give the same address.

    Args:
        address: where the processes meet, such as "tcp://host:29500" or "file:///shared/name", or
            a `meeting_address` of one machine. By default that of the environment, which `torchrun`
            sets.
        index: of this process; by default that of the environment.
        count: the number of processes; by default that of the environment.
        timeout: an exchange that takes more seconds has failed.
    """
    index = _from_environment("RANK", index)
    count = _from_environment("WORLD_SIZE", count)
    if not 0 <= index < count:
        raise InvalidInputError(f"index must be from 0 to count - 1 = {count - 1}, got {index}")
    if address is not None and address.startswith(SCHEME):
        path = address.removeprefix(SCHEME)
        yield MemoryShards(path, index=index, count=count, timeout=timeout)
        return
    dist.init_process_group(
        BACKENDS if torch.cuda.is_available() else "gloo",
        init_method=address or "env://",
        rank=index,
        world_size=count,
        timeout=timedelta(seconds=timeout),
    )
    try:
        yield ProcessShards(index, count)
    finally:
        dist.destroy_process_group()


def _from_environment(name: str, given: int | None) -> int:
    if given is not None:
        return given
    value = os.environ.get(name, "")
    if not value.isdigit():
        raise InvalidInputError(
            f"the environment has no {name}; start the program with torchrun, or pass address, "
            "index and count"
        )
    return int(value)

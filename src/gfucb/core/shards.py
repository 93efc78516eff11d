"""The shards of one agent: processes that hold different tasks, and sums over all of them.

Losses, evidences and bounds are sums over tasks. Code that needs such a sum asks the shards of its
data for it. In one process every method returns what it is given, so there is one algorithm for
one process and for many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor


@runtime_checkable
class Shards(Protocol):
    """The shards of an agent, of which this process is one.

    All shards call the methods in the same order, each with its own numbers, and all get the same
    result, to the last bit. A call in which a shard is missing raises an error in the others.

    Task t belongs to the shard t % count, where it has the number t // count.
    """

    @property
    def index(self) -> int:
        """The number of this shard, from 0."""

    @property
    def count(self) -> int:
        """The number of shards."""

    def sum(self, values: Tensor) -> Tensor:
        """The sum over shards of tensors of one shape."""

    def gather(self, rows: Tensor) -> Tensor:
        """The rows [n, ...] of all shards, one shard after another; n may differ."""


@dataclass(frozen=True)
class OneShard(Shards):
    """An agent in one process."""

    index: int = 0
    count: int = 1

    def sum(self, values: Tensor) -> Tensor:
        """The values themselves."""
        return values

    def gather(self, rows: Tensor) -> Tensor:
        """The rows themselves."""
        return rows


ONE_SHARD = OneShard()


def totals(shards: Shards, *numbers: float) -> tuple[float, ...]:
    """Sums over shards of a few numbers, in one call."""
    if shards.count == 1:
        return numbers
    return tuple(shards.sum(torch.tensor(numbers, dtype=torch.float64)).tolist())


def of_each(shards: Shards, *numbers: float) -> Tensor:
    """A few numbers of each shard, in one call: [shard, number]."""
    own = torch.tensor([numbers], dtype=torch.float64)
    if shards.count == 1:
        return own
    # A sum in which each shard has a row of its own: one exchange, where a gather takes two.
    rows = own.new_zeros(shards.count, len(numbers))
    rows[shards.index] = own
    return shards.sum(rows)


def largest(shards: Shards, *numbers: float) -> tuple[float, ...]:
    """The largest over shards of each of a few numbers, in one call."""
    if shards.count == 1:
        return numbers
    return tuple(of_each(shards, *numbers).max(0).values.tolist())


def first_largest(shards: Shards, number: float) -> tuple[float, int]:
    """The largest over shards of a number, and the first shard that has it."""
    if shards.count == 1:
        return number, 0
    numbers = of_each(shards, number).squeeze(1)
    return float(numbers.max()), int(numbers.argmax())


def mean_of_all(shards: Shards, values: Tensor) -> Tensor:
    """The mean over the values [n, ...] of all shards, which have some: [...]."""
    if shards.count == 1:
        return values.mean(0)
    sums = torch.cat([values.sum(0).flatten(), values.new_tensor([len(values)])])
    sums = shards.sum(sums)
    return (sums[:-1] / sums[-1]).view(values.shape[1:])


def in_any(shards: Shards, flag: bool) -> bool:
    """Whether the flag is set in any shard."""
    return bool(totals(shards, float(flag))[0])


def num_distinct(tasks: Tensor, shards: Shards) -> int:
    """The number of distinct tasks among the tasks [n] of all shards."""
    return int(totals(shards, len(tasks.unique()))[0])


def global_tasks(shards: Shards, tasks: Tensor) -> Tensor:
    """The numbers of a shard's tasks [n] among the tasks of all shards."""
    return tasks * shards.count + shards.index


def num_own_tasks(num_tasks: int, index: int, count: int) -> int:
    """How many of the tasks 0 .. num_tasks - 1 belong to the shard `index` of `count`."""
    return len(range(index, num_tasks, count))

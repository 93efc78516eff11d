"""Rewards of items with ids as sufficient statistics: one row for each pair of task and item."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.core.linalg import task_sums
from gfucb.core.shards import ONE_SHARD, Shards

# A product of dense matrices takes about this many cells in the time of one gathered row.
CELLS_PER_PAIR = 20


@dataclass(frozen=True, eq=False)
class ItemPairs:
    """Count and mean of the targets of every pair of task and item that occurs, sorted by task.

    With Gaussian noise nothing else matters, except the squares within pairs for the noise.

    Attributes:
        tasks: [pair].
        items: [pair].
        counts: number of samples, [pair], float64.
        means: mean target, [pair].
        num_tasks: tasks are numbered 0 .. num_tasks - 1.
        num_items: items are numbered 0 .. num_items - 1.
        within: sum of squared differences of samples from their mean, [pair].
        shards: of which this process holds one; all have the same items.
    """

    tasks: Tensor
    items: Tensor
    counts: Tensor
    means: Tensor
    num_tasks: int
    num_items: int
    within: Tensor
    shards: Shards = ONE_SHARD

    @classmethod
    def of(
        cls,
        items: Tensor,
        tasks: Tensor,
        targets: Tensor,
        *,
        num_items: int,
        num_tasks: int,
        shards: Shards = ONE_SHARD,
    ) -> ItemPairs:
        """The pairs of samples: items, tasks and targets are [sample]."""
        keys, pair_of = torch.unique(tasks * num_items + items, return_inverse=True)
        targets = targets.to(torch.float64)
        counts = torch.bincount(pair_of, minlength=len(keys)).to(torch.float64)
        means = targets.new_zeros(len(keys)).index_add(0, pair_of, targets) / counts
        within = torch.zeros_like(means).index_add(0, pair_of, (targets - means[pair_of]).square())
        pair_tasks = torch.div(keys, num_items, rounding_mode="floor")
        items = keys % num_items
        return cls(pair_tasks, items, counts, means, num_tasks, num_items, within, shards)

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def is_dense(self) -> bool:
        """Whether products of dense matrices [task, item] are cheaper than work for each pair."""
        return self.num_tasks * self.num_items <= CELLS_PER_PAIR * len(self)

    def by_task(self, weights: Tensor, values: Tensor) -> Tensor:
        """Sum over the pairs of a task of weight [pair] times the row of its item in `values`.

        [pair], [item, column] -> [task, column], without an intermediate [pair, column].
        """
        return self._matrix(weights) @ values

    def by_item(self, weights: Tensor, values: Tensor) -> Tensor:
        """Sum over the pairs of an item of weight [pair] times the row of its task in `values`.

        [pair], [task, column] -> [item, column], over all shards.
        """
        return self.shards.sum(self._matrix(weights).t() @ values)

    def item_sums(self, values: Tensor) -> Tensor:
        """Sum values [pair] by item, over all shards: [item]."""
        return self.shards.sum(task_sums(values, self.items, self.num_items))

    def item_counts(self) -> Tensor:
        """The number of pairs of each item, over all shards: [item]."""
        return self.shards.sum(torch.bincount(self.items, minlength=self.num_items))

    def total(self, *values: Tensor) -> Tensor:
        """Sums over the pairs of all shards of values [pair]: [value]."""
        return self.shards.sum(torch.stack([value.sum() for value in values]))

    def _matrix(self, weights: Tensor) -> Tensor:
        """Weights [pair] as a matrix [task, item], dense or sparse."""
        size = (self.num_tasks, self.num_items)
        if self.is_dense:
            return weights.new_zeros(size).index_put((self.tasks, self.items), weights)
        indices = torch.stack([self.tasks, self.items])
        return torch.sparse_coo_tensor(indices, weights, size, check_invariants=False)

    def find(self, tasks: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """Row of each pair (task, item), and whether it occurs; the row is arbitrary if not."""
        if not len(self):
            return torch.zeros_like(items), torch.zeros_like(items, dtype=torch.bool)
        keys, wanted = self.tasks * self.num_items + self.items, tasks * self.num_items + items
        rows = torch.searchsorted(keys, wanted).clamp_max(len(self) - 1)
        return rows, keys[rows] == wanted

    def where(self, kept: Tensor) -> ItemPairs:
        """The pairs with `kept` [pair]."""
        columns = (self.tasks, self.items, self.counts, self.means)
        tasks, items, counts, means = (column[kept] for column in columns)
        within = self.within[kept]
        return replace(self, tasks=tasks, items=items, counts=counts, means=means, within=within)

    def of_tasks(self, kept: Tensor) -> ItemPairs:
        """The pairs of the tasks with `kept` [task], numbered anew in the same order."""
        pairs = self.where(kept[self.tasks])
        numbers = kept.cumsum(0) - 1
        return replace(pairs, tasks=numbers[pairs.tasks], num_tasks=int(kept.sum()))

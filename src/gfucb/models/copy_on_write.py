"""A tensor with one row per task, of which a few rows change at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class CopyOnWriteRows:
    """[task, ...] as a value: a change of a few rows shares the others instead of copying them.

    Attributes:
        base: [task, ...].
        changed: rows that replace those of the base, by task. They are at most half of all rows,
            so a change of one row writes two rows on average, for any number of tasks.
    """

    base: Tensor
    changed: Mapping[int, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, tasks: Tensor) -> Tensor:
        """The rows of these tasks [n]: [n, ...]."""
        rows = self.base[tasks]
        if self.changed:
            for index, task in enumerate(tasks.tolist()):
                if task in self.changed:
                    rows[index] = self.changed[task]
        return rows

    @cached_property
    def whole(self) -> Tensor:
        """All rows as one tensor."""
        if not self.changed:
            return self.base
        # In the memory layout of the base: in another one solves round differently, and a
        # restored agent would not continue to the last bit.
        rows = self.base.clone()
        rows[list(self.changed)] = torch.stack(list(self.changed.values()))
        return rows

    def replaced(self, tasks: Tensor, rows: Tensor) -> CopyOnWriteRows:
        """The same with other rows [n, ...] for the tasks [n], which are distinct."""
        # A view would hold the memory of all rows for as long as one of them is in use.
        updates = {task: row.clone() for task, row in zip(tasks.tolist(), rows, strict=True)}
        after = CopyOnWriteRows(self.base, {**self.changed, **updates})
        return after if 2 * len(after.changed) <= len(self) else CopyOnWriteRows(after.whole)

    def extended(self, rows: Tensor) -> CopyOnWriteRows:
        """The same with rows [n, ...] for n more tasks at the end."""
        return CopyOnWriteRows(torch.cat([self.whole, rows]))

"""A tensor with one row per task, of which a few rows change at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class CopyOnWriteRows:
    """[task, ...] as a value: a change of a few rows shares the others instead of copying them.

    Attributes:
        base: rows of the first tasks, [task, ...].
        changed: rows that replace those of the base, and rows of tasks after them, by task. They
            are at most half of all rows, so a change of one row writes two rows on average, for
            any number of tasks.
        num_added: how many tasks there are after those of the base; all of them are changed.
    """

    base: Tensor
    changed: Mapping[int, Tensor] = field(default_factory=dict)
    num_added: int = 0

    def __len__(self) -> int:
        return len(self.base) + self.num_added

    @property
    def shape(self) -> tuple[int, ...]:
        """Of all rows as one tensor."""
        return (len(self), *self.base.shape[1:])

    def __getitem__(self, tasks: Tensor) -> Tensor:
        """The rows of these tasks [n]: [n, ...]; they must not be written to."""
        if self._are_all(tasks):
            return self.whole
        rows = self.base[tasks.clamp(max=len(self.base) - 1) if self.num_added else tasks]
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
        if self.num_added:
            rows = torch.cat([rows, rows.new_empty(self.num_added, *rows.shape[1:])])
        rows[list(self.changed)] = torch.stack(list(self.changed.values()))
        return rows

    def _are_all(self, tasks: Tensor) -> bool:
        """Whether these are all tasks in their order: then no row has to be copied."""
        return len(tasks) == len(self) and torch.equal(
            tasks, torch.arange(len(self), device=tasks.device)
        )

    def replaced(self, tasks: Tensor, rows: Tensor) -> CopyOnWriteRows:
        """The same with other rows [n, ...] for the tasks [n], which are distinct."""
        if self._are_all(tasks):
            return CopyOnWriteRows(rows.contiguous())
        return self._with(tasks.tolist(), rows, self.num_added)

    def extended(self, rows: Tensor) -> CopyOnWriteRows:
        """The same with rows [n, ...] for n more tasks at the end."""
        if len(self.base) == 0:
            return CopyOnWriteRows(rows)
        return self._with(range(len(self), len(self) + len(rows)), rows, self.num_added + len(rows))

    def _with(self, tasks: Sequence[int], rows: Tensor, num_added: int) -> CopyOnWriteRows:
        # A view would hold the memory of all rows for as long as one of them is in use.
        updates = {task: row.clone() for task, row in zip(tasks, rows, strict=True)}
        after = CopyOnWriteRows(self.base, {**self.changed, **updates}, num_added)
        return after if 2 * len(after.changed) <= len(after) else CopyOnWriteRows(after.whole)

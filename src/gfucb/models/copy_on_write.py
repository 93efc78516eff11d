"""A tensor of one row a task, of which a few rows change at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class CopyOnWriteRows:
    """[task, ...] as a value: where a few rows change, the others are shared and not copied.

    Attributes:
        base: [task, ...].
        changed: what stands in place of rows of the base, by task. They are never more than half
            of all, so for each row that changes two are copied on average, however many there are.
    """

    base: Tensor
    changed: Mapping[int, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, tasks: Tensor) -> Tensor:
        """The rows of these tasks [n]: [n, ...]."""
        rows = self.base[tasks]
        if self.changed:
            for place, task in enumerate(tasks.tolist()):
                if task in self.changed:
                    rows[place] = self.changed[task]
        return rows

    @cached_property
    def whole(self) -> Tensor:
        """All rows as one tensor."""
        if not self.changed:
            return self.base
        # Laid out as the base: in another order solves round differently, and a restored agent
        # would not go on to the last bit.
        rows = self.base.clone()
        rows[list(self.changed)] = torch.stack(list(self.changed.values()))
        return rows

    def replaced(self, tasks: Tensor, rows: Tensor) -> CopyOnWriteRows:
        """The same with other rows [n, ...] for these tasks [n], each of them once."""
        # A view would keep all rows alive for as long as one of them is in use.
        news = {task: row.clone() for task, row in zip(tasks.tolist(), rows, strict=True)}
        after = CopyOnWriteRows(self.base, {**self.changed, **news})
        return after if 2 * len(after.changed) <= len(self) else CopyOnWriteRows(after.whole)

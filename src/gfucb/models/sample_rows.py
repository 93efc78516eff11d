"""The features of samples by task, in memory that grows with the number of samples."""

from __future__ import annotations

import torch
from torch import Tensor


class SampleRows:
    """Rows of features in the order in which they came; each knows the row of its task before it.

    Rows are added at the end and never change, so that values which hold the first `size` rows may
    share one table. Features of a network in single precision are stored so, without loss.

    Attributes:
        size: the number of rows.
    """

    def __init__(self, feature_dim: int, device: torch.device | str, capacity: int = 64) -> None:
        self.size = 0
        self._features = torch.empty(capacity, feature_dim, dtype=torch.float32, device=device)
        self._tasks = torch.empty(capacity, dtype=torch.int64, device=device)
        self._before = torch.empty(capacity, dtype=torch.int64, device=device)

    def first(self, size: int) -> SampleRows:
        """A table for those who hold `size` rows: this one, or a copy if others have added more."""
        if size == self.size:
            return self
        same = SampleRows(self._features.shape[1], self._features.device, capacity=max(64, size))
        for name in ("_features", "_tasks", "_before"):
            setattr(same, name, getattr(self, name)[: max(64, size)].clone())
        same.size = size
        return same

    def features(self, size: int) -> Tensor:
        """The first rows, [size, feature]."""
        return self._features[:size]

    def tasks(self, size: int) -> Tensor:
        """Their tasks, [size]."""
        return self._tasks[:size]

    def append(self, features: Tensor, tasks: Tensor, last: Tensor) -> Tensor:
        """Add rows [n, feature] of tasks [n]; return the last row of each task, [task].

        `last` [task] are the last rows before, -1 where there is none.
        """
        end = self.size + len(tasks)
        self._reserve(end, features)
        rows = torch.arange(self.size, end, device=tasks.device)
        order = tasks.argsort(stable=True)
        ordered, positions = tasks[order], rows[order]
        is_first = torch.ones_like(ordered, dtype=torch.bool)
        is_first[1:] = ordered[1:] != ordered[:-1]
        before = torch.where(is_first, last[ordered], positions.roll(1))
        self._features[self.size : end] = features.to(self._features.dtype)
        self._tasks[self.size : end] = tasks
        self._before[positions] = before
        self.size = end
        # Of equal indices the last one counts on a CPU only; the largest row is the last one.
        return last.scatter_reduce(0, tasks, rows, "amax")

    def gather(self, last: Tensor, most: int) -> tuple[Tensor, Tensor]:
        """The rows that end at `last` [n]: float64 [n, slot, feature], and present [n, slot].

        A task has at most `most` rows; absent slots are zero.
        """
        found = []
        for _ in range(most):
            found.append(last)
            last = torch.where(last >= 0, self._before[last.clamp_min(0)], -1)
        rows = torch.stack(found, dim=1) if found else last.new_zeros(len(last), 0)
        present = rows >= 0
        features = self._features[rows.clamp_min(0)].to(torch.float64)
        return features * present.unsqueeze(-1), present

    def _reserve(self, size: int, features: Tensor) -> None:
        is_double = self._features.dtype == torch.float64
        if not is_double and not torch.equal(features.to(torch.float32).to(features), features):
            self._features = self._features.to(torch.float64)
        if size <= len(self._tasks):
            return
        capacity = max(size, 2 * len(self._tasks))
        for name in ("_features", "_tasks", "_before"):
            old = getattr(self, name)
            new = old.new_empty(capacity, *old.shape[1:])
            new[: self.size] = old[: self.size]
            setattr(self, name, new)

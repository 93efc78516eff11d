"""Growing tables: distinct rows per task, and columns of numbers."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class DistinctRows:
    """A growing table of tensors that stores each distinct (task, row) pair once.

    Where states recur, as in finite environments, the length of the table is bounded by the number
    of states, and so is the cost of a plan, for any number of episodes.
    """

    def __init__(self) -> None:
        self._index: dict[tuple[int, bytes], int] = {}
        self._tasks = GrowingColumn(np.int64)
        self._rows: NDArray[np.generic] | None = None  # longer than what it holds
        self._stacked: tuple[Tensor, Tensor] | None = None
        self._flat: Tensor | None = None
        self._arrays: tuple[Floats, Integers] | None = None

    def __len__(self) -> int:
        return self._tasks.size

    def add(self, tasks: list[int], rows: NDArray[np.generic]) -> list[int]:
        """Append the new ones of rows [n, ...] of tasks [n]; return the index of each, [n]."""
        indices = []
        for task, row in zip(tasks, rows, strict=True):
            index = self._index.setdefault((task, (row + 0).tobytes()), len(self))
            if index == len(self):
                self._append(task, row)
            indices.append(index)
        return indices

    def _append(self, task: int, row: NDArray[np.generic]) -> None:
        # Views of earlier rows stay as they are: rows do not change, and a larger array is new.
        size = len(self)
        if self._rows is None:
            self._rows = np.empty((8, *row.shape), dtype=row.dtype)
        elif size == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[size] = row
        self._tasks.extend([task])
        self._stacked = self._flat = self._arrays = None

    def _stored(self) -> NDArray[np.generic]:
        assert self._rows is not None
        return self._rows[: len(self)]

    def find(self, tasks: list[int], rows: NDArray[np.generic]) -> Integers:
        """The indices of rows [n, ...] of tasks [n]; -1 for rows that are not stored: [n]."""
        keys = ((task, (row + 0).tobytes()) for task, row in zip(tasks, rows, strict=True))
        return np.array([self._index.get(key, -1) for key in keys], dtype=np.int64)

    @property
    def tasks(self) -> Tensor:
        """The task of each row, [row]."""
        return self._stack()[0]

    @property
    def rows(self) -> Tensor:
        """All rows, [row, ...]; the same tensor object until a row is added."""
        return self._stack()[1]

    @property
    def flat_rows(self) -> Tensor:
        """The first two axes of all rows merged; the same tensor object until a row is added."""
        if self._flat is None:
            self._flat = self.rows.flatten(0, 1)
        return self._flat

    def arrays(self) -> tuple[Floats, Integers]:
        """Rows in float64, [row, ...], and the task of each, [row]."""
        if self._arrays is None:
            rows = self._stored().astype(np.float64, copy=False)
            self._arrays = rows, self._task_numbers()
        return self._arrays

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of every row; the table must not be empty."""
        return self._stored().shape[1:]

    def row(self, index: int) -> Tensor:
        """One row, [...]."""
        return torch.from_numpy(self._stored()[index])

    def _stack(self) -> tuple[Tensor, Tensor]:
        if self._stacked is None:
            tasks = torch.from_numpy(self._task_numbers())
            self._stacked = tasks, torch.from_numpy(self._stored())
        return self._stacked

    def _task_numbers(self) -> Integers:
        return np.asarray(self._tasks.values, dtype=np.int64)


class GrowingColumn:
    """A column of numbers; appending one takes amortised constant time."""

    def __init__(self, dtype: type) -> None:
        self._values: NDArray[np.generic] = np.empty(64, dtype=dtype)
        self.size = 0

    @property
    def values(self) -> NDArray[np.generic]:
        """All numbers so far, as a view."""
        return self._values[: self.size]

    def extend(self, values: NDArray[np.generic] | list[int]) -> None:
        """Append numbers."""
        end = self.size + len(values)
        if end > len(self._values):
            grown = np.empty(max(end, 2 * len(self._values)), dtype=self._values.dtype)
            grown[: self.size] = self.values
            self._values = grown
        self._values[self.size : end] = values
        self.size = end

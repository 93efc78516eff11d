"""Transitions of one stage as counts: what a plan needs, however many episodes there were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gfucb.episodic.distinct_rows import Floats, GrowingColumn, Integers

# Numbers of pairs and of next states are below this bound.
_LIMIT = 1 << 24


class CellCounts:
    """How often each (task, pair, next state) occurred, with sums of rewards and of their squares.

    A pair is a cell and an action. The next state is -1 where an episode ended.
    """

    def __init__(self) -> None:
        self._index: dict[int, int] = {}
        self._codes = GrowingColumn(np.int64)
        self._counts = GrowingColumn(np.float64)
        self._rewards = GrowingColumn(np.float64)
        self._squares = GrowingColumn(np.float64)

    def add(self, tasks: Integers, pairs: Integers, next_states: Integers, rewards: Floats) -> None:
        """Count transitions [n]."""
        codes = (tasks * _LIMIT + pairs) * _LIMIT + next_states + 1
        distinct, inverse = np.unique(codes, return_inverse=True)
        new = [int(code) for code in distinct if int(code) not in self._index]
        for code in new:
            self._index[code] = len(self._index)
        self._codes.extend(new)
        for column in (self._counts, self._rewards, self._squares):
            column.extend(np.zeros(len(new)))
        rows = np.array([self._index[int(code)] for code in distinct], dtype=np.int64)
        size = len(distinct)
        self.counts[rows] += np.bincount(inverse, minlength=size)
        self.rewards[rows] += np.bincount(inverse, weights=rewards, minlength=size)
        self.squares[rows] += np.bincount(inverse, weights=rewards**2, minlength=size)

    @classmethod
    def together(cls, parts: Sequence[CellCounts]) -> CellCounts:
        """The rows of several counts, to read; what is in several of them has several rows."""
        found = cls()
        for part in parts:
            found._codes.extend(part._codes.values)
            found._counts.extend(part.counts)
            found._rewards.extend(part.rewards)
            found._squares.extend(part.squares)
        return found

    @property
    def tasks(self) -> Integers:
        """[row]."""
        return np.asarray(self._codes.values // (_LIMIT * _LIMIT), dtype=np.int64)

    @property
    def pairs(self) -> Integers:
        """[row]."""
        return np.asarray(self._codes.values // _LIMIT % _LIMIT, dtype=np.int64)

    @property
    def next_states(self) -> Integers:
        """-1 where an episode ended: [row]."""
        return np.asarray(self._codes.values % _LIMIT - 1, dtype=np.int64)

    @property
    def counts(self) -> Floats:
        """[row], as a view."""
        return self._counts.values  # type: ignore[return-value]

    @property
    def rewards(self) -> Floats:
        """Sums of rewards, [row], as a view."""
        return self._rewards.values  # type: ignore[return-value]

    @property
    def squares(self) -> Floats:
        """Sums of squared rewards, [row], as a view."""
        return self._squares.values  # type: ignore[return-value]

"""Observations and transitions of one stage, each observation stored once."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from gfucb.episodic.distinct_rows import Floats, GrowingColumn, Integers


class DistinctVectors:
    """A growing table of vectors that stores each distinct one once."""

    def __init__(self, length: int, dtype: np.dtype[np.generic]) -> None:
        self._rows: NDArray[np.generic] = np.empty((16, length), dtype=dtype)
        self._index: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._index)

    @property
    def rows(self) -> NDArray[np.generic]:
        """All vectors, [vector, column], as a view."""
        return self._rows[: len(self)]

    def add(self, rows: NDArray[np.generic]) -> Integers:
        """Append the new ones of rows [n, column]; return the index of each, [n]."""
        indices = np.empty(len(rows), dtype=np.int64)
        for position, row in enumerate(rows):
            size = len(self)
            index = self._index.setdefault(digest_of(row), size)
            if index == size:
                if size == len(self._rows):
                    self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
                self._rows[size] = row
            indices[position] = index
        return indices

    def find(self, rows: NDArray[np.generic]) -> Integers:
        """The index of each of rows [n, column]; -1 for those that are not stored: [n]."""
        return np.array([self._index.get(digest_of(row), -1) for row in rows], dtype=np.int64)


def digest_of(row: NDArray[np.generic]) -> bytes:
    """Equal for equal vectors, and only for those."""
    # -0.0 + 0 is 0.0: the two zeros are equal, and so are vectors that differ in their signs.
    return hashlib.blake2b(np.ascontiguousarray(row + 0).tobytes(), digest_size=16).digest()


class ObservationTable:
    """The observations of one stage, and the transitions that start there.

    Attributes:
        keys: distinct vectors: observations, or inputs of pairs of state and action.
        observations: the keys of each distinct observation, [observation, 1 or action].
    """

    def __init__(self, length: int, keys_per_observation: int, dtype: np.dtype[np.generic]) -> None:
        self.keys = DistinctVectors(length, dtype)
        self.observations = DistinctVectors(keys_per_observation, np.dtype(np.int64))
        self._tasks, self._keys = GrowingColumn(np.int64), GrowingColumn(np.int64)
        self._actions, self._next = GrowingColumn(np.int64), GrowingColumn(np.int64)
        self._rewards = GrowingColumn(np.float64)

    def __len__(self) -> int:
        return self._rewards.size

    def add_observations(self, keys: NDArray[np.generic]) -> Integers:
        """Store observations given by their keys [row, 1 or action, column]; the index of each."""
        rows, per_observation, length = keys.shape
        flat = self.keys.add(keys.reshape(rows * per_observation, length))
        return self.observations.add(flat.reshape(rows, per_observation))

    def add_transitions(
        self,
        tasks: Integers,
        key_indices: Integers,
        actions: Integers,
        rewards: Floats,
        next_observations: Integers,
    ) -> None:
        """Append transitions [row]; `next_observations` are -1 where an episode ended."""
        self._tasks.extend(tasks)
        self._keys.extend(key_indices)
        self._actions.extend(actions)
        self._rewards.extend(rewards)
        self._next.extend(next_observations)

    @property
    def tasks(self) -> Integers:
        """The task of each transition, [transition]."""
        return np.asarray(self._tasks.values, dtype=np.int64)

    @property
    def key_indices(self) -> Integers:
        """The key of the input of each transition, [transition]."""
        return np.asarray(self._keys.values, dtype=np.int64)

    @property
    def actions(self) -> Integers:
        """The action of each transition, [transition]."""
        return np.asarray(self._actions.values, dtype=np.int64)

    @property
    def rewards(self) -> Floats:
        """The reward of each transition, [transition]."""
        return np.asarray(self._rewards.values, dtype=np.float64)

    @property
    def next_observations(self) -> Integers:
        """The observation of the next stage that followed; -1 at an end: [transition]."""
        return np.asarray(self._next.values, dtype=np.int64)

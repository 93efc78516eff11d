"""The transitions of all tasks and stages, as a model of latent classes sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gfucb.episodic.distinct_rows import Floats, Integers
from gfucb.episodic.observation_table import DistinctVectors, ObservationTable


@dataclass(frozen=True, eq=False)
class ClassData:
    """Distinct transitions with their numbers. A group is a task and a stage.

    Attributes:
        inputs: distinct inputs of pairs of state and action, [pair, column].
        pairs: the pair of each row, [row].
        keys: the key of the pair in the table of its stage, [row].
        groups: the group of each row, [row].
        next_states: the observation that followed, -1 at an end, [row].
        outcomes: numbers of the distinct (group, next state), [row].
        counts: how often the transition occurred, [row].
        rewards: sums of rewards, [row].
        squares: sums of squared rewards, [row].
        num_next: distinct next states of each group's stage, at least 1, [group].
    """

    inputs: Floats
    pairs: Integers
    keys: Integers
    groups: Integers
    next_states: Integers
    outcomes: Integers
    counts: Floats
    rewards: Floats
    squares: Floats
    num_next: Floats

    @classmethod
    def of(
        cls,
        tables: Sequence[ObservationTable],
        num_tasks: int,
        starts: Sequence[int] | None = None,
        ends: Sequence[int] | None = None,
    ) -> ClassData:
        """The transitions `starts` to `ends` [stage] of tables whose keys are inputs of pairs."""
        distinct = DistinctVectors(tables[0].keys.rows.shape[1], tables[0].keys.rows.dtype)
        columns, rewards, num_next = [], [], []
        for stage, table in enumerate(tables):
            own = slice(
                None if starts is None else starts[stage], None if ends is None else ends[stage]
            )
            used, inverse = np.unique(table.key_indices[own], return_inverse=True)
            pairs = distinct.add(table.keys.rows[used])[inverse]
            following = table.next_observations[own]
            groups = table.tasks[own] * len(tables) + stage
            columns.append(np.stack([groups, pairs, following, table.key_indices[own]]))
            rewards.append(table.rewards[own])
            num_next.append(max(1, len(np.unique(following[following >= 0]))))
        every = np.concatenate(columns, axis=1)
        first, indices = _distinct(every[:3])  # the key follows from the group and the pair
        rows = every[:, first]
        received = np.concatenate(rewards)
        return cls(
            distinct.rows.astype(np.float64),
            rows[1],
            rows[3],
            rows[0],
            rows[2],
            _distinct(rows[[0, 2]])[1],
            np.bincount(indices).astype(np.float64),
            np.asarray(np.bincount(indices, received), dtype=np.float64),
            np.asarray(np.bincount(indices, received**2), dtype=np.float64),
            np.tile(np.array(num_next, dtype=np.float64), num_tasks),
        )

    @property
    def num_samples(self) -> float:
        """The number of transitions."""
        return float(self.counts.sum())

    @property
    def goes_on(self) -> Floats:
        """1 where a next state was observed and 0 where not, [row, 1]."""
        return np.asarray((self.next_states >= 0)[:, None], dtype=np.float64)

    def by_pair(self, values: Floats) -> Floats:
        """Sums of values [row, class] over the rows of each pair: [pair, class]."""
        return sums_by(self.pairs, values, len(self.inputs))

    def by_group(self, values: Floats) -> Floats:
        """Sums of values [row, class] over the rows of each group: [group, class]."""
        return sums_by(self.groups, values, len(self.num_next))

    def by_outcome(self, values: Floats) -> Floats:
        """Sums of values [row, class] over rows of one group and next state: [outcome, class]."""
        return sums_by(self.outcomes, values, int(self.outcomes.max(initial=-1)) + 1)


def _distinct(columns: Integers) -> tuple[Integers, Integers]:
    """Where each distinct row of integers from -1 on, [column, row], is first; its number."""
    codes = np.zeros(columns.shape[1], dtype=np.int64)
    for values in columns:
        codes = codes * (int(values.max(initial=0)) + 2) + values + 1
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return np.asarray(first), inverse.reshape(-1)


def sums_by(indices: Integers, values: Floats, size: int) -> Floats:
    """Sums of the values [row, column] with the same index [row]: [index, column]."""
    columns = values.shape[1]
    flat = (indices[:, None] * columns + np.arange(columns)).reshape(-1)
    sums = np.bincount(flat, weights=values.reshape(-1), minlength=size * columns)
    return np.asarray(sums.reshape(size, columns))

"""Backward induction on latent classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gfucb.episodic.cell_counts import CellCounts
from gfucb.episodic.class_values import ClassValues, StageTransitions
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.episodic_settings import Range
from gfucb.episodic.latent_classes import LatentClasses
from gfucb.episodic.observation_table import ObservationTable


class StageCounts:
    """The counts of the transitions of a table of pairs, extended as the table grows."""

    def __init__(self, table: ObservationTable) -> None:
        self.table = table
        self._counts = CellCounts()
        self._end = 0

    def until(self, end: int) -> StageTransitions:
        """The first `end` transitions, at least as many as in the last call."""
        table, new = self.table, slice(self._end, end)
        if end > self._end:
            following = table.next_observations[new]
            self._counts.add(
                table.tasks[new], table.key_indices[new], following, table.rewards[new]
            )
            self._end = end
        counts = self._counts
        # In one order, whenever transitions were counted: sums then round in the same way.
        order = np.lexsort((counts.next_states, counts.pairs, counts.tasks))
        return StageTransitions(
            counts.tasks[order],
            counts.pairs[order],
            counts.next_states[order],
            counts.counts[order],
            counts.rewards[order],
            counts.squares[order],
            np.asarray(table.observations.rows, dtype=np.int64),
        )


def plan_on_classes(
    classes: LatentClasses,
    stages: Sequence[tuple[ObservationTable, StageTransitions]],
    ranges: Sequence[Range],
    num_tasks: int,
    bonus: float = 1.0,
) -> list[ClassValues]:
    """Lines 2 to 8 of Algorithm 2: the values of every stage, [stage]."""
    values: list[ClassValues] = []
    following = np.zeros((num_tasks, 0))  # line 2: V_{H+1} = 0
    for (table, stage), bounds in zip(reversed(stages), reversed(ranges), strict=True):  # line 3
        features: Floats = classes.features(table.keys.rows)
        own = ClassValues.of(stage, features, following, bounds, bonus)
        # Paper: line 5 passes the value of the fit, which is not optimistic.
        following = own.state_values(stage, features)
        values.insert(0, own)
    return values

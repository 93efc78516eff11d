"""All that the default episodic agent has observed: tables, cells and counts of every stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gfucb.core.records import Transitions
from gfucb.episodic.cell_counts import CellCounts
from gfucb.episodic.cell_decoder import (
    CellDecoder,
    ClusterCells,
    DistinctCells,
    fit_decoder,
    is_recurrent,
)
from gfucb.episodic.distinct_rows import GrowingColumn, Integers
from gfucb.episodic.input_layout import InputLayout
from gfucb.episodic.observation_table import DistinctVectors, ObservationTable
from gfucb.episodic.regions import RegionCells, fit_regions
from gfucb.episodic.shared_stages import SharedCells, stages_are_alike, states_are_alike

Inputs = NDArray[np.generic]


class StageCells:
    """The cells of the observations of one stage, its states, and the counts of its transitions.

    With inputs (observation, action), a state is a cell and a pair is a cell and an action. With
    inputs of pairs, a cell is a pair, and a state is the cells of all its actions.

    Args:
        table: the observations.
        num_actions: A.
        is_factored: whether inputs are (observation, action).
        counts: of the transitions; by default those of this stage alone.
        num_shared: the number of cells so far, where all stages share them; each is a state.
    """

    def __init__(
        self,
        table: ObservationTable,
        num_actions: int,
        is_factored: bool,
        counts: CellCounts | None = None,
        num_shared: Callable[[], int] | None = None,
    ) -> None:
        self.table, self.num_actions, self.is_factored = table, num_actions, is_factored
        self.counts = CellCounts() if counts is None else counts
        self._cells, self._states = GrowingColumn(np.int64), GrowingColumn(np.int64)
        self._distinct = DistinctVectors(table.observations.rows.shape[1], np.dtype(np.int64))
        self._num_shared = num_shared
        self.num_counted = 0

    @property
    def cells(self) -> Integers:
        """The cell of each key, [key]."""
        return np.asarray(self._cells.values, dtype=np.int64)

    @property
    def states(self) -> Integers:
        """The state of each observation, [observation]."""
        return np.asarray(self._states.values, dtype=np.int64)

    def extend(self, cells: Integers) -> None:
        """Append the cells of new keys; find the states of new observations."""
        self._cells.extend(cells)
        rows = self.table.observations.rows[len(self.states) :]
        found = self.cells[rows.astype(np.int64)]
        is_shared = self._num_shared is not None
        self._states.extend(found[:, 0] if is_shared else self._distinct.add(found))

    def state_pairs(self, num_states: int | None = None) -> Integers:
        """The pairs of the first states, [state, action]."""
        number = self.num_states if num_states is None else num_states
        is_shared = self._num_shared is not None
        rows = np.arange(number)[:, None] if is_shared else self._distinct.rows[:number]
        cells = np.asarray(rows, dtype=np.int64)
        return cells * self.num_actions + np.arange(self.num_actions) if self.is_factored else cells

    @property
    def num_states(self) -> int:
        """The number of distinct states."""
        return len(self._distinct) if self._num_shared is None else self._num_shared()

    def num_pairs(self, num_cells: int) -> int:
        """The number of pairs of so many cells."""
        return num_cells * self.num_actions if self.is_factored else num_cells

    def count(self, next_states: Integers, end: int | None = None) -> None:
        """Count the transitions that are not counted yet, up to `end`.

        `next_states` [observation] are the states of the observations of the next stage.
        """
        table = self.table
        new = slice(self.num_counted, len(table) if end is None else end)
        pairs = self.cells[table.key_indices[new]]
        if self.is_factored:
            pairs = pairs * self.num_actions + table.actions[new]
        following = table.next_observations[new].copy()
        goes_on = following >= 0  # -1 is an end
        following[goes_on] = next_states[following[goes_on]]
        self.counts.add(table.tasks[new], pairs, following, table.rewards[new])
        self.num_counted = new.stop

    def count_again(self, counts: CellCounts, next_states: Integers, end: int) -> None:
        """Add the first `end` transitions to other counts, with the arguments of `count`."""
        again = StageCells(self.table, self.num_actions, self.is_factored, counts)
        again._cells = self._cells
        again.count(next_states, end)


class CellModel:
    """Observations, decoder and counts of all stages.

    Args:
        layout: of the inputs.
        horizon: H.
        num_actions: A.
        dtype: of the stored vectors.
        seed: of the samples that clusters are computed from.

    Attributes:
        tables: the observations of each stage, [stage].
        stages: their cells, [stage].
        decoder: from vectors to cells.
        num_fits: how often the decoder was fitted.
    """

    def __init__(
        self,
        layout: InputLayout,
        horizon: int,
        num_actions: int,
        dtype: np.dtype[np.generic],
        seed: int,
    ) -> None:
        self.layout, self.num_actions, self.dtype, self.seed = layout, num_actions, dtype, seed
        length = layout.key_length(num_actions)
        per_observation = 1 if layout.is_factored else num_actions
        self.tables = [ObservationTable(length, per_observation, dtype) for _ in range(horizon)]
        self.num_fits = 0
        self.fit_sizes = [0] * horizon  # keys at the last fit, [stage]
        self.fit_is_recurrent, self.fit_shares_stages = True, False
        self.use_decoder(DistinctCells(self.tables))

    @property
    def num_transitions(self) -> int:
        """Of all stages."""
        return sum(len(table) for table in self.tables)

    def add_observations(self, stage: int, candidates: Inputs, known: int) -> Integers:
        """Store candidates [row, action, column]; the index of each observation, [row]."""
        table = self.tables[stage]
        found = table.add_observations(self.layout.keys(candidates).astype(self.dtype))
        self._decode_new(stage, known)
        return found

    def add_transitions(
        self, stage: int, given: Transitions, actions: Integers, known: Sequence[int]
    ) -> None:
        """Store and count transitions, `known` [stage] cells preferred for new observations."""
        table, rows = self.tables[stage], len(given.tasks)
        inputs = given.inputs.reshape(rows, -1)
        key_rows = self.layout.keys_of_inputs(inputs, self.num_actions).astype(self.dtype)
        keys = table.keys.add(key_rows)
        if self.layout.is_factored:
            table.observations.add(keys[:, None])
        self._decode_new(stage, known[stage])
        following = np.full(rows, -1, dtype=np.int64)
        if given.next_candidates is not None and stage + 1 < len(self.tables):
            goes_on = np.flatnonzero(~given.ended)
            candidates = given.next_candidates[goes_on]
            flat = candidates.reshape(*candidates.shape[:2], -1)
            following[goes_on] = self.add_observations(stage + 1, flat, known[stage + 1])
        tasks = np.array(given.tasks, dtype=np.int64)
        table.add_transitions(tasks, keys, actions, given.rewards, following)
        self.stages[stage].count(self.next_states(stage))

    def pairs(self, inputs: Inputs, cells_of: Callable[[Inputs], Integers]) -> Integers:
        """The pairs of inputs [row, action, column]; -1 for those without a cell: [row, action].

        `cells_of` gives the cells [n] of vectors [n, column], or -1.
        """
        if not self.layout.accepts(inputs):
            return np.full(inputs.shape[:2], -1, dtype=np.int64)
        keys = self.layout.keys(inputs).astype(self.dtype)
        rows, number, length = keys.shape
        cells = cells_of(keys.reshape(rows * number, length)).reshape(rows, number)
        if not self.layout.is_factored:
            return cells
        return np.where(cells < 0, -1, cells * self.num_actions + np.arange(self.num_actions))

    def next_states(self, stage: int) -> Integers:
        """The states of the observations of the next stage, [observation]."""
        if stage + 1 == len(self.tables):
            return np.zeros(0, dtype=np.int64)
        return self.stages[stage + 1].states

    def fit(self) -> None:
        """Fit the decoder to all vectors, and count all transitions again."""
        self.num_fits += 1
        self.fit_sizes = [len(table.keys) for table in self.tables]
        self.fit_is_recurrent, self.fit_shares_stages = is_recurrent(self.tables), False
        found = fit_decoder(self.tables, self.fit_sizes, self.fit_is_recurrent, self.seed)
        if self.layout.is_factored and len(self.tables) > 1:
            fills_space = isinstance(found, ClusterCells) and found.is_continuous
            if fills_space:
                self.fit_shares_stages = stages_are_alike(self.tables, self.num_actions, self.seed)
            # The stage may tell where in its region a state is, and not what an action does there.
            if self.fit_is_recurrent and (fills_space or isinstance(found, DistinctCells)):
                self.fit_shares_stages |= states_are_alike(self.tables, self.num_actions)
        self.use_decoder(self.fitted() if self.fit_shares_stages else self._of_stages(found))

    def fitted(self) -> CellDecoder:
        """The decoder of the last fit."""
        if self.fit_shares_stages and self.fit_is_recurrent:
            return SharedCells(self.tables, self.fit_sizes)
        if self.fit_shares_stages:
            return fit_regions(self.tables, self.fit_sizes, self.seed)
        return self._of_stages(
            fit_decoder(self.tables, self.fit_sizes, self.fit_is_recurrent, self.seed)
        )

    def _of_stages(self, found: CellDecoder) -> CellDecoder:
        """The decoder of stages that share nothing; states that recur are cells, not regions."""
        fills_space = isinstance(found, ClusterCells) and found.is_continuous
        return DistinctCells(self.tables) if fills_space and self.fit_is_recurrent else found

    @property
    def num_shared(self) -> int:
        """The number of cells that all stages share; 0 if each has its own."""
        is_shared = isinstance(self.decoder, RegionCells | SharedCells)
        return self.decoder.num_cells(0) if is_shared else 0

    @property
    def shares_states(self) -> bool:
        """Whether all stages share the states of a finite environment."""
        return isinstance(self.decoder, SharedCells)

    @property
    def has_regions(self) -> bool:
        """Whether cells are regions of continuous observations."""
        return isinstance(self.decoder, RegionCells)

    def counts_until(self, ends: Sequence[int]) -> list[CellCounts]:
        """The counts of each stage from the first `ends` [stage] transitions, [stage].

        Stages that share their cells also share their counts. The last stage does not tell what
        follows, so its transitions are not among them; of states, they tell its own rewards.
        """
        *before, last = range(len(self.stages))
        if not self.num_shared:
            return [self._counts_of([stage], ends) for stage in (*before, last)]
        shared = self._counts_of(before, ends)
        if not self.shares_states:
            return [shared] * len(self.stages)
        own = self._counts_of([last], ends)
        return [*[shared] * len(before), CellCounts.together([shared, own])]

    def _counts_of(self, stages: Sequence[int], ends: Sequence[int]) -> CellCounts:
        """The counts of stages that count together."""
        if all(self.stages[stage].num_counted == ends[stage] for stage in stages):
            return self.stages[stages[0]].counts
        counts = CellCounts()
        for stage in stages:
            self.stages[stage].count_again(counts, self.next_states(stage), ends[stage])
        return counts

    def use_decoder(self, decoder: CellDecoder, saved: Sequence[Integers] | None = None) -> None:
        """Decode all vectors with a new decoder.

        `saved` [stage][key] are the cells that vectors got after the fit, in a saved state.
        """
        self.decoder = decoder
        is_shared = bool(self.num_shared)
        shared = CellCounts() if is_shared else None
        number = partial(decoder.num_cells, 0) if is_shared else None
        arguments = self.num_actions, self.layout.is_factored
        *before, last = self.tables
        self.stages = [StageCells(table, *arguments, shared, number) for table in before]
        self.stages.append(StageCells(last, *arguments, None, number))
        for stage, table in enumerate(self.tables):
            fitted = len(table.keys) if saved is None else self.fit_sizes[stage]
            rows = table.keys.rows[:fitted]
            cells = decoder.add(stage, rows, decoder.num_cells(stage))
            decoder.recentre(stage, rows, cells)
            if saved is not None:
                decoder.restore(stage, table.keys.rows[fitted:], saved[stage][fitted:])
                cells = np.concatenate([cells, saved[stage][fitted:]])
            self.stages[stage].extend(cells)
        for stage, cells_of_stage in enumerate(self.stages):
            cells_of_stage.count(self.next_states(stage))

    def _decode_new(self, stage: int, known: int) -> None:
        """Find the cells of vectors that were added to the table of a stage."""
        own = self.stages[stage]
        rows = self.tables[stage].keys.rows[len(own.cells) :]
        if len(rows) or len(own.states) < len(self.tables[stage].observations):
            own.extend(self.decoder.add(stage, rows, known))

    def with_layout_for(self, inputs: Inputs) -> CellModel:
        """The same transitions in a layout that also accepts inputs [row, action, column].

        Inputs that are not all products describe pairs of state and action.
        """
        stored = [self.layout.candidates(own.keys.rows, self.num_actions) for own in self.tables]
        every = np.concatenate([*stored, inputs.astype(self.dtype)])
        layout = InputLayout.of(every)
        model = CellModel(layout, len(self.tables), self.num_actions, self.dtype, self.seed)
        for table, new, candidates in zip(self.tables, model.tables, stored, strict=True):
            keys = layout.keys(candidates)
            size, per_observation, length = keys.shape
            flat = new.keys.add(keys.reshape(size * per_observation, length))
            by_action = flat.reshape(size, per_observation)
            new.observations.add(by_action[table.observations.rows[:, 0].astype(np.int64)])
            of_action = 0 if layout.is_factored else table.actions
            new.add_transitions(
                table.tasks,
                by_action[table.key_indices, of_action],
                table.actions,
                table.rewards,
                table.next_observations,
            )
        model.use_decoder(DistinctCells(model.tables))
        return model

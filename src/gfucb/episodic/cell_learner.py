"""Algorithm 2 on learned abstract states, the default of `EpisodicGFUCB`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.records import Decision, Row
from gfucb.core.setting_descriptions import describe_setting
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import validate_action_sets
from gfucb.core.validation.episodes import (
    to_numpy,
    validate_size,
    validate_stage,
    validate_transitions,
)
from gfucb.core.validation.settings import validate_seed
from gfucb.core.validation.states import (
    validate_state,
    validate_state_names,
    validate_state_tensor,
)
from gfucb.episodic.cell_model import CellModel
from gfucb.episodic.cell_state import MODEL_NAMES, model_state, restored_model
from gfucb.episodic.cell_values import EQUAL, StageValues, decision_of
from gfucb.episodic.distinct_rows import Floats, Integers
from gfucb.episodic.episodic_settings import Range
from gfucb.episodic.input_layout import InputLayout
from gfucb.episodic.plan_state import PLAN_INDEX, validate_plan_index
from gfucb.episodic.return_ranges import ReturnRanges

# The decoder is fitted again when the data has grown by this factor.
REFIT_GROWTH = 1.3
# Episodes before the first fit.
FIRST_FIT = 3
# Names of saved tensors.
KNOWN, PLANNED, STATES = "known_cells", "planned_transitions", "known_states"


class CellLearner:
    """Algorithm 2 with one-hot features of (cell, action), where cells are learned.

    A cell is a set of observations of a stage that the agent treats as one state. The decoder, from
    observations to cells, is the shared representation: it is fitted to the observations of all
    tasks. Values are those of Algorithm 2 with optimistic backups, for each task alone.

    Args:
        num_tasks: M.
        horizon: H.
        ranges: bounds of the values of each stage, [stage]; None where nothing is known.
        seed: all randomness derives from it.
    """

    is_markov = True

    def __init__(
        self, num_tasks: int, horizon: int, ranges: Sequence[Range | None], seed: int
    ) -> None:
        self.num_tasks, self.horizon = validate_size(num_tasks, horizon)
        self.seed = validate_seed(seed)
        self.ranges = ReturnRanges(num_tasks, ranges)
        self.plan_index = 0
        self._model: CellModel | None = None
        self._example: NDArray[np.generic] | None = None  # an input that was observed
        self._values: list[StageValues] = []
        self._known = [0] * horizon  # cells at the last plan, [stage]
        self._planned = [0] * horizon  # transitions at the last plan, [stage]
        self._num_states = [0] * horizon  # states at the last plan, [stage]
        self._fitted_transitions = 0  # at the last fit of the decoder

    def describe(self) -> str:
        """The variant, for the repr of the agent."""
        return "learned cells"

    def range_of(self, stage: int) -> Range | None:
        """The bounds of the values of a stage; None if none were given."""
        return None if self.ranges.given[stage] is None else self.ranges.of(stage)

    @property
    def model(self) -> CellModel | None:
        """All that was observed; None before the first plan."""
        return self._model

    @property
    def num_fits(self) -> int:
        """How often the decoder was fitted."""
        return 0 if self._model is None else self._model.num_fits

    @property
    def num_transitions(self) -> int:
        """Of all stages."""
        return 0 if self._model is None else self._model.num_transitions

    def plan(self, candidates: ArrayLike, tasks: ArrayLike | None) -> None:
        """Lines 2 to 8 of Algorithm 2, if there are transitions since the last plan."""
        inputs, _ = self._validate(candidates, tasks)
        model = self._accept(inputs)
        model.add_observations(0, inputs, self._known[0])
        transitions = [len(table) for table in model.tables]
        if self.plan_index and transitions == self._planned:
            return
        self._refit_if_due(model)
        self._known = [model.decoder.num_cells(stage) for stage in range(self.horizon)]
        self._num_states = [own.num_states for own in model.stages]
        self._planned = transitions
        self.ranges.use()
        self._values = self._backward(model, self._known)
        self.plan_index += 1

    def _refit_if_due(self, model: CellModel) -> None:
        first = FIRST_FIT * self.num_tasks * self.horizon
        total = model.num_transitions
        if total >= max(first, REFIT_GROWTH * self._fitted_transitions):
            # Paper: phi is fitted in every episode, to values. The decoder is fitted to
            # observations, which say more than early values do, and now and then.
            model.fit()
            self._fitted_transitions = total

    def _backward(self, model: CellModel, known: Sequence[int]) -> list[StageValues]:
        """Backward induction on the first `known` [stage] cells: values of all stages, [stage]."""
        ends = [len(table) for table in model.tables]
        sizes = [own.num_states for own in model.stages]
        if known is self._known:  # in a restored agent, of the time of its plan
            ends, sizes = self._planned, self._num_states
        counts = model.counts_until(ends)
        # Line 2: V_{H+1} = 0.
        values = [StageValues.after_the_last(self.num_tasks, model.num_shared)]
        for stage in reversed(range(self.horizon)):  # line 3
            own = model.stages[stage]
            # Lines 4 and 8.
            # Paper: line 5 passes the value of the fit to stage h, which is not optimistic. Here
            # V_{h+1} is the optimistic value.
            stage_values = StageValues.of(
                counts[stage],
                own.state_pairs(sizes[stage]),
                own.num_pairs(known[stage]),
                values[0],
                self.ranges.of(stage),
                are_regions=model.has_regions,
                are_shared=model.shares_states,
            )
            values.insert(0, stage_values)
        return values[:-1]

    def decide(self, stage: int, candidates: ArrayLike, tasks: ArrayLike | None) -> Decision:
        """Line 9: the action with the largest optimistic value in every row."""
        stage = validate_stage(stage, self.horizon)
        inputs, row_tasks = self._validate(candidates, tasks)
        if not self._values:
            raise InvalidInputError("there is no plan yet; call plan(candidates) before an episode")
        upper, preference = self._pair_values(stage, inputs, row_tasks)
        best = upper >= upper.max(axis=1, keepdims=True) - EQUAL
        return decision_of(candidates, row_tasks, np.where(best, preference, -np.inf), upper)

    def _pair_values(
        self, stage: int, inputs: NDArray[np.generic], tasks: Integers
    ) -> tuple[Floats, Floats]:
        """Optimistic values of all actions, and preferences between equal ones: [row, action]."""
        model, values = self._model, self._values[stage]
        assert model is not None
        upper = np.full(inputs.shape[:2], self.ranges.of(stage)[1])
        preference = np.ones(inputs.shape[:2])
        pairs = model.pairs(inputs, partial(model.decoder.find, stage, known=self._known[stage]))
        known = pairs >= 0
        own_tasks = np.broadcast_to(tasks[:, None], pairs.shape)[known]
        upper[known] = values.upper[own_tasks, pairs[known]]
        preference[known] = values.preference[own_tasks, pairs[known]]
        return upper, preference + 1e-12 * self.random_order(stage, inputs.shape[1])[tasks]

    def random_order(self, stage: int, num_actions: int) -> Floats:
        """Decides between equal actions, another way in every plan: [task, action]."""
        generator = random_stream(self.seed, "order", self.plan_index, stage)
        return np.asarray(torch.rand(self.num_tasks, num_actions, generator=generator).numpy())

    def greedy_policy(self) -> Callable[[int, Tensor, Tensor], Tensor]:
        """The best actions by the means of all data so far, without a bonus."""
        model = self._model
        if model is None or not self._values:
            raise InvalidInputError("there is no plan yet; call plan(candidates) before an episode")
        known = [model.decoder.num_cells(stage) for stage in range(self.horizon)]
        values = self._backward(model, known)
        decoder = model.decoder

        def policy(stage: int, candidates: Tensor, tasks: Tensor) -> Tensor:
            inputs, row_tasks = self._validate(candidates, tasks)
            pairs = model.pairs(inputs, partial(decoder.nearest, stage, known=known[stage]))
            means = np.append(values[stage].means, np.full((self.num_tasks, 1), -np.inf), axis=1)
            return torch.from_numpy(means[row_tasks[:, None], pairs].argmax(axis=1))

        return policy

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: ArrayLike,
        next_candidates: ArrayLike | None,
        ended: ArrayLike | None,
    ) -> None:
        """Line 10, and the data of the next plan."""
        stage = validate_stage(stage, self.horizon)
        is_last = stage + 1 == self.horizon
        transitions = validate_transitions(
            decision,
            rewards,
            next_candidates,
            ended,
            num_tasks=self.num_tasks,
            is_last=is_last,
            like=self._example,
        )
        model = self._model
        if model is None:
            raise InvalidInputError("there is no plan yet; call plan(candidates) before an episode")
        actions = decision.actions.numpy().astype(np.int64)
        following = transitions.next_candidates
        self._require_actions(actions, following)
        if following is not None:
            flat = following.reshape(*following.shape[:2], -1)
            model = self._accept(flat[~transitions.ended])
        if self._example is None and len(actions):
            self._example = transitions.inputs[0].copy()
        model.add_transitions(stage, transitions, actions, self._known)
        self.ranges.add(stage, transitions)

    def _require_actions(
        self, actions: Integers, next_candidates: NDArray[np.generic] | None
    ) -> None:
        assert self._model is not None
        number = self._model.num_actions
        if len(actions) and actions.max() >= number:
            raise InvalidInputError(
                f"this agent has planned for {number} actions, got the action {actions.max()}"
            )
        if next_candidates is not None and next_candidates.shape[1] != number:
            raise InvalidInputError(
                f"this agent has planned for {number} actions, got next_candidates of "
                f"{next_candidates.shape[1]}; pad action sets to one length"
            )

    def _accept(self, inputs: NDArray[np.generic]) -> CellModel:
        """The model for inputs [row, action, column] like these."""
        if self._model is None:
            dtype = np.dtype(np.float32 if inputs.dtype == np.float32 else np.float64)
            layout = InputLayout.of(inputs)
            number = inputs.shape[1]
            self._model = CellModel(layout, self.horizon, number, dtype, self.seed)
        elif not self._model.layout.accepts(inputs):
            self._model = self._model.with_layout_for(inputs)
            self._known, self._fitted_transitions = [0] * self.horizon, 0
        return self._model

    def _validate(
        self, candidates: ArrayLike, tasks: ArrayLike | None
    ) -> tuple[NDArray[np.generic], Integers]:
        """Flat candidates [row, action, column] and the task of each row, [row]."""
        action_sets = validate_action_sets(
            candidates, tasks, None, num_tasks=self.num_tasks, device="cpu"
        )
        inputs = action_sets.candidates
        if inputs.ndim == 2 and inputs.is_floating_point():
            raise InvalidInputError(
                "candidates must have the shape [row, action, *input], got "
                f"{list(inputs.shape)}; if these are observations, [row, column], append the "
                "actions: gfucb.with_actions(observations, num_actions)"
            )
        if self._model is not None:
            known = (self._model.num_actions, len(self._model.layout.shared))
            got = (inputs.shape[1], inputs[0, 0].numel())
            if known != got:
                raise InvalidInputError(
                    f"this agent has planned for {known[0]} actions with inputs of {known[1]} "
                    f"numbers, got {got[0]} actions with inputs of shape {list(inputs.shape[2:])}"
                )
        flat = to_numpy(inputs).reshape(*inputs.shape[:2], -1)
        return flat, action_sets.tasks.numpy()

    def diagnostics(self) -> Row:
        """The number of plans, of fits of the decoder, and of cells."""
        cells = 0 if self._model is None else sum(self._known)
        return {"plans": self.plan_index, "fits": self.num_fits, "cells": cells}

    def settings(self) -> dict[str, str]:
        """What an agent must be built with to continue from this one's state."""
        values = {
            "horizon": self.horizon,
            "seed": self.seed,
            "representation": "learned cells",
            "value_ranges": self.ranges.given,
        }
        return {name: describe_setting(value) for name, value in values.items()}

    def state(self) -> dict[str, Tensor]:
        """All transitions, and what cells and the last plan follow from; empty for a new agent."""
        if self._model is None:
            return {}
        counters = {
            PLAN_INDEX: torch.tensor(self.plan_index),
            KNOWN: torch.tensor(self._known),
            PLANNED: torch.tensor([*self._planned, self._fitted_transitions]),
            STATES: torch.tensor(self._num_states),
        }
        return model_state(self._model) | counters | self.ranges.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""
        validate_state(state)
        restored = CellLearner(self.num_tasks, self.horizon, self.ranges.given, self.seed)
        if state:
            restored._restore(state)
        vars(self).update(vars(restored))

    def _restore(self, state: dict[str, Tensor]) -> None:
        names = [*MODEL_NAMES, PLAN_INDEX, KNOWN, PLANNED, STATES, *self.ranges.state()]
        prefixes = tuple(f"{stage}/" for stage in range(self.horizon))
        validate_state_names(state, names, prefixes)
        model = restored_model(state, self.num_tasks, self.horizon, self.seed)
        self.plan_index = validate_plan_index(state)
        self.ranges.restore(state)
        lengths = {KNOWN: self.horizon, STATES: self.horizon, PLANNED: self.horizon + 1}
        known, states, planned = (
            validate_state_tensor(state, name, [length], dtype=torch.int64, low=0).tolist()
            for name, length in lengths.items()
        )
        self._known, self._num_states = known, states
        self._planned, self._fitted_transitions = planned[:-1], planned[-1]
        for stage, own in enumerate(model.stages):
            largest = (model.decoder.num_cells(stage), own.num_states, len(own.table))
            saved = (known[stage], states[stage], planned[stage])
            if any(have > most for have, most in zip(saved, largest, strict=True)):
                raise InvalidInputError(
                    f"the plan of the state has {saved[0]} cells, {saved[1]} states and "
                    f"{saved[2]} transitions of stage {stage}, its data {largest}"
                )
        self._model = model
        if any(len(table) for table in model.tables):
            self._example = None  # the shape of inputs is that of the next plan
        if self.plan_index:
            self._values = self._backward(model, self._known)

"""LSVI-UCB on given features in numpy: the decisions of `lsvi_ucb` at a lower cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import Decision, Row
from gfucb.core.setting_descriptions import describe_setting
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.episodes import validate_candidates, validate_size, validate_stage
from gfucb.core.validation.settings import (
    validate_not_negative,
    validate_number,
    validate_pair,
    validate_ridge,
)
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.distinct_rows import DistinctRows, Floats
from gfucb.episodic.episodic_settings import default_offset
from gfucb.episodic.information_gain import GAINS, InformationGain
from gfucb.episodic.plan_state import PLAN_INDEX, validate_plan_index
from gfucb.episodic.plan_validation import (
    NUM_SAMPLES,
    TOLERANCE,
    require_close,
    validate_gains,
    validate_num_samples,
)
from gfucb.episodic.replay import ReplayBuffer


@dataclass(frozen=True, eq=False)
class _StageValues:
    """The upper values <w, x> + beta |L^-1 x| of one stage."""

    heads: Floats  # [task, feature]
    inverses: Floats  # L^-1, [task, feature, feature]

    def __call__(self, inputs: Floats, tasks: NDArray[np.int64], beta: float) -> Floats:
        """Upper values, not clipped: [n, feature], [n] -> [n]."""
        if len(self.heads) == 1:
            return self._values_of_task(inputs, 0, beta)
        # A product for each task: a factor for each row would be copied first, feature^2 numbers.
        values = np.empty(len(inputs))
        for task in np.unique(tasks):
            rows = tasks == task
            values[rows] = self._values_of_task(inputs[rows], int(task), beta)
        return values

    def _values_of_task(self, inputs: Floats, task: int, beta: float) -> Floats:
        widths = inputs @ self.inverses[task].T
        roots = np.sqrt(np.einsum("nf,nf->n", widths, widths))
        return np.asarray(inputs @ self.heads[task] + beta * roots)

    def squared_width(self, inputs: DistinctRows, task: int, row: int) -> float:
        """x^T V^-1 x of a stored input."""
        whitened = self.inverses[task] @ inputs.row(row).numpy().reshape(-1)
        return float(whitened @ whitened)

    def tensors(self) -> dict[str, Tensor]:
        """Named tensors of a saved state."""
        return {"heads": torch.from_numpy(self.heads), "inverses": torch.from_numpy(self.inverses)}

    def validate(self, expected: _StageValues, stage: int, ridge: float) -> None:
        """Refuse values that differ from those computed again from the transitions of a stage."""
        factors = np.linalg.inv(expected.inverses)  # L
        # With a small ridge, rounding changes V in directions without data.
        tolerance = TOLERANCE + 1e-14 * float(np.square(factors).sum()) / ridge
        ones = np.broadcast_to(np.eye(factors.shape[-1]), factors.shape)
        require_close(f"{stage}/inverses", self.inverses @ factors, ones, tolerance)
        own, other = ((values.heads[:, None] @ factors)[:, 0] for values in (self, expected))
        require_close(f"{stage}/heads", own, other, tolerance)

    @classmethod
    def of_state(cls, state: Mapping[str, Tensor], num_tasks: int) -> _StageValues:
        """The values of a saved state, after a check of its tensors."""
        validate_state_names(state, ["heads", "inverses"])
        heads = validate_state_tensor(state, "heads", [num_tasks, None], dtype=torch.float64)
        shape = [*heads.shape, heads.shape[1]]
        inverses = validate_state_tensor(state, "inverses", shape, dtype=torch.float64)
        return cls(heads.numpy().copy(), inverses.numpy().copy())


class LSVIUCB:
    """LSVI-UCB for each task alone on given features, the inputs (Jin et al., 2020).

    Q_h = clip(<w, x> + beta |x|_{V^-1}), w the ridge fit to r + max_a Q_{h+1}. It makes the
    decisions of `lsvi_ucb`, which uses the components of `EpisodicGFUCB`, at a lower cost: a plan
    is O(H (R k^2 + n + M k^3)) for R distinct inputs and n samples a stage.

    Args:
        num_tasks: M.
        horizon: H.
        beta: multiplies the width of an input.
        ridge: the penalty on heads.
        value_range: bounds of expected sums of rewards.
        replan_growth: the agent plans again when det V of some stage and task may have grown by
            this factor.
    """

    is_markov = True

    def __init__(
        self,
        num_tasks: int,
        horizon: int,
        *,
        beta: float = 0.3,
        ridge: float = 0.1,
        value_range: tuple[float, float] = (0.0, 1.0),
        replan_growth: float = 2.0,
    ) -> None:
        self.num_tasks, self.horizon = validate_size(num_tasks, horizon)
        self.beta = validate_not_negative(beta, "beta")
        self.ridge = validate_ridge(ridge)
        self.value_range = validate_pair(value_range, "value_range")
        self.offset = default_offset(self.value_range)
        self.replan_growth = validate_number(replan_growth, "replan_growth", at_least=1.0)
        self.plan_index = 0
        self._replay = ReplayBuffer(self.num_tasks, self.horizon)
        self._gain = InformationGain(self.num_tasks, self.horizon)
        self._stages: list[_StageValues] = []
        self._num_samples = [0] * self.horizon  # at the last plan, [stage]

    def __repr__(self) -> str:
        return (
            f"LSVIUCB(num_tasks={self.num_tasks}, horizon={self.horizon}, beta={self.beta:g}, "
            f"{len(self._replay)} transitions, {self.plan_index} plans)"
        )

    def plan(self, candidates: ArrayLike, tasks: ArrayLike | None = None) -> None:
        """Backward induction, if a plan is due."""
        inputs, _ = self._validate(candidates, tasks)
        if self._stages and not self._gain.may_exceed(self.replan_growth):
            return
        num_samples = [len(buffer) for buffer in self._replay.stages]
        self._stages = self._backward(self._replay, num_samples, inputs.shape[-1])
        self._num_samples = num_samples
        self._gain = InformationGain(self.num_tasks, self.horizon)
        self.plan_index += 1

    def _validate(
        self, candidates: ArrayLike, tasks: ArrayLike | None
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Flat inputs and tasks, if the inputs have the length of those of the last plan."""
        inputs, row_tasks = validate_candidates(candidates, tasks, self.num_tasks)
        if self._stages and inputs.shape[-1] != self._stages[0].heads.shape[1]:
            raise InvalidInputError(
                f"this agent has planned for inputs of {self._stages[0].heads.shape[1]} numbers, "
                f"got {inputs.shape[-1]}"
            )
        if len(self._replay) and inputs.shape[-1] != math.prod(self._replay.input_shape):
            raise InvalidInputError(
                f"this agent has learned from inputs of shape {list(self._replay.input_shape)}, "
                f"got candidates of {inputs.shape[-1]} numbers"
            )
        return inputs, row_tasks

    def _backward(
        self, replay: ReplayBuffer, num_samples: list[int], feature_dim: int
    ) -> list[_StageValues]:
        """The values of all stages, from the first `num_samples` [stage] transitions."""
        stages: list[_StageValues] = []
        for buffer, number in zip(reversed(replay.stages), reversed(num_samples), strict=True):
            next_stage = stages[0] if stages else None
            stages.insert(0, self._fit(buffer, next_stage, number, feature_dim))
        return stages

    def _fit(
        self,
        buffer: StageBuffer,
        next_stage: _StageValues | None,
        num_samples: int,
        feature_dim: int,
    ) -> _StageValues:
        grams = np.zeros((self.num_tasks, feature_dim, feature_dim))
        moments = np.zeros((self.num_tasks, feature_dim))
        if num_samples:
            targets = buffer.targets(self._next_values(buffer, next_stage), num_samples)
            counts, sums = buffer.counts(len(targets)), buffer.target_sums(targets)
            rows, tasks = buffer.inputs.arrays()
            rows = rows.reshape(len(rows), -1)
            for task in range(self.num_tasks):
                own = slice(None) if self.num_tasks == 1 else tasks == task
                x = rows[own]
                grams[task] = x.T @ (x * counts[own, None])
                moments[task] = (sums[own] - self.offset * counts[own]) @ x
        grams.reshape(self.num_tasks, -1)[:, :: feature_dim + 1] += self.ridge
        inverses = np.linalg.inv(np.linalg.cholesky(grams))
        whitened = (inverses @ moments[..., None])[..., 0]
        heads = (inverses.transpose(0, 2, 1) @ whitened[..., None])[..., 0]
        return _StageValues(heads, inverses)

    def _next_values(self, buffer: StageBuffer, next_stage: _StageValues | None) -> Floats:
        """V_{h+1} of the next observations, [next_observation]."""
        if next_stage is None or not len(buffer.next_observations):
            return np.zeros(len(buffer.next_observations))
        candidates, tasks = buffer.next_observations.arrays()
        flat = candidates.reshape(candidates.shape[0] * candidates.shape[1], -1)
        values = next_stage(flat, np.repeat(tasks, candidates.shape[1]), self.beta) + self.offset
        low, high = self.value_range
        return np.clip(values.reshape(candidates.shape[:2]).max(axis=1), low, high)

    def decide(self, stage: int, candidates: ArrayLike, tasks: ArrayLike | None = None) -> Decision:
        """The action with the largest upper value, for every row of a stage."""
        stage = validate_stage(stage, self.horizon)
        inputs, row_tasks = self._validate(candidates, tasks)
        if not self._stages:
            raise InvalidInputError("there is no plan yet; call plan(candidates) before an episode")
        flat = inputs.reshape(-1, inputs.shape[-1])
        values = self._stages[stage](flat, np.repeat(row_tasks, inputs.shape[1]), self.beta)
        values = (values + self.offset).reshape(inputs.shape[:2])
        actions = values.argmax(axis=1)
        rows = np.arange(len(actions))
        optimistic_values = np.clip(values[rows, actions], *self.value_range)
        return Decision(
            torch.from_numpy(row_tasks),
            torch.from_numpy(actions),
            torch.from_numpy(inputs[rows, actions]),
            torch.from_numpy(optimistic_values),
        )

    def greedy_policy(self) -> Callable[[int, Tensor, Tensor], Tensor]:
        """The policy that is greedy for the fits to all transitions without a bonus."""
        if not self._stages:
            raise InvalidInputError("there is no plan yet; call plan(candidates) before an episode")
        greedy = LSVIUCB(
            self.num_tasks, self.horizon, beta=0.0, ridge=self.ridge, value_range=self.value_range
        )
        num_samples = [len(buffer) for buffer in self._replay.stages]
        feature_dim = self._stages[0].heads.shape[1]
        greedy._stages = greedy._backward(self._replay, num_samples, feature_dim)
        return lambda stage, candidates, tasks: greedy.decide(stage, candidates, tasks).actions

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: ArrayLike,
        next_candidates: ArrayLike | None = None,
        ended: ArrayLike | None = None,
    ) -> None:
        """Store the result of a decision; see `EpisodicGFUCB.observe`."""
        stage, transitions = self._replay.validate(stage, decision, rewards, next_candidates, ended)
        input_indices = self._replay.append(stage, transitions)
        if self._stages:
            inputs = self._replay.stages[stage].inputs
            width = partial(self._stages[stage].squared_width, inputs)
            self._gain.add(stage, transitions.tasks, input_indices, width)

    def diagnostics(self) -> Row:
        """The number of plans."""
        return {"plans": self.plan_index}

    def state(self) -> dict[str, Tensor]:
        """All transitions and the plan, as named tensors."""
        counters = {
            PLAN_INDEX: torch.tensor(self.plan_index),
            NUM_SAMPLES: torch.tensor(self._num_samples),
        }
        stages = [stage.tensors() for stage in self._stages]
        return self._replay.state(stages) | counters | self._gain.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from a state; it is checked before the agent changes."""
        replay, stage_states, others = self._replay.restored(state)
        validate_state_names(others, [PLAN_INDEX, NUM_SAMPLES, GAINS])
        plan_index = validate_plan_index(others)
        num_samples = validate_num_samples(others, replay.stages)
        gain = self._gain.restored(others)
        is_planned = plan_index > 0
        stages = [_StageValues.of_state(own, self.num_tasks) for own in stage_states if is_planned]
        self._require_fit(stages, stage_states, replay)
        self._require_values(stages, replay, num_samples, gain)
        self._replay, self._gain, self._stages = replay, gain, stages
        self.plan_index, self._num_samples = plan_index, num_samples

    def _require_values(
        self,
        stages: list[_StageValues],
        replay: ReplayBuffer,
        num_samples: list[int],
        gain: InformationGain,
    ) -> None:
        """Refuse saved values and gains that do not follow from the transitions."""
        if not stages:
            return
        expected = self._backward(replay, num_samples, stages[0].heads.shape[1])
        for stage, (saved, own) in enumerate(zip(stages, expected, strict=True)):
            saved.validate(own, stage, self.ridge)
        widths = [
            partial(own.squared_width, buffer.inputs)
            for own, buffer in zip(expected, replay.stages, strict=True)
        ]
        validate_gains(gain, replay.stages, num_samples, widths)

    def _require_fit(
        self,
        stages: list[_StageValues],
        stage_states: list[dict[str, Tensor]],
        replay: ReplayBuffer,
    ) -> None:
        """Refuse saved plans whose stages and inputs differ in their number of features."""
        if not stages and any(stage_states):
            raise InvalidInputError("the state has a plan, but its plan_index is 0")
        seen = [buffer.inputs.arrays()[0] for buffer in replay.stages if len(buffer)]
        dims = {stage.heads.shape[1] for stage in stages}
        dims |= {rows.reshape(len(rows), -1).shape[1] for rows in seen} if stages else set()
        if len(dims) > 1:
            raise InvalidInputError(
                f"the state holds heads and inputs of different lengths: {sorted(dims)}"
            )

    def settings(self) -> dict[str, str]:
        """What must be the same to continue from a state."""
        names = ("horizon", "beta", "ridge", "value_range", "replan_growth")
        return {name: describe_setting(getattr(self, name)) for name in names}

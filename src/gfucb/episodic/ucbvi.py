"""UCBVI: optimistic value iteration on tables, for finite sets of states."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.records import Decision, Row
from gfucb.core.setting_descriptions import describe_setting
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import validate_action_sets
from gfucb.core.validation.episodes import validate_size, validate_stage
from gfucb.core.validation.settings import validate_not_negative, validate_pair
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.plan_state import PLAN_INDEX, validate_plan_index
from gfucb.episodic.plan_validation import NUM_SAMPLES, require_close, validate_num_samples
from gfucb.episodic.replay import ReplayBuffer


class UCBVI:
    """UCBVI for each task alone, on states without any similarity (Azar et al., 2017).

    Q = clip(r + P V + c sqrt(1 / n)) with the empirical r and P; the value of a pair without
    samples is the upper end of the range. It plans before every episode, at O(H S^2 A) per task.

    Args:
        num_tasks: M.
        horizon: H.
        bonus: c; the theory has H sqrt(log(...) / 2) in units of the value range.
        value_range: bounds of expected sums of rewards.
    """

    is_markov = True

    def __init__(
        self,
        num_tasks: int,
        horizon: int,
        *,
        bonus: float = 1.0,
        value_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.num_tasks, self.horizon = validate_size(num_tasks, horizon)
        self.bonus = validate_not_negative(bonus, "bonus")
        self.value_range = validate_pair(value_range, "value_range")
        self.plan_index = 0
        self._replay = ReplayBuffer(self.num_tasks, self.horizon)
        # Values of the distinct inputs at the last plan, [stage][input].
        self._values: list[Floats] = [np.zeros(0) for _ in range(self.horizon)]
        self._num_samples = [0] * self.horizon  # at the last plan, [stage]

    def __repr__(self) -> str:
        return (
            f"UCBVI(num_tasks={self.num_tasks}, horizon={self.horizon}, bonus={self.bonus:g}, "
            f"{len(self._replay)} transitions, {self.plan_index} plans)"
        )

    def plan(self, candidates: ArrayLike, tasks: ArrayLike | None = None) -> None:
        """Backward induction on the empirical tables."""
        self._validate(candidates, tasks)
        self._num_samples = [len(buffer) for buffer in self._replay.stages]
        self._values = self._backward(self._replay, self._num_samples)
        self.plan_index += 1

    def _backward(self, replay: ReplayBuffer, num_samples: list[int]) -> list[Floats]:
        """Values from the first `num_samples` [stage] transitions, [stage][input]."""
        low, high = self.value_range
        values: list[Floats] = []
        for buffer, number in zip(reversed(replay.stages), reversed(num_samples), strict=True):
            next_values = self._next_values(buffer, values, replay)
            targets = buffer.targets(next_values, number)
            seen = buffer.num_inputs(number) if number else 0
            counts = np.maximum(buffer.counts(number)[:seen], 1.0)
            means = buffer.target_sums(targets)[:seen] / counts
            values.insert(0, np.clip(means + self.bonus / np.sqrt(counts), low, high))
        return values

    def _next_values(
        self, buffer: StageBuffer, values: list[Floats], replay: ReplayBuffer
    ) -> Floats:
        """V_{h+1} of the next observations of a stage; `values` are those of later stages."""
        following = buffer.next_observations
        if not values or not len(following):
            return np.zeros(len(following))
        shape = following.rows.shape[:2]
        tasks = following.tasks.repeat_interleave(shape[1]).tolist()
        next_buffer = replay.stages[-len(values)]
        found = self._look_up(next_buffer, values[0], tasks, following.flat_rows.numpy())
        return np.asarray(found.reshape(shape).max(axis=1))

    def _look_up(
        self, buffer: StageBuffer, values: Floats, tasks: list[int], inputs: NDArray[np.generic]
    ) -> Floats:
        """Values of inputs [n]; the upper end of the range for inputs without a value."""
        rows = buffer.inputs.find(tasks, inputs)
        known = np.append(values, self.value_range[1])
        # Inputs first observed after the last plan have no value yet.
        rows = np.where(rows < len(values), rows, -1)
        return np.asarray(known[rows])

    def _validate(self, candidates: ArrayLike, tasks: ArrayLike | None) -> ActionSets:
        return validate_action_sets(candidates, tasks, None, num_tasks=self.num_tasks, device="cpu")

    def decide(self, stage: int, candidates: ArrayLike, tasks: ArrayLike | None = None) -> Decision:
        """The first action with the largest value, for every row of a stage."""
        stage = validate_stage(stage, self.horizon)
        action_sets = self._validate(candidates, tasks)
        shape = tuple(action_sets.available.shape)
        row_tasks = action_sets.tasks.repeat_interleave(shape[1]).tolist()
        inputs = action_sets.candidates.flatten(0, 1).numpy()
        found = self._look_up(self._replay.stages[stage], self._values[stage], row_tasks, inputs)
        values = torch.from_numpy(found.reshape(shape))
        actions = action_sets.best_actions(values)
        return action_sets.decision(actions, values.gather(1, actions[:, None]).squeeze(1))

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: ArrayLike,
        next_candidates: ArrayLike | None = None,
        ended: ArrayLike | None = None,
    ) -> None:
        """Store the result of a decision; see `EpisodicGFUCB.observe`."""
        self._replay.append(
            *self._replay.validate(stage, decision, rewards, next_candidates, ended)
        )

    def diagnostics(self) -> Row:
        """The number of plans."""
        return {"plans": self.plan_index}

    def state(self) -> dict[str, Tensor]:
        """All transitions and the values of the plan, as named tensors."""
        stages = [{"values": torch.from_numpy(values.copy())} for values in self._values]
        counters = {
            PLAN_INDEX: torch.tensor(self.plan_index),
            NUM_SAMPLES: torch.tensor(self._num_samples),
        }
        return self._replay.state(stages) | counters

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from a state; it is checked before the agent changes."""
        replay, stage_states, others = self._replay.restored(state)
        validate_state_names(others, [PLAN_INDEX, NUM_SAMPLES])
        plan_index = validate_plan_index(others)
        num_samples = validate_num_samples(others, replay.stages)
        low, high = self.value_range
        values = []
        for own, buffer in zip(stage_states, replay.stages, strict=True):
            validate_state_names(own, ["values"])
            saved = validate_state_tensor(
                own, "values", [None], dtype=torch.float64, low=low, high=high
            )
            if len(saved) > len(buffer.inputs):
                raise InvalidInputError(
                    f"the state has {len(saved)} values for {len(buffer.inputs)} inputs of a stage"
                )
            values.append(saved.numpy().copy())
        self._require_values(values, replay, num_samples)
        self._replay, self._values, self.plan_index = replay, values, plan_index
        self._num_samples = num_samples

    def _require_values(
        self, values: list[Floats], replay: ReplayBuffer, num_samples: list[int]
    ) -> None:
        """Refuse saved values that do not follow from the transitions."""
        for stage, expected in enumerate(self._backward(replay, num_samples)):
            if len(values[stage]) != len(expected):
                raise InvalidInputError(
                    f"the state has {len(values[stage])} values of stage {stage}, but "
                    f"{len(expected)} inputs at its last plan"
                )
            require_close(f"{stage}/values", values[stage], expected, 1e-9)

    def settings(self) -> dict[str, str]:
        """What must be the same to continue from a state."""
        names = ("horizon", "bonus", "value_range")
        return {name: describe_setting(getattr(self, name)) for name in names}

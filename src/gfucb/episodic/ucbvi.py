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
from gfucb.core.validation.episodes import validate_stage
from gfucb.core.validation.settings import validate_count, validate_not_negative, validate_pair
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.episodic.distinct_rows import Floats
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
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        self.horizon = validate_count(horizon, "horizon")
        self.bonus = validate_not_negative(bonus, "bonus")
        self.value_range = validate_pair(value_range, "value_range")
        self.plan_index = 0
        self._replay = ReplayBuffer(self.num_tasks, self.horizon)
        # Values of the distinct inputs at the last plan, [stage][input].
        self._values: list[Floats] = [np.zeros(0) for _ in range(self.horizon)]

    def __repr__(self) -> str:
        return (
            f"UCBVI(num_tasks={self.num_tasks}, horizon={self.horizon}, bonus={self.bonus:g}, "
            f"{len(self._replay)} transitions, {self.plan_index} plans)"
        )

    def plan(self, candidates: ArrayLike, tasks: ArrayLike | None = None) -> None:
        """Backward induction on the empirical tables."""
        self._validate(candidates, tasks)
        low, high = self.value_range
        for stage in reversed(range(self.horizon)):
            buffer = self._replay.stages[stage]
            targets = buffer.targets(self._next_values(stage))
            counts = np.maximum(buffer.counts(len(targets)), 1.0)
            means = buffer.target_sums(targets) / counts
            self._values[stage] = np.clip(means + self.bonus / np.sqrt(counts), low, high)
        self.plan_index += 1

    def _next_values(self, stage: int) -> Floats:
        """V_{h+1} of the next observations of a stage, [next_observation]."""
        following = self._replay.stages[stage].next_observations
        if stage + 1 == self.horizon or not len(following):
            return np.zeros(0)
        shape = following.rows.shape[:2]
        tasks = following.tasks.repeat_interleave(shape[1]).tolist()
        values = self._look_up(stage + 1, tasks, following.flat_rows.numpy())
        return np.asarray(values.reshape(shape).max(axis=1))

    def _look_up(self, stage: int, tasks: list[int], inputs: NDArray[np.generic]) -> Floats:
        """Values of inputs [n]; the upper end of the range for inputs without a value."""
        rows = self._replay.stages[stage].inputs.find(tasks, inputs)
        known = np.append(self._values[stage], self.value_range[1])
        # Inputs first observed after the last plan have no value yet.
        rows = np.where(rows < len(self._values[stage]), rows, -1)
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
        values = torch.from_numpy(self._look_up(stage, row_tasks, inputs).reshape(shape))
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
        return self._replay.state(stages) | {"plan_index": torch.tensor(self.plan_index)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from a state; it is checked before the agent changes."""
        replay, stage_states, others = self._replay.restored(state)
        validate_state_names(others, ["plan_index"])
        plan_index = validate_state_tensor(others, "plan_index", [], dtype=torch.int64, low=0)
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
        self._replay, self._values, self.plan_index = replay, values, int(plan_index)

    def settings(self) -> dict[str, str]:
        """What must be the same to continue from a state."""
        names = ("horizon", "bonus", "value_range")
        return {name: describe_setting(getattr(self, name)) for name in names}

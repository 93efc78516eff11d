"""UCBVI: optimism on tables, for states that are told apart and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.records import ActionSets, Decision, Row
from gfucb.core.validation.bandits import validate_action_sets
from gfucb.core.validation.episodes import validate_stage
from gfucb.core.validation.settings import (
    validate_count,
    validate_not_negative,
    validate_pair,
)
from gfucb.episodic.buffer import Floats
from gfucb.episodic.replay import ReplayBuffer


class UCBVI:
    """UCBVI for each task alone, on states that are told apart, no more (Azar et al., 2017).

    Q = clip(r + P V + c sqrt(1 / n)) with the empirical r and P; what was never tried is worth
    the top of the range. Plans before every episode, at O(H S^2 A) a task.

    Args:
        bonus: c; the theory has H sqrt(log(...) / 2) in units of the value range.
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
        self._values: list[Floats] = [np.zeros(0) for _ in range(self.horizon)]

    def plan(self, candidates: Any, tasks: Any = None) -> None:
        """Backward induction on the empirical tables; values of distinct inputs [input] a stage."""
        low, high = self.value_range
        for stage in reversed(range(self.horizon)):
            memory = self._replay.stages[stage]
            following = np.zeros(0)
            if stage + 1 < self.horizon and len(memory.places):
                shape = memory.places.rows.shape[:2]
                own = memory.places.tasks.repeat_interleave(shape[1]).tolist()
                inputs = memory.places.rows.flatten(0, 1).numpy()
                following = self._look_up(stage + 1, own, inputs).reshape(shape).max(axis=1)
            targets = memory.targets(following)
            counts = np.maximum(memory.counts(len(targets)), 1.0)
            means = memory.target_sums(targets) / counts
            self._values[stage] = np.clip(means + self.bonus / np.sqrt(counts), low, high)
        self.plan_index += 1

    def _look_up(self, stage: int, tasks: list[int], inputs: NDArray[np.generic]) -> Floats:
        """Values of inputs [n]; the top of the range where nothing is known."""
        at = self._replay.stages[stage].inputs.find(tasks, inputs)
        known = np.append(self._values[stage], self.value_range[1])
        # Inputs first played after the last plan have no value yet.
        at = np.where(at < len(self._values[stage]), at, -1)
        return np.asarray(known[at])

    def decide(self, stage: int, candidates: Any, tasks: Any = None) -> Decision:
        """The action with the largest value, the first of equals."""
        stage = validate_stage(stage, self.horizon)
        action_sets = validate_action_sets(
            candidates, tasks, None, num_tasks=self.num_tasks, device="cpu"
        )
        values = torch.from_numpy(self._action_values(stage, action_sets))
        actions = action_sets.best_actions(values)
        return action_sets.decision(actions, values.gather(1, actions[:, None]).squeeze(1))

    def _action_values(self, stage: int, action_sets: ActionSets) -> Floats:
        shape = tuple(action_sets.available.shape)
        tasks = action_sets.tasks.repeat_interleave(shape[1]).tolist()
        return self._look_up(stage, tasks, action_sets.candidates.flatten(0, 1).numpy()).reshape(
            shape
        )

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: Any,
        next_candidates: Any = None,
        ended: Any = None,
    ) -> None:
        """Count."""
        stage, news = self._replay.read(stage, decision, rewards, next_candidates, ended)
        self._replay.stages[stage].append(news)

    def diagnostics(self) -> Row:
        """How many plans were made."""
        return {"plans": self.plan_index}

    def state(self) -> dict[str, Tensor]:
        """Counts and values as named tensors."""
        beside = [{"values": torch.from_numpy(values)} for values in self._values]
        return self._replay.state(beside) | {"plan_index": torch.tensor(self.plan_index)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from there."""
        self._replay, beside = self._replay.of_state(state)
        self._values = [own["values"].numpy() for own in beside]
        self.plan_index = int(state["plan_index"])

    def settings(self) -> dict[str, str]:
        """What must be the same to continue."""
        return {
            "horizon": str(self.horizon),
            "bonus": str(self.bonus),
            "value_range": str(self.value_range),
        }

"""LSVI-UCB on given features, lean: what `lsvi_ucb` computes, in plain numpy arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import Decision, Row
from gfucb.core.validation.episodes import validate_candidates, validate_stage
from gfucb.core.validation.settings import (
    validate_count,
    validate_not_negative,
    validate_pair,
)
from gfucb.episodic.buffer import Floats, StageBuffer
from gfucb.episodic.replay import InformationGain, ReplayBuffer
from gfucb.episodic.settings import default_offset
from gfucb.models import HeadPenalty


@dataclass(frozen=True, eq=False)
class _Stage:
    """Heads and inverse factors of one stage: <w, x> + beta |L^-1 x|."""

    heads: Floats  # [task, feature]
    inverses: Floats  # L^-1, [task, feature, feature]

    def values(self, inputs: Floats, tasks: NDArray[np.int64], beta: float) -> Floats:
        """Upper values, not clipped: [n, feature], [n] -> [n]."""
        if len(self.heads) == 1:
            widths = inputs @ self.inverses[0].T
            return np.asarray(
                inputs @ self.heads[0] + beta * np.sqrt(np.einsum("nf,nf->n", widths, widths))
            )
        widths = np.einsum("nfg,ng->nf", self.inverses[tasks], inputs)
        means = np.einsum("nf,nf->n", inputs, self.heads[tasks])
        return np.asarray(means + beta * np.sqrt(np.einsum("nf,nf->n", widths, widths)))


class LSVIUCB:
    """LSVI-UCB for each task alone on given features, the inputs (Jin et al., 2020).

    Q_h = clip(<w, x> + beta |x|_{V^-1}), w the ridge fit to r + max_a Q_{h+1}. The same decisions
    as `lsvi_ucb`, which goes through the rooms of GFUCB, at a fraction of its cost: a plan is
    O(H (R k^2 + n + M k^3)) for R distinct inputs and n samples a stage, with small constants; it
    is made when a determinant could have grown by `replan_growth`.
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
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        self.horizon = validate_count(horizon, "horizon")
        if not replan_growth >= 1:  # nor NaN
            raise InvalidInputError(f"replan_growth must be at least 1, got {replan_growth}")
        self.beta, self.ridge = validate_not_negative(beta, "beta"), HeadPenalty(ridge).ridge
        self.value_range = validate_pair(value_range, "value_range")
        self.offset = default_offset(self.value_range)
        self.replan_growth = replan_growth
        self._forget()

    def _forget(self) -> None:
        self.plan_index = 0
        self._replay = ReplayBuffer(self.num_tasks, self.horizon)
        self._news = InformationGain(self.num_tasks, self.horizon)
        self._stages: list[_Stage] = []

    def plan(self, candidates: Any, tasks: Any = None) -> None:
        """Backward induction, if enough was learned since the last one."""
        if self._stages and not self._news.could_multiply_by(self.replan_growth):
            return
        inputs, _ = self._read(candidates, tasks)
        stages: list[_Stage] = []
        for memory in reversed(self._replay.stages):
            stages.insert(0, self._fit(memory, stages[0] if stages else None, inputs.shape[-1]))
        self._stages = stages
        self._news = InformationGain(self.num_tasks, self.horizon)
        self.plan_index += 1

    def _read(self, candidates: Any, tasks: Any) -> tuple[Floats, NDArray[np.int64]]:
        """Flat inputs and tasks, once it is clear that they are like those planned for before."""
        inputs, own = validate_candidates(candidates, tasks, self.num_tasks)
        if self._stages and inputs.shape[-1] != self._stages[0].heads.shape[1]:
            raise InvalidInputError(
                f"this agent has planned for inputs of {self._stages[0].heads.shape[1]} numbers, "
                f"got {inputs.shape[-1]}"
            )
        return inputs, own

    def _fit(self, memory: StageBuffer, following: _Stage | None, feature_dim: int) -> _Stage:
        grams = np.zeros((self.num_tasks, feature_dim, feature_dim))
        moments = np.zeros((self.num_tasks, feature_dim))
        if len(memory):
            targets = memory.targets(self._place_values(memory, following))
            counts, sums = memory.counts(len(targets)), memory.target_sums(targets)
            rows, tasks = memory.inputs.arrays()
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
        return _Stage(heads, inverses)

    def _place_values(self, memory: StageBuffer, following: _Stage | None) -> Floats:
        if following is None or not len(memory.places):
            return np.zeros(len(memory.places))
        places, tasks = memory.places.arrays()
        flat = places.reshape(places.shape[0] * places.shape[1], -1)
        values = following.values(flat, np.repeat(tasks, places.shape[1]), self.beta) + self.offset
        low, high = self.value_range
        return np.clip(values.reshape(places.shape[:2]).max(axis=1), low, high)

    def decide(self, stage: int, candidates: Any, tasks: Any = None) -> Decision:
        """The action with the largest upper value, in every entry of a stage."""
        stage = validate_stage(stage, self.horizon)
        inputs, own = self._read(candidates, tasks)
        if not self._stages:
            raise InvalidInputError("there is no plan yet; call plan(candidates) before an episode")
        flat = inputs.reshape(-1, inputs.shape[-1])
        values = self._stages[stage].values(flat, np.repeat(own, inputs.shape[1]), self.beta)
        values = (values + self.offset).reshape(inputs.shape[:2])
        actions = values.argmax(axis=1)
        rows = np.arange(len(actions))
        bonuses = np.clip(values[rows, actions], *self.value_range)
        return Decision(
            torch.from_numpy(own),
            torch.from_numpy(actions),
            torch.from_numpy(inputs[rows, actions]),
            torch.from_numpy(bonuses),
        )

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: Any,
        next_candidates: Any = None,
        ended: Any = None,
    ) -> None:
        """Count what followed a decision."""
        stage, news = self._replay.read(stage, decision, rewards, next_candidates, ended)
        memory = self._replay.stages[stage]
        played = memory.append(news)
        if not self._stages:
            return
        inverses = self._stages[stage].inverses

        def squared_width(task: int, row: int) -> float:
            whitened = inverses[task] @ memory.inputs.row(row).numpy().reshape(-1)
            return float(whitened @ whitened)

        self._news.count(stage, news.tasks, played, squared_width)

    def diagnostics(self) -> Row:
        """How many plans were made."""
        return {"plans": self.plan_index}

    def state(self) -> dict[str, Tensor]:
        """Samples and the plan, as named tensors."""
        beside: list[dict[str, Tensor]] = [
            {
                "heads": torch.from_numpy(stage.heads),
                "inverses": torch.from_numpy(stage.inverses),
            }
            for stage in self._stages
        ]
        return self._replay.state(beside or [{} for _ in range(self.horizon)]) | {
            "plan_index": torch.tensor(self.plan_index),
            "gains": self._news.state(),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from there."""
        self._replay, beside = self._replay.of_state(state)
        self._stages = [
            _Stage(own["heads"].numpy(), own["inverses"].numpy()) for own in beside if own
        ]
        self._news = InformationGain.of_state(state["gains"])
        self.plan_index = int(state["plan_index"])

    def settings(self) -> dict[str, str]:
        """What must be the same to continue."""
        return {
            "horizon": str(self.horizon),
            "beta": str(self.beta),
            "ridge": str(self.ridge),
            "value_range": str(self.value_range),
            "replan_growth": str(self.replan_growth),
        }

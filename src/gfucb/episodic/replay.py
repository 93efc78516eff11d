"""What an episodic agent has seen of all stages, and how much of it is news since the last plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.nested import below
from gfucb.core.validation.episodes import validate_stage, validate_transitions
from gfucb.episodic.buffer import Floats, StageBuffer, Transitions


class ReplayBuffer:
    """The transitions of all stages.

    Attributes:
        stages: the memory of each stage, [stage].
    """

    def __init__(self, num_tasks: int, horizon: int) -> None:
        self.num_tasks = num_tasks
        self.stages = [StageBuffer(num_tasks) for _ in range(horizon)]
        self._like: NDArray[np.generic] | None = None  # an input that was played

    def read(
        self,
        stage: Any,
        decision: Any,
        rewards: Any,
        next_candidates: Any,
        ended: Any,
    ) -> tuple[int, Transitions]:
        """What `observe` was told, checked against itself and against what was seen before."""
        stage = validate_stage(stage, len(self.stages))
        news = validate_transitions(
            decision,
            rewards,
            next_candidates,
            ended,
            num_tasks=self.num_tasks,
            is_last=stage + 1 == len(self.stages),
            like=self._like,
        )
        self.stages[stage].check(news)
        if self._like is None and news.tasks:
            self._like = news.inputs[0].copy()
        return stage, news

    def state(self, beside: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        """All of it as named tensors, and `beside` them others of each stage."""
        return {
            f"{stage}/{name}": tensor
            for stage, (memory, own) in enumerate(zip(self.stages, beside, strict=True))
            for name, tensor in (memory.state() | own).items()
        }

    def of_state(self, state: dict[str, Tensor]) -> tuple[ReplayBuffer, list[dict[str, Tensor]]]:
        """ReplayBuffer like this one in that state, and what stood beside it, by stage."""
        restored, beside = ReplayBuffer(self.num_tasks, len(self.stages)), []
        for stage in range(len(self.stages)):
            own = below(f"{stage}/", state)
            restored.stages[stage] = StageBuffer.of_state(self.num_tasks, own)
            if "inputs" in own:
                restored._like = own["inputs"][0].numpy()
            beside.append({n: t for n, t in own.items() if n not in StageBuffer.NAMES})
        return restored, beside


class InformationGain:
    """What was learned since the last plan: sums of log(1 + phi^T V^-1 phi) over the samples.

    Each is at least what log det V of its stage and task has gained by them.
    """

    def __init__(self, num_tasks: int, horizon: int) -> None:
        self.gains: Floats = np.zeros((horizon, num_tasks))
        self._of_input: list[dict[int, float]] = [{} for _ in range(horizon)]

    def count(
        self,
        stage: int,
        tasks: Sequence[int],
        played: Sequence[int],
        squared_width: Callable[[int, int], float],
    ) -> None:
        """Add samples of inputs `played`; `squared_width`(task, input) is asked once an input."""
        known = self._of_input[stage]
        for task, row in zip(tasks, played, strict=True):
            if row not in known:
                known[row] = math.log1p(squared_width(task, row))
            self.gains[stage, task] += known[row]

    def could_multiply_by(self, growth: float) -> bool:
        """Whether the determinant of some stage and task could have grown so much."""
        return bool(self.gains.max() >= math.log(growth))

    def state(self) -> Tensor:
        """The gains, [stage, task]."""
        return torch.from_numpy(self.gains.copy())

    @classmethod
    def of_state(cls, gains: Tensor) -> InformationGain:
        """Continue from there; widths are asked for again."""
        horizon, num_tasks = gains.shape
        news = cls(num_tasks, horizon)
        news.gains = gains.numpy().copy()
        return news

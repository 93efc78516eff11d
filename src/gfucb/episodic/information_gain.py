"""How much the transitions since the last plan could change it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from gfucb.core.validation.settings import LARGEST_COMPUTED
from gfucb.core.validation.states import validate_state_tensor
from gfucb.episodic.distinct_rows import Floats

GAINS = "gains"  # the name of the gains in a saved state


class InformationGain:
    """Sums of log(1 + phi^T V^-1 phi) over the samples since the last plan, per stage and task.

    V is that of the last plan. Each sum is an upper bound on the growth of log det V.

    Attributes:
        gains: the sums, [stage, task].
    """

    def __init__(self, num_tasks: int, horizon: int) -> None:
        self.gains: Floats = np.zeros((horizon, num_tasks))
        self._gain_of_input: list[dict[int, float]] = [{} for _ in range(horizon)]

    def add(
        self,
        stage: int,
        tasks: Sequence[int],
        input_indices: Sequence[int],
        squared_width: Callable[[int, int], float],
    ) -> None:
        """Add samples of a stage, given by their tasks and the rows of their inputs.

        `squared_width`(task, row) is phi^T V^-1 phi; it is called once for each distinct input.
        """
        known = self._gain_of_input[stage]
        for task, row in zip(tasks, input_indices, strict=True):
            if row not in known:
                known[row] = math.log1p(squared_width(task, row))
            self.gains[stage, task] += known[row]

    def may_exceed(self, growth: float) -> bool:
        """Whether det V of some stage and task may have grown by this factor."""
        return bool(self.gains.max() >= math.log(growth))

    def state(self) -> dict[str, Tensor]:
        """The gains, as a named tensor."""
        return {GAINS: torch.from_numpy(self.gains.copy())}

    def restored(self, state: Mapping[str, Tensor]) -> InformationGain:
        """The gains of a saved state; widths of inputs are computed again when needed."""
        horizon, num_tasks = self.gains.shape
        gains = validate_state_tensor(
            state, GAINS, [horizon, num_tasks], dtype=torch.float64, low=0.0, high=LARGEST_COMPUTED
        )
        restored = InformationGain(num_tasks, horizon)
        restored.gains = gains.numpy().copy()
        return restored

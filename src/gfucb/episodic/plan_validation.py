"""Validation of restored plans: what was saved must follow from the saved transitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.states import validate_state_tensor
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.information_gain import GAINS, InformationGain
from gfucb.episodic.plan_state import TARGETS, PlanState
from gfucb.episodic.planner import Planner
from gfucb.episodic.stage_fit import COUNTERS, StageFit
from gfucb.episodic.stage_plan import StagePlan

# Saved numbers may differ from those computed again by this share, because processors and batches
# round differently.
TOLERANCE = 0.05
GAIN_TOLERANCE = 1e-3
NUM_SAMPLES = "num_samples"  # the name of the samples at the last plan in a saved state


@dataclass(frozen=True, eq=False)
class RestoredPlan:
    """The parts of a restored `EpisodicGFUCB`, before the agent uses them.

    Attributes:
        state: the saved plan.
        fits: of each stage, [stage].
        plans: of each stage before `Backup.start_episode`, [stage].
        buffers: of each stage, [stage].
    """

    state: PlanState
    fits: Sequence[StageFit]
    plans: Sequence[StagePlan]
    buffers: Sequence[StageBuffer]

    def validate(self, planner: Planner, gain: InformationGain) -> None:
        """Refuse counters, targets and gains that do not follow from the transitions."""
        self._validate_counters(planner)
        # From the last stage: targets depend on those of later stages only.
        for stage, saved in reversed(list(enumerate(self.state.targets))):
            next_plan = self.plans[stage + 1] if stage + 1 < len(self.plans) else None
            data = planner.data(stage, self.buffers[stage], next_plan, self.state.example)
            require_close(f"{stage}/{TARGETS}", saved, data.targets[: len(saved)])
        widths = [
            plan.squared_width_of(buffer.inputs)
            for plan, buffer in zip(self.plans, self.buffers, strict=True)
        ]
        validate_gains(gain, self.buffers, [len(own) for own in self.state.targets], widths)

    def _validate_counters(self, planner: Planner) -> None:
        sizes = [len(targets) for targets in self.state.targets]
        if planner.share_stages:  # the first stage counts the samples of all
            sizes = [sum(sizes)] * len(sizes)
        for stage, (fit, size) in enumerate(zip(self.fits, sizes, strict=True)):
            is_possible = (
                fit.num_fits <= self.state.plan_index
                and fit.samples_at_fit <= size
                and (fit.num_fits > 0) == (fit.samples_at_fit > 0)
            )
            if not is_possible:
                raise InvalidInputError(
                    f"'{stage}/{COUNTERS}' of the state give {fit.num_fits} fits, the last with "
                    f"{fit.samples_at_fit} samples, but there are {self.state.plan_index} plans, "
                    f"the last with {size} samples"
                )


def validate_gains(
    gain: InformationGain,
    buffers: Sequence[StageBuffer],
    num_samples: Sequence[int],
    squared_widths: Sequence[Callable[[int, int], float]],
) -> None:
    """Refuse gains that are not those of the samples since the plan.

    The plan had the first `num_samples` [stage] samples. `squared_widths` [stage] are its functions
    of (task, row).
    """
    horizon, num_tasks = gain.gains.shape
    expected = InformationGain(num_tasks, horizon)
    for stage, (buffer, first) in enumerate(zip(buffers, num_samples, strict=True)):
        rows = buffer.input_indices[first:]
        if len(rows):
            tasks = buffer.inputs.tasks[torch.from_numpy(rows)].tolist()
            expected.add(stage, tasks, rows.tolist(), squared_widths[stage])
    difference = np.abs(gain.gains - expected.gains)
    if not (difference <= GAIN_TOLERANCE * expected.gains + 1e-9).all():
        raise InvalidInputError(
            f"{GAINS!r} of the state are not those of the samples since its plan; they differ by "
            f"up to {difference.max():.3g}. The state was changed"
        )


def validate_num_samples(state: Mapping[str, Tensor], buffers: Sequence[StageBuffer]) -> list[int]:
    """The number of samples of each stage at the last plan, [stage], from a saved state."""
    saved = validate_state_tensor(state, NUM_SAMPLES, [len(buffers)], dtype=torch.int64, low=0)
    for stage, (number, buffer) in enumerate(zip(saved.tolist(), buffers, strict=True)):
        if number > len(buffer):
            raise InvalidInputError(
                f"{NUM_SAMPLES!r} of the state gives {number} samples of stage {stage}, which has "
                f"{len(buffer)}"
            )
    return [int(number) for number in saved]


def require_close(name: str, saved: Floats, expected: Floats, tolerance: float = TOLERANCE) -> None:
    """Refuse saved numbers that differ from those computed from the transitions."""
    size = float(np.abs(expected).max(initial=0.0))
    difference = np.abs(saved - expected)
    if not (difference <= tolerance * size + 1e-9).all():
        raise InvalidInputError(
            f"{name!r} of the state do not follow from its transitions; they differ by up to "
            f"{difference.max():.3g}. The state was changed"
        )

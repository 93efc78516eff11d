"""The saved part of a plan: its number, its targets, and the first observations of the episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.arrays import LARGEST_INPUT, require_real
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.information_gain import GAINS

# A larger number of plans would not be exact as a float, and cannot be reached.
LARGEST_PLAN_INDEX = 2**53
# Names of saved tensors.
PLAN_INDEX, TARGETS = "plan_index", "targets"
START_CANDIDATES, START_TASKS = "start.candidates", "start.tasks"


@dataclass(frozen=True, eq=False)
class PlanState:
    """What a plan is computed from, besides buffers and fits.

    Attributes:
        plan_index: the number of plans made, at least 1.
        targets: of each stage, [stage][sample].
        start: the first observations of the episode.
    """

    plan_index: int
    targets: list[Floats]
    start: ActionSets

    @property
    def example(self) -> Tensor:
        """An input, [1, *input]."""
        return self.start.candidates[0, :1]

    def tensors(self) -> dict[str, Tensor]:
        """All but the targets, as named tensors; targets are saved with their stages."""
        return {
            PLAN_INDEX: torch.tensor(self.plan_index),
            START_CANDIDATES: self.start.candidates.clone(),
            START_TASKS: self.start.tasks,
        }

    def stage_tensors(self, stage: int) -> dict[str, Tensor]:
        """The targets of a stage, as a named tensor."""
        return {TARGETS: torch.from_numpy(self.targets[stage])}


def validate_plan_state(
    state: Mapping[str, Tensor],
    stage_states: Sequence[Mapping[str, Tensor]],
    buffers: Sequence[StageBuffer],
) -> PlanState:
    """The plan of a saved state, after a check of its tensors against the saved buffers."""
    validate_state_names(state, [PLAN_INDEX, GAINS, START_CANDIDATES, START_TASKS])
    plan_index = validate_plan_index(state, low=1)
    candidates = state[START_CANDIDATES]
    if candidates.ndim < 2 or 0 in candidates.shape:
        raise InvalidInputError(
            f"{START_CANDIDATES!r} of the state must have the shape [row, action, *input], got "
            f"{list(candidates.shape)}"
        )
    _validate_inputs(state, START_CANDIDATES, buffers)
    high = buffers[0].num_tasks - 1
    tasks = validate_state_tensor(
        state, START_TASKS, [len(candidates)], dtype=torch.int64, low=0, high=high
    )
    available = torch.ones(candidates.shape[:2], dtype=torch.bool)
    start = ActionSets(candidates.clone(), tasks.clone(), available)
    targets = [
        _targets(own, len(buffer), stage)
        for stage, (own, buffer) in enumerate(zip(stage_states, buffers, strict=True))
    ]
    return PlanState(plan_index, targets, start)


def validate_plan_index(state: Mapping[str, Tensor], *, low: int = 0) -> int:
    """The number of plans of a saved state."""
    high = LARGEST_PLAN_INDEX
    return int(validate_state_tensor(state, PLAN_INDEX, [], dtype=torch.int64, low=low, high=high))


def _validate_inputs(
    state: Mapping[str, Tensor], name: str, buffers: Sequence[StageBuffer]
) -> None:
    """Refuse inputs that are not of the shape and type of those in the buffers."""
    seen = [buffer.inputs.rows for buffer in buffers if len(buffer)]
    require_real(state[name], f"{name!r} of the state")
    if seen and not _are_alike(seen[0].dtype, state[name].dtype):
        raise InvalidInputError(
            f"{name!r} of the state must be {seen[0].dtype}, as the inputs, got {state[name].dtype}"
        )
    shape = seen[0].shape[1:] if seen else state[name].shape[2:]
    validate_state_tensor(state, name, [None, None, *shape], low=-LARGEST_INPUT, high=LARGEST_INPUT)


def _are_alike(one: torch.dtype, other: torch.dtype) -> bool:
    """Whether they are equal, or two floats that hold the same numbers up to rounding."""
    return one == other or {one, other} == {torch.float32, torch.float64}


def _targets(state: Mapping[str, Tensor], num_samples: int, stage: int) -> Floats:
    if TARGETS not in state:
        raise InvalidInputError(f"the state has no tensor '{stage}/{TARGETS}'")
    targets = validate_state_tensor(state, TARGETS, [None], dtype=torch.float64)
    if len(targets) > num_samples:
        raise InvalidInputError(
            f"'{stage}/{TARGETS}' of the state has {len(targets)} numbers for {num_samples} samples"
        )
    values: Floats = targets.numpy().copy()
    return values

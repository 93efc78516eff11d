"""The transitions of all stages of an episodic agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.nested import below, with_prefix
from gfucb.core.records import Decision, Transitions
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.episodes import validate_stage, validate_transitions
from gfucb.core.validation.states import validate_state
from gfucb.episodic.buffer import StageBuffer

_BUFFER = "buffer."  # before the names of the tensors of a stage's buffer


class ReplayBuffer:
    """The transitions of all stages.

    Attributes:
        stages: the buffer of each stage, [stage].
    """

    def __init__(self, num_tasks: int, horizon: int) -> None:
        self.num_tasks = num_tasks
        self.stages = [StageBuffer(num_tasks) for _ in range(horizon)]
        self._example: NDArray[np.generic] | None = None  # an input that was observed

    def __len__(self) -> int:
        return sum(len(buffer) for buffer in self.stages)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of inputs; () before the first transition."""
        return () if self._example is None else self._example.shape

    def validate(
        self,
        stage: int,
        decision: Decision,
        rewards: ArrayLike,
        next_candidates: ArrayLike | None,
        ended: ArrayLike | None,
    ) -> tuple[int, Transitions]:
        """The arguments of `observe`, checked by themselves and against earlier transitions.

        Nothing is stored.
        """
        stage = validate_stage(stage, len(self.stages))
        transitions = validate_transitions(
            decision,
            rewards,
            next_candidates,
            ended,
            num_tasks=self.num_tasks,
            is_last=stage + 1 == len(self.stages),
            like=self._example,
        )
        self.stages[stage].validate(transitions)
        return stage, transitions

    def append(self, stage: int, transitions: Transitions) -> list[int]:
        """Store validated transitions; return the rows of their inputs in the stage's buffer."""
        if self._example is None and transitions.tasks:
            self._example = transitions.inputs[0].copy()
        return self.stages[stage].append(transitions)

    def state(self, stage_states: Sequence[Mapping[str, Tensor]] = ()) -> dict[str, Tensor]:
        """All transitions as named tensors; `stage_states` [stage] are saved next to them."""
        tensors: dict[str, Tensor] = {}
        for stage, buffer in enumerate(self.stages):
            tensors |= with_prefix(f"{stage}/{_BUFFER}", buffer.state())
            tensors |= with_prefix(f"{stage}/", stage_states[stage] if stage_states else {})
        return tensors

    def restored(
        self, state: Mapping[str, Tensor]
    ) -> tuple[ReplayBuffer, list[dict[str, Tensor]], dict[str, Tensor]]:
        """A buffer with this state, the `stage_states` [stage], and all other tensors.

        This buffer does not change.
        """
        validate_state(state)
        restored, stage_states = ReplayBuffer(self.num_tasks, len(self.stages)), []
        for stage in range(len(self.stages)):
            own = below(f"{stage}/", state)
            buffer = StageBuffer.of_state(self.num_tasks, below(_BUFFER, own))
            restored.stages[stage] = buffer
            if len(buffer.inputs):
                restored._require_one_kind_of_input(buffer)
            stage_states.append({n: t for n, t in own.items() if not n.startswith(_BUFFER)})
        numbers = {str(stage) for stage in range(len(self.stages))}
        others = {n: t for n, t in state.items() if n.partition("/")[0] not in numbers}
        return restored, stage_states, others

    def _require_one_kind_of_input(self, buffer: StageBuffer) -> None:
        """Refuse saved stages whose inputs differ in shape or type."""
        example = buffer.inputs.row(0).numpy()
        if self._example is None:
            self._example = example.copy()
        elif (self._example.shape, self._example.dtype) != (example.shape, example.dtype):
            raise InvalidInputError(
                "the stages of the state hold inputs of different kinds: "
                f"{self._example.dtype} of shape {list(self._example.shape)} and "
                f"{example.dtype} of shape {list(example.shape)}"
            )

"""When an agent plans again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import validate_number
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.information_gain import InformationGain

ReplanKind = Literal["determinant", "doubling", "every"]


@dataclass(frozen=True)
class ReplanRule:
    """Whether the transitions since the last plan require another one.

    Args:
        kind: `determinant`: if they could multiply det V of some stage and task by `growth`;
            `doubling`: if some stage has `growth` times the samples; `every`: if there are any.
        growth: the factor, above 1.
    """

    kind: ReplanKind
    growth: float

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in ("determinant", "doubling", "every"):
            raise InvalidInputError(
                f"replan must be 'determinant', 'doubling' or 'every', got {self.kind!r}"
            )
        growth = validate_number(self.growth, "replan_growth", above=1.0)
        object.__setattr__(self, "growth", growth)

    def is_due(
        self, gain: InformationGain, buffers: Sequence[StageBuffer], targets: Sequence[Floats]
    ) -> bool:
        """Whether to plan again; `targets` [stage][sample] are those of the last plan."""
        if self.kind == "determinant":
            return gain.may_exceed(self.growth)
        samples = [(len(b), len(t)) for b, t in zip(buffers, targets, strict=True)]
        if self.kind == "every":
            return any(now > then for now, then in samples)
        return any(now >= max(then + 1, self.growth * then) for now, then in samples)

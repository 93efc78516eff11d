"""Names and defaults of what an episodic agent is built with."""

from __future__ import annotations

import math
from typing import Any, Literal

from gfucb.core.errors import InvalidInputError, lookup
from gfucb.core.protocols import ActionSelector
from gfucb.core.validation.settings import validate_not_negative
from gfucb.episodic.backups import Backup, Pointwise, Randomised
from gfucb.episodic.backups import Literal as LiteralBackup
from gfucb.episodic.joint_backup import Joint
from gfucb.estimation import ConstantRadius

Replanning = Literal["determinant", "doubling", "every"]
# The default squared radius is (this times the width of the value range)^2. With the default ridge
# a pair never played then bonuses for the whole range, and one played n times for 0.3 / sqrt(n) more
# than its fit.
BONUS_SCALE = 0.3


def default_stage_radius(value_range: tuple[float, float] | None) -> ConstantRadius:
    """A bonus as large as the value range for what was never tried."""
    # Paper: beta_h of Lemma 4, which exceeds any range by far; see `CorrectedStageRadius`.
    low, high = value_range or (0.0, 1.0)
    return ConstantRadius((BONUS_SCALE * (high - low)) ** 2)


def default_offset(value_range: tuple[float, float] | None) -> float:
    """The bottom of a range above zero, so that a pair never played bonuses for the top of it."""
    # A bandit takes the middle. Here bonus_scale is offset + 0.3 / sqrt(ridge) widths of the range, nearly
    # one width: from the bottom that is the top, as it always was for ranges that begin at 0. Where
    # the range begins below 0, zero is at least that optimistic, also for the short ranges of the last
    # stages.
    return 0.0 if value_range is None else max(0.0, float(value_range[0]))


def validate_auxiliary_targets(next_targets: Any, reward_weight: float) -> tuple[int, float]:
    """A number of directions and a weight, neither negative."""
    is_integer = hasattr(next_targets, "__index__") and not isinstance(next_targets, bool)
    if not is_integer or next_targets < 0:
        raise InvalidInputError(
            f"next_targets must be an integer of at least 0 (0 for none), got {next_targets!r}"
        )
    return int(next_targets), validate_not_negative(reward_weight, "reward_weight")


def make_backup(name: str, solver: ActionSelector) -> Backup:
    """The backup of that name, or an error that lists them all."""
    backups: dict[str, Backup] = {
        "pointwise": Pointwise(),
        "literal": LiteralBackup(solver),
        "joint": Joint(solver),
        "randomised": Randomised(),
    }
    return lookup(backups, name, "backup")


def check_replanning(replan: str, growth: float) -> tuple[Replanning, float]:
    """A known rule and a factor above one."""
    if replan not in ("determinant", "doubling", "every"):
        raise InvalidInputError(
            f"replan must be 'determinant', 'doubling' or 'every', got {replan!r}"
        )
    if not (math.isfinite(growth) and growth > 1):
        raise InvalidInputError(f"replan_growth must be finite and above 1, got {growth}")
    return replan, growth  # type: ignore[return-value]

"""Names, defaults and checks of the settings of episodic agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gfucb.core.errors import lookup
from gfucb.core.protocols import Backup
from gfucb.core.validation.components import validate_action_selector
from gfucb.core.validation.settings import validate_methods
from gfucb.episodic.backups import LiteralBackup, PointwiseBackup, RandomisedBackup
from gfucb.episodic.joint_backup import JointBackup
from gfucb.estimation import ConstantRadius

Range = tuple[float, float]

# The default squared radius is (this times the width of the value range)^2. With the default ridge,
# the bonus of a pair without samples is then about the whole range, and that of a pair with n
# samples 0.3 / sqrt(n) of it.
STAGE_BONUS_SCALE = 0.3
BACKUP_METHODS = ("is_markov", "prepare", "start_episode", "action_values", "select")


def default_stage_radius(value_range: Range | None) -> ConstantRadius:
    """The radius whose bonus is about the width of the value range for pairs without samples."""
    # Paper: beta_h of Lemma 4, which exceeds any range by far; see `CorrectedStageRadius`.
    low, high = value_range or (0.0, 1.0)
    return ConstantRadius((STAGE_BONUS_SCALE * (high - low)) ** 2)


def default_offset(value_range: Range | None) -> float:
    """The lower end of a range above zero, otherwise zero."""
    # A bandit uses the middle of the range. Here the optimistic value of a pair without samples is
    # offset + 0.3 / sqrt(ridge) widths of the range, nearly offset + one width: from the lower end
    # that is the upper end. Where the range starts below 0, zero is at least as optimistic, also
    # for the short ranges of the last stages.
    return 0.0 if value_range is None else max(0.0, float(value_range[0]))


def stage_ranges(
    value_range: Range | None, reward_range: Range | None, horizon: int
) -> tuple[Range | None, ...]:
    """The bounds of the values of each stage, [stage]; None where nothing is known."""
    if reward_range is None:
        return (value_range,) * horizon
    ranges = []
    for to_go in reversed(range(1, horizon + 1)):
        # An episode may end early, so at least one and at most `to_go` rewards follow.
        low = min(reward_range[0], to_go * reward_range[0])
        high = max(reward_range[1], to_go * reward_range[1])
        if value_range is not None:
            low, high = max(low, value_range[0]), min(high, value_range[1])
        ranges.append((low, high))
    return tuple(ranges)


def validate_backup(backup: Any, action_selector: Any) -> Backup:
    """The backup of a name, with `action_selector` where it needs one, or a `Backup` as it is."""
    selector = validate_action_selector(action_selector)
    backups: dict[str, Callable[[], Backup]] = {
        "pointwise": PointwiseBackup,
        "literal": lambda: LiteralBackup(selector),
        "joint": lambda: JointBackup(selector),
        "randomised": RandomisedBackup,
    }
    if isinstance(backup, str):
        return lookup(backups, backup, "backup")()
    return validate_methods(backup, f"backup, if not one of {sorted(backups)},", BACKUP_METHODS)

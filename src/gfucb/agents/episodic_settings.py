"""Names and defaults of what an episodic agent is built with."""

from __future__ import annotations

import math
from typing import Literal

from gfucb.agents.backups import Backup, Pointwise, Randomised
from gfucb.agents.backups import Literal as LiteralBackup
from gfucb.agents.joint_backup import Joint
from gfucb.contracts import OptimismSolver
from gfucb.errors import InvalidInputError, lookup
from gfucb.estimation import ConstantRadius

Replanning = Literal["determinant", "doubling", "every"]
# The default squared radius is (this times the width of the value range)^2. With the default ridge
# a pair never played then hopes for the whole range, and one played n times for 0.3 / sqrt(n) more
# than its fit.
DEFAULT_HOPE = 0.3


def default_stage_radius(value_range: tuple[float, float] | None) -> ConstantRadius:
    """A bonus as large as the value range for what was never tried."""
    # Paper: beta_h of Lemma 4, which exceeds any range by far; see `CorrectedStageRadius`.
    low, high = value_range or (0.0, 1.0)
    return ConstantRadius((DEFAULT_HOPE * (high - low)) ** 2)


def make_backup(name: str, solver: OptimismSolver) -> Backup:
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

"""A radius that is learned: every reward is a fresh test of the width predicted for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import Prediction
from gfucb.core.validation.states import validate_state_tensor


@dataclass(frozen=True)
class CalibratedRadius:
    """beta = factor * (tasks asked) * scale^2, with the scale that makes bounds come true.

    A reward y is held against what was predicted when the action was chosen: the estimate f and
    the width w of the set of squared radius 1. With noise of standard deviation s and heads that
    are not known better than w says, y - f has the standard deviation s sqrt(1 + w^2), so

        score = |y - f| / sqrt(1 + w^2)

    is in the units of a scale, noise included, and the scale is the smallest one that would have
    covered a share `target` of recent scores. The widths scale * w then shrink with the noise
    and with the errors of the fit, and with nothing that was not known when deciding. Solvers
    prediction different widths and so get different scales.

    Args:
        target: share of rewards within estimate +- scale sqrt(1 + w^2); None keeps `start`.
        start: the scale before `warm_up` rewards have come.
        window: recent scores that count; at most a quarter of all, so that early errors are
            forgotten.
        warm_up: rewards before the first calibration.
        factor: multiplies beta.
    """

    # Paper: one schedule a log(b t + c), tuned by hand for one solver and one noise. Its
    # candidates stay feasible under a smaller radius but the truth may not (section 6.3); here
    # the share of bounds kept is what is held constant.
    start: float
    target: float | None = 0.8
    window: int = 2000
    warm_up: int = 20
    factor: float = 1.0

    def __post_init__(self) -> None:
        if self.target is not None and not 0 < self.target < 1:
            raise InvalidInputError(
                f"target must lie between 0 and 1 or be None, got {self.target}"
            )
        for name in ("start", "factor"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InvalidInputError(f"{name} must be finite and not negative, got {value}")
        if self.window < self.warm_up or self.warm_up < 1:
            raise InvalidInputError(
                f"1 <= warm_up <= window is needed, got {self.warm_up} and {self.window}"
            )


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the tests of a `CalibratedRadius` have shown so far, as a value.

    Attributes:
        scores: the most recent ones, oldest first, [test].
        num_tests: how many bounds have been tested.
        num_kept: how many of those held at the scale of their time.
    """

    radius: CalibratedRadius
    scores: Tensor
    num_tests: int = 0
    num_kept: int = 0

    @classmethod
    def begin(cls, radius: CalibratedRadius) -> Calibration:
        """Before any test."""
        return cls(radius, torch.zeros(0, dtype=torch.float64))

    @property
    def scale(self) -> float:
        """Smallest scale that covers the target share of the recent scores."""
        if self.radius.target is None or self.num_tests < self.radius.warm_up:
            return self.radius.start
        recent = self.scores[-max(self.radius.warm_up, self.num_tests // 4) :]
        # The quantile of split conformal prediction: one score is still to come.
        rank = math.ceil(self.radius.target * (len(recent) + 1))
        return float(recent.kthvalue(min(rank, len(recent))).values)

    def squared_radius(self, asked: int) -> float:
        """Beta for a decision in which so many tasks take part."""
        return self.radius.factor * asked * self.scale**2

    @property
    def coverage(self) -> float:
        """Share of bounds kept, each at the scale of its time; NaN before the first test."""
        return self.num_kept / self.num_tests if self.num_tests else math.nan

    def tensors(self) -> dict[str, Tensor]:
        """For saving, with names that begin with `calibration.`."""
        counts = torch.tensor([self.num_tests, self.num_kept])
        return {"calibration.scores": self.scores, "calibration.counts": counts}

    def restored(self, state: dict[str, Tensor]) -> Calibration:
        """The calibration whose `tensors` are in `state`; a fresh one if it is empty."""
        if not state:
            return Calibration.begin(self.radius)
        counts = validate_state_tensor(state, "calibration.counts", (2,), dtype=torch.int64, low=0)
        num_tests, num_kept = counts.tolist()
        length = min(num_tests, self.radius.window)
        scores = validate_state_tensor(
            state, "calibration.scores", (length,), dtype=torch.float64, low=0
        )
        if num_kept > num_tests:
            raise InvalidInputError(
                f"'calibration.counts' of the state says that {num_kept} of {num_tests} rewards "
                "were inside their intervals"
            )
        return Calibration(self.radius, scores.cpu(), num_tests, num_kept)

    def after(self, prediction: Prediction, rewards: Tensor) -> Calibration:
        """The calibration after rewards [row] for what was predicted."""
        errors = (rewards - prediction.mean.cpu()).abs()
        scores = errors / (1 + prediction.variance.cpu()).sqrt()
        return Calibration(
            self.radius,
            torch.cat([self.scores, scores])[-self.radius.window :],
            self.num_tests + len(scores),
            self.num_kept + int((scores <= self.scale).sum()),
        )

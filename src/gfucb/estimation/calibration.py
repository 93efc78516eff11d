"""A radius that is calibrated online, so that predicted intervals have a target coverage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Radius, RadiusState
from gfucb.core.records import Prediction, Row
from gfucb.core.shards import OneShard, Shards, global_tasks
from gfucb.core.validation.settings import (
    LARGEST_COMPUTED,
    validate_count,
    validate_not_negative,
    validate_number,
)
from gfucb.core.validation.states import validate_state_tensor


@dataclass(frozen=True)
class CalibratedRadius(Radius):
    """beta = factor * (number of tasks) * radius^2, calibrated to a target coverage.

    A reward y is compared with the prediction of its decision: the mean f and the unit variance
    v, that of the confidence set with squared radius 1. With noise of standard deviation s, and
    heads as uncertain as v states, y - f has the standard deviation s sqrt(1 + v). So

        score = |y - f| / sqrt(1 + v)

    estimates a radius that includes the noise, and the calibrated radius is the smallest one that
    covers a share `target_coverage` of the recent scores. The intervals f +- radius sqrt(v) then
    shrink with the noise and with the errors of the fit. All quantities are known when the agent
    decides. Selectors with different variances have different radii.

    Args:
        initial_radius: the radius of one task before `warm_up` rewards.
        target_coverage: share of rewards inside f +- radius sqrt(1 + v); None always uses
            `initial_radius`.
        window: the number of recent scores that count. At most a quarter of all scores count, so
            that early errors do not count for long.
        warm_up: the number of rewards before the first calibration.
        factor: multiplies beta.
    """

    # Paper: one schedule a log(b t + c), tuned by hand for one selector and one noise scale. With a
    # smaller radius its candidates stay feasible but the true function may not (section 6.3).
    # Here the coverage is constant instead.
    initial_radius: float
    target_coverage: float | None = 0.8
    window: int = 2000
    warm_up: int = 20
    factor: float = 1.0

    def __post_init__(self) -> None:
        validate_not_negative(self.initial_radius, "initial_radius")
        validate_not_negative(self.factor, "factor")
        validate_count(self.warm_up, "warm_up")
        validate_count(self.window, "window", at_least=self.warm_up)
        if self.target_coverage is not None:
            target = validate_number(self.target_coverage, "target_coverage", above=0.0)
            if not target < 1:
                raise InvalidInputError(f"target_coverage must be below 1, got {target}")

    def initial(self) -> Calibration:
        """The calibration before any reward."""
        return Calibration(self, torch.zeros(0, dtype=torch.float64))


@dataclass(frozen=True)
class RelativeRadius(CalibratedRadius):
    """A `CalibratedRadius` whose initial radius is in units of the estimated scale of rewards."""


@dataclass(frozen=True, eq=False)
class Calibration(RadiusState):
    """The state of a `CalibratedRadius` after some rewards, as a value.

    Attributes:
        radius: the settings.
        scores: the most recent scores, oldest first, [reward].
        num_rewards: how many rewards were compared with their predictions.
        num_covered: how many of them were inside the interval predicted for them.
        unit: the unit of the initial radius.
    """

    radius: CalibratedRadius
    scores: Tensor
    num_rewards: int = 0
    num_covered: int = 0
    unit: float = 1.0

    @property
    def task_radius(self) -> float:
        """The radius of one task: the smallest that covers the target share of recent scores."""
        target = self.radius.target_coverage
        if target is None or self.num_rewards < self.radius.warm_up:
            return self.radius.initial_radius * self.unit
        recent = self.scores[-max(self.radius.warm_up, self.num_rewards // 4) :]
        # The quantile of split conformal prediction, which includes the score of the next reward.
        rank = math.ceil(target * (len(recent) + 1))
        return float(recent.kthvalue(min(rank, len(recent))).values)

    def squared_radius(self, round_index: int, num_sharing: int) -> float:
        """Beta of a decision in which `num_sharing` tasks share it, the same in every round."""
        # Paper: one radius for all tasks, however many take part. A task that decides alone would
        # then have the bonus of M tasks to itself.
        return self.radius.factor * num_sharing * self.task_radius**2

    @property
    def coverage(self) -> float:
        """Share of rewards inside the interval predicted for them; NaN before the first reward."""
        return self.num_covered / self.num_rewards if self.num_rewards else math.nan

    def diagnostics(self) -> Row:
        """The coverage."""
        return {"coverage": self.coverage}

    def tensors(self) -> dict[str, Tensor]:
        """The recent scores and the two counts."""
        counts = torch.tensor([self.num_rewards, self.num_covered])
        return {"calibration.scores": self.scores, "calibration.counts": counts}

    def restored(self, tensors: Mapping[str, Tensor]) -> Calibration:
        """The calibration with these `tensors`, checked."""
        counts = validate_state_tensor(
            tensors, "calibration.counts", (2,), dtype=torch.int64, low=0
        )
        num_rewards, num_covered = counts.tolist()
        length = min(num_rewards, self.radius.window)
        scores = validate_state_tensor(
            tensors,
            "calibration.scores",
            (length,),
            dtype=torch.float64,
            low=0,
            high=LARGEST_COMPUTED,
        )
        if num_covered > num_rewards:
            raise InvalidInputError(
                f"'calibration.counts' of the state give {num_covered} of {num_rewards} rewards "
                "inside their intervals"
            )
        return Calibration(self.radius, scores.cpu(), num_rewards, num_covered)

    def after(self, prediction: Prediction, rewards: Tensor) -> Calibration:
        """The calibration after rewards [row] of actions with this prediction."""
        errors = (rewards - prediction.mean.cpu()).abs()
        scores = errors / (1 + prediction.variance.cpu()).sqrt()
        return Calibration(
            self.radius,
            torch.cat([self.scores, scores])[-self.radius.window :],
            self.num_rewards + len(scores),
            self.num_covered + int((scores <= self.task_radius).sum()),
            self.unit,
        )


def with_reward_scale(state: RadiusState, scale: float) -> RadiusState:
    """The state after the scale of rewards has changed; only a `RelativeRadius` depends on it."""
    if isinstance(state, Calibration) and isinstance(state.radius, RelativeRadius):
        return replace(state, unit=scale)
    return state


def all_scored(
    prediction: Prediction, rewards: Tensor, tasks: Tensor, shards: Shards
) -> tuple[Prediction, Tensor]:
    """Predictions and rewards [row] of all shards, in the order of their tasks."""
    if isinstance(shards, OneShard):
        return prediction, rewards
    numbers = global_tasks(shards, tasks.cpu()).double()
    own = [numbers, prediction.mean.cpu(), prediction.variance.cpu(), rewards]
    rows = shards.gather(torch.stack(own, dim=1))
    _, mean, variance, rewards = rows[rows[:, 0].argsort(stable=True)].unbind(1)
    return Prediction(mean, variance), rewards

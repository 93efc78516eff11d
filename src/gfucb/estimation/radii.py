"""Squared radii by schedule: constant, logarithmic, scaled.

The round t is the next round, counted from 1, so the data are the rewards of rounds 1 .. t - 1.
With partial rounds t is one more than the largest number of samples of a task
(`MultitaskDataset.round_index`). The radii of Lemma 1 are in `gfucb.theory.lemma_radii`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Radius, RadiusState, SquaredRadius
from gfucb.core.records import Prediction, Row
from gfucb.core.validation.settings import (
    validate_component,
    validate_not_negative,
    validate_number,
)


@dataclass(frozen=True)
class ConstantRadius(SquaredRadius):
    """beta_t = value."""

    value: float

    def __post_init__(self) -> None:
        validate_not_negative(self.value, "value")

    def __call__(self, round_index: int) -> float:
        """The same value in every round."""
        return self.value


@dataclass(frozen=True)
class LogRadius(SquaredRadius):
    """beta_t = a log(b t + c), the schedule of section 6.2 with its constants."""

    a: float = 0.4
    b: float = 0.5
    c: float = 2.0

    def __post_init__(self) -> None:
        validate_not_negative(self.a, "a")
        validate_not_negative(self.b, "b")
        if not self.b + validate_number(self.c, "c") >= 1:
            raise InvalidInputError(f"b + c must be at least 1, got b={self.b}, c={self.c}")

    def __call__(self, round_index: int) -> float:
        """The logarithmic schedule at t; it does not depend on the number of tasks."""
        return self.a * math.log(self.b * round_index + self.c)


@dataclass(frozen=True)
class ScaledRadius(SquaredRadius):
    """beta_t = factor * radius(t)."""

    radius: SquaredRadius
    factor: float

    def __post_init__(self) -> None:
        validate_not_negative(self.factor, "factor")
        validate_component(
            self.radius, "radius", "a function of the round, such as ConstantRadius(1.0)"
        )

    def __call__(self, round_index: int) -> float:
        """The scaled radius at t."""
        return self.factor * self.radius(round_index)


@dataclass(frozen=True)
class Scheduled(RadiusState):
    """The state of a function of the round: rewards do not change it."""

    radius: SquaredRadius

    def squared_radius(self, round_index: int, num_sharing: int) -> float:
        """The value of the function, checked; it does not depend on the number of tasks."""
        value = self.radius(round_index)
        return validate_number(value, f"the squared radius of round {round_index}", at_least=0.0)

    def after(self, prediction: Prediction, rewards: Tensor) -> Scheduled:
        """The same state."""
        return self

    def diagnostics(self) -> Row:
        """None."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """None."""
        return {}

    def restored(self, tensors: Mapping[str, Tensor]) -> Scheduled:
        """The same state."""
        return self


def initial_radius_state(radius: Radius | SquaredRadius) -> RadiusState:
    """The state of a radius before any reward."""
    return radius.initial() if isinstance(radius, Radius) else Scheduled(radius)

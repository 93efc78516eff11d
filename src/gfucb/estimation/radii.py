"""Squared radii one can act on: constants, the schedule of the experiments, multiples.

In all of them `t` is the round about to be played, counted from 1, so the data are the
rewards of rounds 1 .. t - 1. With partial rounds it is one more than the largest number of
samples any task has (`MultitaskDataset.round_index`). Those of the theory are in
`gfucb.theory.lemma_radii`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import SquaredRadius
from gfucb.theory.requirements import require_not_negative


@dataclass(frozen=True)
class ConstantRadius:
    """beta_t = value."""

    value: float

    def __post_init__(self) -> None:
        require_not_negative(value=self.value)

    def __call__(self, round_index: int) -> float:
        """The same at every t."""
        return self.value


@dataclass(frozen=True)
class LogRadius:
    """beta_t = a log(b t + c), the schedule of section 6.2 with its constants."""

    a: float = 0.4
    b: float = 0.5
    c: float = 2.0

    def __post_init__(self) -> None:
        require_not_negative(a=self.a, b=self.b)
        if not (math.isfinite(self.c) and self.b + self.c >= 1):
            raise InvalidInputError(f"b + c must be at least 1, got b={self.b}, c={self.c}")

    def __call__(self, round_index: int) -> float:
        """Grows with the logarithm of t; does not depend on the number of tasks."""
        return self.a * math.log(self.b * round_index + self.c)


@dataclass(frozen=True)
class ScaledRadius:
    """beta_t = factor * radius(t)."""

    radius: SquaredRadius
    factor: float

    def __post_init__(self) -> None:
        require_not_negative(factor=self.factor)

    def __call__(self, round_index: int) -> float:
        """A multiple of another radius."""
        return self.factor * self.radius(round_index)

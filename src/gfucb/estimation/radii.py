"""Squared radii beta_t of the confidence set, as functions of the round.

In all of them `t` is the round about to be played, counted from 1, so the data are the
rewards of rounds 1 .. t - 1. With partial rounds it is one more than the largest number of
samples any task has (`MultitaskDataset.round_index`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gfucb.contracts import SquaredRadius
from gfucb.errors import InvalidInputError


def _require_positive(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise InvalidInputError(f"{name} must be positive and finite, got {value}")


def _require_not_negative(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise InvalidInputError(f"{name} must be finite and not negative, got {value}")


def _require_probability(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < 1:
            raise InvalidInputError(f"{name} must lie strictly between 0 and 1, got {value}")


@dataclass(frozen=True)
class ConstantRadius:
    """beta_t = value."""

    value: float

    def __post_init__(self) -> None:
        _require_not_negative(value=self.value)

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
        _require_not_negative(a=self.a, b=self.b)
        if self.b + self.c < 1:
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
        _require_not_negative(factor=self.factor)

    def __call__(self, round_index: int) -> float:
        """A multiple of another radius."""
        return self.factor * self.radius(round_index)


@dataclass(frozen=True)
class PrintedRadius:
    """beta_t of Lemma 1 as printed, for noise of scale 1.

        12 M k + 12 log(N / delta) + 8 alpha sqrt(M t k (M t + log(2 M t^2 / delta))).

    Kept for the record: its chi-square tail, its independence argument and its missing noise
    scale do not hold; see `CorrectedRadius`.
    """

    num_tasks: int
    feature_dim: int
    log_covering_number: float
    """log N(Phi, cover_scale)."""
    cover_scale: float
    """alpha; the paper takes 1 / (k M T)."""
    failure_probability: float = 0.05
    """delta; the set is claimed to hold the truth with probability 1 - 2 delta."""

    def __post_init__(self) -> None:
        _require_positive(num_tasks=self.num_tasks, feature_dim=self.feature_dim)
        _require_not_negative(
            log_covering_number=self.log_covering_number, cover_scale=self.cover_scale
        )
        _require_probability(failure_probability=self.failure_probability)

    def __call__(self, round_index: int) -> float:
        """The printed formula at t."""
        heads, samples = self.num_tasks * self.feature_dim, self.num_tasks * round_index
        log_inverse = math.log(1 / self.failure_probability)
        discretisation = samples + math.log(2 * samples * round_index) + log_inverse
        return (
            12 * heads
            + 12 * (self.log_covering_number + log_inverse)
            + 8 * self.cover_scale * math.sqrt(samples * self.feature_dim * discretisation)
        )


@dataclass(frozen=True)
class CorrectedRadius:
    """beta_t that holds for noise of scale sigma, adaptive data and all t, with prob. 1 - delta.

        a^2 = sigma^2 [ 2 M k log(1 + t / sigma^2) + 4 log N + 2 log(2 / delta) ]
        e   = alpha sqrt(2 k M t)
        n   = sigma sqrt(M t + 2 sqrt(M t L) + 2 L),   L = log(pi^2 t^2 / (3 delta))
        beta_t = 8 a^2 + 4 (a + n) e + 2 optimisation_error + 6 k M ridge

    The tail is that of the self-normalised martingale bound (Abbasi-Yadkori et al. 2011), at
    the price of log(1 + t / sigma^2) beside M k.

    The last term pays for the ridge: the fit minimises error + ridge |W|^2, which may exceed
    the truth's error by k M ridge (twice that in beta), and the truth's heads may be
    2 sqrt(k) from their anchor. Heads are assumed to satisfy |w| <= sqrt(k), features |phi| <= 1.
    """

    # Paper: Lemma 1 takes the noise scale to be 1, a chi-square tail that is too thin, and treats
    # inputs chosen by the agent as independent of the noise.
    num_tasks: int
    feature_dim: int
    log_covering_number: float
    """log N(Phi, cover_scale / sqrt(2))."""
    cover_scale: float
    """alpha; 0 for a finite class, which covers itself."""
    noise_scale: float
    """sigma: the noise is sigma-sub-Gaussian."""
    failure_probability: float = 0.05
    """delta."""
    ridge: float = 0.0
    """The ridge of the fit and of the confidence set."""
    optimisation_error: float = 0.0
    """How far the fit's penalised error may be above the smallest possible."""

    def __post_init__(self) -> None:
        _require_positive(
            num_tasks=self.num_tasks, feature_dim=self.feature_dim, noise_scale=self.noise_scale
        )
        _require_not_negative(
            log_covering_number=self.log_covering_number,
            cover_scale=self.cover_scale,
            ridge=self.ridge,
            optimisation_error=self.optimisation_error,
        )
        _require_probability(failure_probability=self.failure_probability)

    def __call__(self, round_index: int) -> float:
        """The corrected formula at t."""
        variance, samples = self.noise_scale**2, self.num_tasks * round_index
        heads = self.num_tasks * self.feature_dim
        a = math.sqrt(
            variance
            * (
                2 * heads * math.log1p(round_index / variance)
                + 4 * self.log_covering_number
                + 2 * math.log(2 / self.failure_probability)
            )
        )
        log_term = math.log(math.pi**2 * round_index**2 / (3 * self.failure_probability))
        noise = math.sqrt(variance * (samples + 2 * math.sqrt(samples * log_term) + 2 * log_term))
        cover = self.cover_scale * math.sqrt(2 * heads * round_index)
        return (
            8 * a**2
            + 4 * (a + noise) * cover
            + 2 * self.optimisation_error
            + 6 * heads * self.ridge
        )

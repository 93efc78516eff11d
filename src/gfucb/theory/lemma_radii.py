"""Squared radii beta_t of Lemmas 1 and 4: as printed, and corrected.

The round t is the next round, counted from 1, so the data are the rewards of rounds 1 .. t - 1.
With partial rounds t is one more than the largest number of samples of a task
(`MultitaskDataset.round_index`). Each radius is O(1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gfucb.core.protocols import RepresentationClass
from gfucb.theory.requirements import (
    require_not_negative,
    require_positive,
    require_probability,
    require_round,
)


@runtime_checkable
class CoveredClass(RepresentationClass, Protocol):
    """A representation class whose covering number is known."""

    def log_covering_number(self, scale: float) -> float:
        """Return log N(Phi, scale), or an upper bound of it."""


@dataclass(frozen=True)
class PrintedRadius:
    """beta_t of Lemma 1 as printed, for noise of scale 1.

        12 M k + 12 log(N / delta) + 8 alpha sqrt(M t k (M t + log(2 M t^2 / delta))).

    It does not hold: its chi-square tail is too thin, it treats chosen inputs as independent of the
    noise, and it lacks the noise scale. See `CorrectedRadius`.
    """

    num_tasks: int
    feature_dim: int
    log_covering_number: float
    """log N(Phi, cover_scale)."""
    cover_scale: float
    """alpha; the paper takes 1 / (k M T)."""
    failure_probability: float = 0.05
    """delta; the claimed probability that the set contains the true function is 1 - 2 delta."""

    def __post_init__(self) -> None:
        require_positive(num_tasks=self.num_tasks, feature_dim=self.feature_dim)
        require_not_negative(
            log_covering_number=self.log_covering_number, cover_scale=self.cover_scale
        )
        require_probability(failure_probability=self.failure_probability)

    def __call__(self, round_index: int) -> float:
        """The printed formula at t."""
        require_round(round_index)
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

        a^2 = sigma^2 [ 2 M k log(1 + t / (k ridge)) + 4 log N + 2 log(2 / delta) ]
        n = sigma sqrt(M t + 2 sqrt(M t L) + 2 L),   L = log(pi^2 t^2 / (3 delta))
        c = alpha sqrt(t / ridge),   b = a (1 + c) + n c
        beta_t = 6 b^2 + 6 k M ridge + 2 optimisation_error

    The true function must satisfy |w| <= sqrt(k) and |phi| <= 1. The heads of the fit need no
    bound, because the ridge of the fit and of the set limits them. With f the fit, g the true
    function, x = |f - g| on the data and z^2 = x^2 + ridge (|W_f|^2 + |W_g|^2):

    1. The fit's penalised error is at most that of g, so x^2 + ridge |W_f|^2 is at most
       2 <noise, f - g> + ridge |W_g|^2.
    2. f - g is linear in [phi_f ; phi_g], so by the self-normalised martingale bound
       (Abbasi-Yadkori et al. 2011), over a cover of Phi and with that same ridge,
       <noise, f - g> <= a z. A distance alpha from the cover adds (a + n) c z.
    3. Hence z^2 <= 2 b z + 2 k M ridge, and z^2 <= 4 b^2 + 4 k M ridge.
    4. The ridge fit with the representation of g is within (a + sqrt(k M ridge))^2 of g, which is
       at most 2 a^2 + 2 k M ridge.
    """

    # Paper: Lemma 1 assumes noise scale 1, uses a chi-square tail that is too thin, and treats
    # inputs chosen by the agent as independent of the noise.
    num_tasks: int
    feature_dim: int
    log_covering_number: float
    """log N(Phi, cover_scale)."""
    cover_scale: float
    """alpha; 0 for a finite class, which covers itself."""
    noise_scale: float
    """sigma: the noise is sigma-sub-Gaussian."""
    ridge: float
    """The ridge of the fit and of the confidence set."""
    failure_probability: float = 0.05
    """delta."""
    optimisation_error: float = 0.0
    """Largest excess of the fit's penalised error over the minimum."""

    def __post_init__(self) -> None:
        require_positive(
            num_tasks=self.num_tasks,
            feature_dim=self.feature_dim,
            noise_scale=self.noise_scale,
            ridge=self.ridge,
        )
        require_not_negative(
            log_covering_number=self.log_covering_number,
            cover_scale=self.cover_scale,
            optimisation_error=self.optimisation_error,
        )
        require_probability(failure_probability=self.failure_probability)

    def __call__(self, round_index: int) -> float:
        """The corrected formula at t."""
        require_round(round_index)
        heads, samples = self.num_tasks * self.feature_dim, self.num_tasks * round_index
        a = self.noise_scale * math.sqrt(
            2 * heads * math.log1p(round_index / (self.feature_dim * self.ridge))
            + 4 * self.log_covering_number
            + 2 * math.log(2 / self.failure_probability)
        )
        log_term = math.log(math.pi**2 * round_index**2 / (3 * self.failure_probability))
        noise = self.noise_scale * math.sqrt(
            samples + 2 * math.sqrt(samples * log_term) + 2 * log_term
        )
        cover = self.cover_scale * math.sqrt(round_index / self.ridge)
        b = a * (1 + cover) + noise * cover
        return 6 * b**2 + 6 * heads * self.ridge + 2 * self.optimisation_error


@dataclass(frozen=True)
class PrintedStageRadius:
    """beta_{h,t} of Lemma 4 as printed, for a stage of M episodic MDPs.

        (B_1 + sqrt(M T) I + sqrt(B_2))^2,   B_1 = sqrt(2 M k + log(N / delta)) + 1,
        B_2 = 2 sqrt(M T + log(2 M T^2 / delta)),   I the inherent Bellman error.

    It does not hold: between equations (83) and (92) B_2 loses the factor alpha, which makes the
    radius grow like sqrt(M T) and the regret like T^(3/4). From (58) to (66) two factors 2 are
    dropped.
    """

    num_tasks: int
    feature_dim: int
    num_episodes: int
    log_covering_number: float
    """log N(Phi, 1 / (k M T))."""
    bellman_error: float = 0.0
    failure_probability: float = 0.05

    def __post_init__(self) -> None:
        _require_stage(self)

    @property
    def lost_scale_term(self) -> float:
        """B_2 as printed, without alpha: 155 for M = 10, T = 600; with alpha it is 0.64."""
        samples = self.num_tasks * self.num_episodes
        log_term = math.log(2 * samples * self.num_episodes / self.failure_probability)
        return 2 * math.sqrt(samples + log_term)

    def __call__(self, round_index: int) -> float:
        """The printed formula; it depends on T and not on the episode."""
        require_round(round_index)
        heads = self.num_tasks * self.feature_dim
        logs = self.log_covering_number + math.log(1 / self.failure_probability)
        first = math.sqrt(2 * heads + logs) + 1
        bias = math.sqrt(self.num_tasks * self.num_episodes) * self.bellman_error
        return (first + bias + math.sqrt(self.lost_scale_term)) ** 2


@dataclass(frozen=True)
class CorrectedStageRadius:
    """beta_{h,t} that holds for a stage of M episodic MDPs, all stages and episodes at once.

        a^2 = 2 M k log(1 + T D^2 / k) + 6 log N + 2 M k log(1 + 2 D / alpha) + 2 log(2 H / delta)
        e = alpha D sqrt(2 M T),   B_1 = a + 2 alpha (1 + D) sqrt(M T)
        B_2 = a (e + sqrt(2 M)) + sqrt(M T) e
        beta = (2 B_1 + 2 sqrt(M T) I + sqrt(2 B_2))^2

    For noise bounded by 1 and heads |theta| <= D: the self-normalised bound with ridge 1 / D^2
    on [phi_f ; phi_g], a cover of Phi for the fit, the best fit and the next stage's values (3
    log N, twice), of the next stage's heads (M k log(1 + 2 D / alpha)), and a union over stages.
    The error of the cover is e in the functions and alpha (1 + D) in the next values. Then
    x^2 <= 2 (B_1 + sqrt(M T) I) x + 2 B_2 gives the last line.
    """

    num_tasks: int
    feature_dim: int
    num_episodes: int
    horizon: int
    log_covering_number: float
    """log N(Phi, cover_scale)."""
    cover_scale: float
    """alpha; the paper takes 1 / (k M T)."""
    head_bound: float
    """D."""
    bellman_error: float = 0.0
    failure_probability: float = 0.05

    def __post_init__(self) -> None:
        _require_stage(self)
        require_positive(
            horizon=self.horizon, cover_scale=self.cover_scale, head_bound=self.head_bound
        )

    @property
    def scale_term(self) -> float:
        """2 alpha sqrt(M T k (M T + log(2 M T^2 / delta))): B_2 of the paper with its alpha."""
        samples = self.num_tasks * self.num_episodes
        log_term = math.log(2 * samples * self.num_episodes / self.failure_probability)
        return 2 * self.cover_scale * math.sqrt(samples * self.feature_dim * (samples + log_term))

    def __call__(self, round_index: int) -> float:
        """The corrected formula for T episodes; it does not depend on the episode."""
        require_round(round_index)
        heads, samples = self.num_tasks * self.feature_dim, self.num_tasks * self.num_episodes
        bound, scale = self.head_bound, self.cover_scale
        a = math.sqrt(
            2 * heads * math.log1p(self.num_episodes * bound**2 / self.feature_dim)
            + 6 * self.log_covering_number
            + 2 * heads * math.log1p(2 * bound / scale)
            + 2 * math.log(2 * self.horizon / self.failure_probability)
        )
        cover = scale * bound * math.sqrt(2 * samples)
        first = a + 2 * scale * (1 + bound) * math.sqrt(samples)
        second = a * (cover + math.sqrt(2 * self.num_tasks)) + math.sqrt(samples) * cover
        bias = math.sqrt(samples) * self.bellman_error
        return (2 * first + 2 * bias + math.sqrt(2 * second)) ** 2


def _require_stage(radius: PrintedStageRadius | CorrectedStageRadius) -> None:
    require_positive(
        num_tasks=radius.num_tasks,
        feature_dim=radius.feature_dim,
        num_episodes=radius.num_episodes,
    )
    require_not_negative(
        log_covering_number=radius.log_covering_number, bellman_error=radius.bellman_error
    )
    require_probability(failure_probability=radius.failure_probability)

"""Lower confidence bounds of means of values that have no upper bound, valid at all times.

Importance weights have no useful upper bound, so all bounds here need only values of at least 0.
An upper bound of the value of a policy is a lower bound of the value of the mirrored rewards.
References: Howard, Ramdas, McAuliffe and Sekhon 2021; Waudby-Smith and Ramdas 2024; Waudby-Smith,
Wu, Ramdas, Karampatziakis and Mineiro 2022 (arXiv 2210.10768).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from gfucb.core.validation.settings import validate_number

Floats = NDArray[np.float64]

# Above this the Stirling series is exact in float64, and log-gamma loses digits.
LARGE_SHAPE = 1e4
# Below this the series of y - log(1 + y) is exact in float64.
SMALL_STEP = 1e-3


class ConfidenceSequence(Protocol):
    """A lower bound of a mean that holds at all numbers of values simultaneously."""

    @property
    def label(self) -> str:
        """A few words for tables."""

    def lower_bound(self, values: Floats, alpha: float) -> float:
        """Return a bound of the mean of values [n] of at least 0, whose mean is at most 1.

        With probability 1 - alpha the bounds of all prefixes of the values are below their means.
        """


@dataclass(frozen=True)
class EmpiricalBernstein:
    """The empirical Bernstein bound with a gamma mixture, for means that may change.

    It bounds the running mean of the conditional expectations, so tasks, contexts and the logging
    policy may change over time. With s the sum of values minus their expectations and
    v = sum_t (x_t - prediction_t)^2,

        log m(s, v) = log of  E_lambda exp(lambda s + (lambda + log(1 - lambda)) v)

    is the logarithm of a supermartingale for x_t >= 0 and predictions of at most 1 (Fan, Grama and
    Liu 2015), where lambda has a truncated gamma mixture with the parameter rho (Howard et al.,
    Proposition 9). The bound is (sum - u) / n with log m(u, v) = log(1 / alpha). Predictions are
    running means, at most 1. Cost: linear in n.

    Args:
        rho: the bound is tightest where v is about rho times a number around 10.
    """

    rho: float = 1.0

    def __post_init__(self) -> None:
        validate_number(self.rho, "rho", above=0.0, at_most=1e6)

    @property
    def label(self) -> str:
        """A few words for tables."""
        return "empirical Bernstein"

    def lower_bound(self, values: Floats, alpha: float) -> float:
        """See `ConfidenceSequence.lower_bound`."""
        variance = float(np.square(values - predicted_means(values).clip(max=1.0)).sum())
        deviation = self.boundary(variance, alpha)
        return max(0.0, float(values.mean()) - deviation / len(values))

    def boundary(self, variance: float, alpha: float) -> float:
        """The deviation u with log m(u, v) = log(1 / alpha), for the variance process v."""
        # All runs load this module, with the registry of policies, and few call this method.
        from scipy.optimize import brentq

        threshold = math.log(1 / alpha)
        high = 1.0 + math.sqrt(variance)
        while self.log_wealth(high, variance) < threshold:
            high *= 2
        return float(
            brentq(lambda s: self.log_wealth(s, variance) - threshold, 0.0, high, rtol=1e-12)
        )

    def log_wealth(self, deviation: float, variance: float) -> float:
        """Log m(s, v) for s >= 0, in a form without cancellation.

        With a = v + rho and x = s + a it is
        log Gamma(a) - a log(a) + a  +  a (y - log(1 + y))  +  log P(a, x)  -  its value at v = 0,
        where y = s / a and P is the regularised lower incomplete gamma function.
        """
        shape = variance + self.rho
        ratio = deviation / shape
        return (
            _stirling_remainder(shape)
            - _stirling_remainder(self.rho)
            + shape * _minus_log1p(ratio)
            + math.log(special.gammainc(shape, deviation + shape))
            - math.log(special.gammainc(self.rho, self.rho))
        )


@dataclass(frozen=True)
class Betting:
    """The betting bound of Waudby-Smith and Ramdas, for one mean that never changes.

        wealth_n(m) = prod_t (1 + bet_t (x_t - m)),   0 <= bet_t <= truncation / m,

    is a nonnegative martingale if m is the mean of every value given the past. The bound is the
    largest m at which the wealth ever reached 1 / alpha. Bets are the predictable plug-in
    sqrt(2 log(1 / alpha) / (variance_t t log(1 + t))). It is tighter than `EmpiricalBernstein`,
    but needs a value of the policy that is the same in all rows, as with independent contexts from
    one distribution. Cost: linear in n, about 50 passes.

    Args:
        truncation: the largest share of the wealth at risk, between 0 and 1.
    """

    truncation: float = 0.5

    def __post_init__(self) -> None:
        validate_number(self.truncation, "truncation", above=0.0, at_most=0.99)

    @property
    def label(self) -> str:
        """A few words for tables."""
        return "betting"

    def lower_bound(self, values: Floats, alpha: float) -> float:
        """See `ConfidenceSequence.lower_bound`."""
        bets, threshold = _plug_in_bets(values, alpha), math.log(1 / alpha)
        # The wealth decreases in m. The mean is at most 1, so no larger m is of interest.
        low, high = 0.0, 1.0
        if self._largest_log_wealth(values, bets, high) >= threshold:
            return high
        while high - low > 1e-10:
            middle = (low + high) / 2
            if self._largest_log_wealth(values, bets, middle) >= threshold:
                low = middle
            else:
                high = middle
        return low

    def _largest_log_wealth(self, values: Floats, bets: Floats, mean: float) -> float:
        bounded = bets.clip(max=self.truncation / mean)
        return float(np.log1p(bounded * (values - mean)).cumsum().max())


def predicted_means(values: Floats) -> Floats:
    """(1/2 + sum of the values before t) / t for t = 1 .. n: [n] -> [n]."""
    return (0.5 + _sums_before(values)) / np.arange(1, len(values) + 1)


def _plug_in_bets(values: Floats, alpha: float) -> Floats:
    times = np.arange(1, len(values) + 1)
    means = (0.5 + values.cumsum()) / (times + 1)
    variances = (0.25 + _sums_before(np.square(values - means))) / times
    return np.sqrt(2 * math.log(1 / alpha) / (variances * times * np.log1p(times)))


def _sums_before(values: Floats) -> Floats:
    """Sums of the values before t, for t = 1 .. n: [n] -> [n]."""
    return np.concatenate([[0.0], values.cumsum()[:-1]])


def _stirling_remainder(shape: float) -> float:
    """Log Gamma(a) - a log(a) + a."""
    if shape > LARGE_SHAPE:
        return 0.5 * math.log(2 * math.pi / shape) + 1 / (12 * shape)
    return float(special.gammaln(shape)) - shape * math.log(shape) + shape


def _minus_log1p(step: float) -> float:
    """Step - log(1 + step) for step >= 0."""
    if step > SMALL_STEP:
        return step - math.log1p(step)
    return sum((-step) ** power / power for power in range(2, 8))

"""Means with 95% intervals over seeds, ratios of means over paired seeds, and the rule of verdicts.

A claim that something is larger holds if the 95% interval of the difference excludes zero: with one
seed there is no interval, and the claim does not hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from gfucb.runs.summary import CONFIDENCE, half_width

Array = NDArray[np.float64]

RESAMPLES = 10_000


@dataclass(frozen=True)
class RatioOfMeans:
    """mean(first) / mean(second) and its 95% bootstrap interval; NaN limits with one seed."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """`1.57 (95% CI 1.44 to 1.72)`; only the value if there is no interval."""
        if math.isnan(self.low):
            return f"{self.value:.2f}"
        return f"{self.value:.2f} (95% CI {self.low:.2f} to {self.high:.2f})"


def paired_ratio(first: ArrayLike, second: ArrayLike) -> RatioOfMeans:
    """Ratio of the means of two samples on the same seeds: [seed], [seed].

    The interval is the percentile bootstrap over seeds, with a fixed random seed: seeds are
    resampled jointly, so what both samples share cancels.
    """
    top, bottom = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    value = float(top.mean() / bottom.mean())
    if len(top) < 2:
        return RatioOfMeans(value, math.nan, math.nan)
    low, high = stats.bootstrap(
        (top, bottom),
        _ratio_of_means,
        paired=True,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=0,
    ).confidence_interval
    return RatioOfMeans(value, float(low), float(high))


def _ratio_of_means(first: Array, second: Array, axis: int = -1) -> Any:
    return first.mean(axis) / second.mean(axis)


def exceeds(values: ArrayLike, threshold: float = 0.0) -> bool:
    """Whether the 95% interval of the mean of values [seed] is above a threshold."""
    array = np.asarray(values, dtype=float)
    return bool(array.mean() - half_width(array) > threshold)


def share_interval(count: int, total: int) -> tuple[float, float]:
    """The 95% interval of Clopper and Pearson of a share of which `count` of `total` were seen."""
    found = stats.binomtest(count, total).proportion_ci(CONFIDENCE)
    return float(found.low), float(found.high)


def mean_and_half_width(values: pd.Series, form: str = "") -> str:
    """`mean ± half width` of the 95% interval over seeds; only the mean of a single seed.

    Both numbers have the format `form`; by default the mean has three significant digits and the
    half width two.
    """
    array = values.to_numpy(float)
    half = half_width(array)
    if form:
        mean, spread = format(array.mean(), form), format(half, form)
    else:
        # A second conversion writes 150 where two significant digits alone write 1.5e+02.
        mean, spread = f"{array.mean():.3g}", f"{float(f'{half:.2g}'):g}"
    return mean if math.isnan(half) else f"{mean} ± {spread}"

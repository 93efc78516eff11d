"""The results of an off-policy evaluation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from gfucb.core.validation.settings import validate_choice

# All of them, in the order of tables.
ESTIMATORS = ("ips", "snips", "dm", "dr")


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """An estimate of the value of a policy: its mean reward in the contexts of the log.

    Attributes:
        estimator: ips, snips, dm or dr.
        value: NaN where it is undefined, as SNIPS is if all weights are 0.
        standard_error: of the value; None where it is unknown: for one row, for the direct method
            (its model has an unknown error), and where all weights are 0.
        interval: by the normal approximation, for a number of rows that was fixed in advance.
        sequence: an interval that is valid at all numbers of rows simultaneously; None without
            `reward_range`, and for estimators that have none.
    """

    estimator: str
    value: float
    standard_error: float | None = None
    interval: Interval | None = None
    sequence: Interval | None = None


@dataclass(frozen=True)
class Evaluation:
    """Estimates of the value of one policy, and how far the log supports them.

    Attributes:
        estimates: by the name of the estimator.
        num_rows: of the log.
        effective_sample_size: the number of rows of equal weight with the same variance.
        mean_weight: of the weights before clipping; its expectation is 1, so a value far from 1
            means wrong probabilities, or actions that the log never chooses.
        largest_weight: before clipping.
        clipped_rows: rows whose weight was reduced to `max_weight`.
        unsupported: the mean probability with which the policy chooses actions that the logged
            policy never draws; None where the log has no probabilities of all actions.
        confidence: of all intervals.
    """

    estimates: dict[str, Estimate]
    num_rows: int
    effective_sample_size: float
    mean_weight: float
    largest_weight: float
    clipped_rows: int
    unsupported: float | None
    confidence: float

    def __getitem__(self, estimator: str) -> Estimate:
        validate_choice(estimator, "estimator", list(self.estimates))
        return self.estimates[estimator]

    def rows(self) -> list[dict[str, Any]]:
        """One dict for each estimator, for `pandas.DataFrame` or JSON; None where undefined."""
        return [
            {
                "estimator": estimate.estimator,
                "value": None if math.isnan(estimate.value) else estimate.value,
                "standard_error": estimate.standard_error,
                **_bounds(estimate.interval, ""),
                **_bounds(estimate.sequence, "anytime_"),
            }
            for estimate in self.estimates.values()
        ]

    def __str__(self) -> str:
        header = f"{'estimator':<10}{'value':>10}  {'interval':^22}  {'at all times':^22}"
        lines = [
            f"{e.estimator:<10}{e.value:>10.4f}  {_shown(e.interval):^22}  {_shown(e.sequence):^22}"
            for e in self.estimates.values()
        ]
        facts = (
            f"{self.num_rows} rows, effective sample size {self.effective_sample_size:.1f}, "
            f"mean weight {self.mean_weight:.3g}, largest weight {self.largest_weight:.3g}"
        )
        return "\n".join([header, *lines, facts])


def _bounds(interval: Interval | None, prefix: str) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{prefix}low": low, f"{prefix}high": high}


def _shown(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval.low:.4f} to {interval.high:.4f}"

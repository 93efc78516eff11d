"""Off-policy estimators: from importance weights and rewards to the value of a policy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gfucb.evaluation.evaluation_results import Estimate, Interval

Floats = NDArray[np.float64]


def ips(weights: Floats, rewards: Floats, *, confidence: float) -> Estimate:
    """Inverse propensity scoring: mean of w r. Unbiased. [row], [row].

    The interval is  mean +- z s / sqrt(n)  with the sample standard deviation s of w r.
    """
    return _mean_estimate("ips", weights * rewards, weights, confidence)


def snips(weights: Floats, rewards: Floats, *, confidence: float) -> Estimate:
    """Self-normalised IPS: sum of w r / sum of w. Small bias, often less variance. [row], [row].

    The value is that of a weighted mean, so it lies between the smallest and the largest reward.
    The standard error is that of the delta method, sqrt(sum w^2 (r - value)^2) / sum w.
    """
    total = float(weights.sum())
    if total == 0:
        return Estimate("snips", math.nan)
    value = float(weights @ rewards) / total
    # One row with weight has no residual, and says nothing of its own error.
    if np.count_nonzero(weights) < 2:
        return Estimate("snips", value)
    error = float(np.sqrt(np.square(weights * (rewards - value)).sum())) / total
    return Estimate("snips", value, error, _normal_interval(value, error, confidence))


def direct_method(action_probabilities: Floats, values: Floats) -> Estimate:
    """Mean over rows of sum_a pi(a) q(a): [row, action], [row, action].

    It has no interval, because the error of the model q is unknown.
    """
    return Estimate("dm", float(expected_values(action_probabilities, values).mean()))


def doubly_robust(
    weights: Floats,
    rewards: Floats,
    action_probabilities: Floats,
    values: Floats,
    chosen_values: Floats,
    *,
    confidence: float,
) -> Estimate:
    """Mean of  sum_a pi(a) q(a) + w (r - q(chosen)). Unbiased for known probabilities.

    Shapes: weights, rewards and values of the chosen actions [row]; probabilities of the policy
    and values q of the model [row, action].
    """
    expected = expected_values(action_probabilities, values)
    return _mean_estimate("dr", expected + weights * (rewards - chosen_values), weights, confidence)


def expected_values(action_probabilities: Floats, values: Floats) -> Floats:
    """Sum over actions of pi(a) q(a): [row, action], [row, action] -> [row]."""
    products: Floats = (action_probabilities * values).sum(1)
    return products


def effective_sample_size(weights: Floats) -> float:
    """(sum w)^2 / sum w^2: the number of rows of equal weight with the same variance (Kish)."""
    largest = float(weights.max())
    if largest == 0:
        return 0.0
    scaled = weights / largest  # squares of large weights overflow
    return float(np.square(scaled.sum()) / np.square(scaled).sum())


def _mean_estimate(name: str, values: Floats, weights: Floats, confidence: float) -> Estimate:
    value = float(values.mean())
    if len(values) < 2 or not weights.any():
        return Estimate(name, value)
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return Estimate(name, value, error, _normal_interval(value, error, confidence))


def _normal_interval(value: float, error: float, confidence: float) -> Interval:
    width = float(ndtri((1 + confidence) / 2)) * error
    return Interval(value - width, value + width)

"""Confidence sequences for the value of a policy, without a bound on the importance weights.

Rewards are scaled to [0, 1]. The lower bound is one of the mean of values that are at least 0. The
upper bound is 1 minus the lower bound of the value of the mirrored rewards 1 - r. Reduced weights
only reduce both means, so both bounds also hold with clipping (Waudby-Smith et al. 2022).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError
from gfucb.evaluation.confidence_sequences import ConfidenceSequence
from gfucb.evaluation.estimators import expected_values
from gfucb.evaluation.evaluation_results import Interval
from gfucb.evaluation.logged_decisions import LoggedDecisions

Floats = NDArray[np.float64]
# How far below 0 the doubly robust values may lie. Larger values reduce the model less, and make
# the values of a fixed range smaller.
LARGEST_LOSS = 1.0


def ips_bounds(
    weights: Floats,
    rewards: Floats,
    reward_range: tuple[float, float],
    sequence: ConfidenceSequence,
    alpha: float,
) -> Interval:
    """Bounds from the values w r: weights and rewards [row]."""
    unit = _unit(rewards, reward_range)
    lower = sequence.lower_bound(weights * unit, alpha / 2)
    upper = 1 - sequence.lower_bound(weights * (1 - unit), alpha / 2)
    return _scaled_back(lower, upper, reward_range)


def doubly_robust_bounds(
    log: LoggedDecisions,
    policy: Floats,
    weights: Floats,
    values: Floats,
    reward_range: tuple[float, float],
    sequence: ConfidenceSequence,
    alpha: float,
) -> Interval:
    """Bounds from doubly robust values; tighter than `ips_bounds` where the model is good.

        x = w r - w_a q_a + sum_b pi(b) q_b,   w_b = pi(b) / logged(b),
        q_b = min(model_b, 1 / w_b)

    is at least -1, and the terms of q have the mean 0 for any model of the past.

    Args:
        log: with the probabilities of all actions.
        policy: probabilities pi of all actions, [row, action].
        weights: w of the rewards, [row]; they may be reduced, those of q are not.
        values: predictions of a model that was fitted to earlier rows, [row, action].
        reward_range: that contains every possible reward.
        sequence: the lower bound of a mean.
        alpha: the error probability of both bounds together.
    """
    if log.action_probabilities is None:
        raise InvalidInputError("doubly robust bounds need a log with action_probabilities")
    logged, actions = log.action_probabilities.numpy(), log.actions.numpy()
    unbounded = np.full_like(policy, np.inf)
    largest = np.divide(LARGEST_LOSS * logged, policy, out=unbounded, where=policy > 0)
    rows = np.arange(len(actions))
    chosen_weights = policy[rows, actions] / logged[rows, actions]

    def lower_bound(targets: Floats, predictions: Floats) -> float:
        reduced = np.minimum(predictions, largest)
        x = weights * targets - chosen_weights * reduced[rows, actions]
        x += expected_values(policy, reduced)
        shifted = ((x + LARGEST_LOSS) / (1 + LARGEST_LOSS)).clip(min=0.0)  # of rounding only
        return sequence.lower_bound(shifted, alpha / 2) * (1 + LARGEST_LOSS) - LARGEST_LOSS

    rewards = _unit(log.rewards.numpy(), reward_range)
    model = _unit(values, reward_range).clip(0.0, 1.0)
    lower = lower_bound(rewards, model)
    return _scaled_back(lower, 1 - lower_bound(1 - rewards, 1 - model), reward_range)


def _unit(values: Floats, reward_range: tuple[float, float]) -> Floats:
    low, high = reward_range
    return (values - low) / (high - low)


def _scaled_back(lower: float, upper: float, reward_range: tuple[float, float]) -> Interval:
    """The bounds within [0, 1], in the range of the rewards."""
    low, high = reward_range
    # Wrong probabilities can make the lower bound the larger one.
    lower, upper = sorted(min(max(bound, 0.0), 1.0) for bound in (lower, upper))
    return Interval(low + (high - low) * lower, low + (high - low) * upper)

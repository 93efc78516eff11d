"""The value of a policy, estimated from a log of another policy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import GFUCBWarning, InvalidInputError
from gfucb.core.validation.settings import (
    validate_choice,
    validate_component,
    validate_count,
    validate_instance,
    validate_methods,
    validate_number,
    validate_pair,
    validate_seed,
)
from gfucb.evaluation.confidence_sequences import ConfidenceSequence, EmpiricalBernstein
from gfucb.evaluation.estimators import (
    direct_method,
    doubly_robust,
    effective_sample_size,
    ips,
    snips,
)
from gfucb.evaluation.evaluation_results import ESTIMATORS, Estimate, Evaluation, Interval
from gfucb.evaluation.logged_decisions import LoggedDecisions
from gfucb.evaluation.policies import PolicyOnLog, as_policy
from gfucb.evaluation.reward_models import (
    GFUCBRewards,
    RewardModel,
    cross_fitted_values,
    progressive_values,
)
from gfucb.evaluation.value_bounds import doubly_robust_bounds, ips_bounds

Floats = NDArray[np.float64]
# Below this the normal approximation is poor, and a few rows decide the estimate.
SMALLEST_SAMPLE_SIZE = 30


def evaluate(
    log: LoggedDecisions,
    policy: Any,
    *,
    estimators: Sequence[str] = ESTIMATORS,
    reward_range: tuple[float, float] | None = (0.0, 1.0),
    confidence: float = 0.95,
    max_weight: float | None = None,
    sequence: ConfidenceSequence | None = None,
    reward_model: RewardModel | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Evaluation:
    """Estimate the mean reward that `policy` would have had in the rows of a log.

    >>> log = LoggedDecisions([0, 1] * 50, [0.5] * 100, [1.0, 0.0] * 50)
    >>> always_first = [[1.0, 0.0]] * 100
    >>> evaluate(log, always_first, estimators=["ips", "snips"])["ips"].value
    1.0

    Args:
        log: the logged decisions.
        policy: a policy such as `UniformPolicy()`, an agent, a function from a log to
            probabilities, or the probabilities [row, action] themselves.
        estimators: of ips, snips, dm (direct method) and dr (doubly robust).
        reward_range: (low, high), a range that contains every possible reward, for intervals that
            are valid at all times. None computes none of them.
        confidence: of all intervals.
        max_weight: larger weights are reduced to this one. Estimates and intervals are then those
            of the reduced weights, which are biased. Only the sequences of ips and dr still hold
            for the value of the policy.
        sequence: by default `EmpiricalBernstein()`, which allows tasks, contexts and logging
            policies that change. `Betting()` is tighter and needs contexts of one distribution.
        reward_model: of dm and dr; by default the fit of `GFUCB`.
        folds: of the cross-fitted predictions of dm and dr.
        seed: of the folds and the fits.
    """
    settings = _Settings(
        reward_range=None if reward_range is None else validate_pair(reward_range, "reward_range"),
        confidence=validate_number(confidence, "confidence", above=0.0, at_most=1 - 1e-12),
        max_weight=_validate_max_weight(max_weight),
        sequence=_validate_sequence(sequence),
        folds=validate_count(folds, "folds", at_least=2),
        seed=validate_seed(seed),
    )
    names = _validate_estimators(estimators)
    validate_instance(log, "log", LoggedDecisions, "a LoggedDecisions, such as named.log")
    _require_rewards_in(settings.reward_range, log)
    model = _validate_model(reward_model, settings)
    problem = _Problem(log, as_policy(policy).on(log), model, settings)
    computations = {
        "ips": problem.ips,
        "snips": problem.snips,
        "dm": problem.direct_method,
        "dr": problem.doubly_robust,
    }
    result = problem.evaluation({name: computations[name]() for name in names})
    if names != ["dm"]:
        _warn(result, problem.weights_before)
    return result


@dataclass(frozen=True)
class _Settings:
    """The checked arguments of `evaluate`."""

    reward_range: tuple[float, float] | None
    confidence: float
    max_weight: float
    sequence: ConfidenceSequence
    folds: int
    seed: int


class _Problem:
    """One policy on one log. Models are fitted at most once."""

    def __init__(
        self, log: LoggedDecisions, policy: PolicyOnLog, model: RewardModel, settings: _Settings
    ) -> None:
        self.log, self.policy, self.model, self.settings = log, policy, model, settings
        self.weights_before: Floats = policy.weights.numpy()
        self.weights: Floats = self.weights_before.clip(max=settings.max_weight)
        self.rewards: Floats = log.rewards.numpy()
        self.probabilities: Floats = policy.action_probabilities.numpy()

    @cached_property
    def cross_fitted(self) -> Tensor:
        settings = self.settings
        return cross_fitted_values(self.log, self.model, folds=settings.folds, seed=settings.seed)

    def ips(self) -> Estimate:
        estimate = ips(self.weights, self.rewards, confidence=self.settings.confidence)
        bounds = None
        if (reward_range := self.settings.reward_range) is not None:
            bounds = ips_bounds(
                self.weights, self.rewards, reward_range, self.settings.sequence, self.alpha
            )
        return replace(estimate, sequence=bounds)

    def snips(self) -> Estimate:
        return snips(self.weights, self.rewards, confidence=self.settings.confidence)

    def direct_method(self) -> Estimate:
        return direct_method(self.probabilities, self.cross_fitted.numpy())

    def doubly_robust(self) -> Estimate:
        values = self.cross_fitted
        estimate = doubly_robust(
            self.weights,
            self.rewards,
            self.probabilities,
            values.numpy(),
            self.log.of_chosen(values).numpy(),
            confidence=self.settings.confidence,
        )
        return replace(estimate, sequence=self._doubly_robust_sequence())

    def _doubly_robust_sequence(self) -> Interval | None:
        settings, logged = self.settings, self.log.action_probabilities
        if settings.reward_range is None or logged is None:
            return None
        middle = sum(settings.reward_range) / 2
        return doubly_robust_bounds(
            self.log,
            self.probabilities,
            self.weights,
            progressive_values(self.log, self.model, initial=middle).numpy(),
            settings.reward_range,
            settings.sequence,
            self.alpha,
        )

    @property
    def alpha(self) -> float:
        return 1 - self.settings.confidence

    def evaluation(self, estimates: dict[str, Estimate]) -> Evaluation:
        logged = self.log.action_probabilities
        unsupported = None
        if logged is not None:
            unsupported = float(
                self.policy.action_probabilities.masked_fill(logged > 0, 0.0).sum(1).mean()
            )
        return Evaluation(
            estimates,
            num_rows=len(self.log),
            effective_sample_size=effective_sample_size(self.weights),
            mean_weight=float(self.weights_before.mean()),
            largest_weight=float(self.weights_before.max()),
            clipped_rows=int((self.weights_before > self.settings.max_weight).sum()),
            unsupported=unsupported,
            confidence=self.settings.confidence,
        )


def _warn(result: Evaluation, weights: Floats) -> None:
    """Warn where the log says little about the policy, or contradicts its probabilities."""
    size = result.effective_sample_size
    if size == 0:
        message = (
            "the policy never chooses the logged action in any row: the log says nothing about "
            "its value, ips is 0 and snips is undefined"
        )
    elif result.unsupported:
        message = (
            f"with probability {result.unsupported:.3g} the policy chooses actions that were "
            "logged with probability 0: estimates from weights are biased"
        )
    elif size < SMALLEST_SAMPLE_SIZE:
        message = (
            f"the effective sample size is {size:.1f} of {result.num_rows} rows (largest weight "
            f"{result.largest_weight:.3g}): few rows decide the estimates, and intervals by the "
            "normal approximation are too narrow. Log more rows, evaluate a policy closer to the "
            "logged one, or pass max_weight for less variance and some bias"
        )
    elif abs(result.mean_weight - 1) > 5 * float(weights.std()) / math.sqrt(len(weights)) + 1e-6:
        message = (
            f"the mean weight is {result.mean_weight:.3g}, and its expectation is 1: the logged "
            "probabilities are wrong, or the policy chooses actions that are never logged"
        )
    else:
        return
    warnings.warn(message, GFUCBWarning, stacklevel=3)


def _validate_estimators(names: Any) -> list[str]:
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) == 0:
        raise InvalidInputError(
            f"estimators must be a list of some of {list(ESTIMATORS)}, got {names!r}"
        )
    for name in names:
        validate_choice(name, "estimators", ESTIMATORS)
    return list(dict.fromkeys(names))


def _validate_model(value: RewardModel | None, settings: _Settings) -> RewardModel:
    if value is None:
        return GFUCBRewards(settings.seed, settings.reward_range or "auto")
    expected = "a function (training rows, test rows) -> values [row, action]"
    return validate_component(value, "reward_model", expected)


def _validate_sequence(value: ConfidenceSequence | None) -> ConfidenceSequence:
    if value is None:
        return EmpiricalBernstein()
    return validate_methods(value, "sequence", ("lower_bound",), "Betting()")


def _validate_max_weight(value: float | None) -> float:
    return math.inf if value is None else validate_number(value, "max_weight", above=0.0)


def _require_rewards_in(reward_range: tuple[float, float] | None, log: LoggedDecisions) -> None:
    if reward_range is None:
        return
    low, high = reward_range
    outside = (log.rewards < low) | (log.rewards > high)
    if bool(outside.any()):
        row = int(outside.nonzero()[0])
        raise InvalidInputError(
            f"reward_range is ({low:g}, {high:g}), got the reward {float(log.rewards[row]):g} in "
            f"row {row}; pass a range that contains every possible reward, or None for estimates "
            "without intervals that are valid at all times"
        )

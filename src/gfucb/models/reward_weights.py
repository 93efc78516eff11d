"""What a prediction consists of: the weight of every reward, and the parts of its variance."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from gfucb.core.linalg import ridge_cholesky
from gfucb.models.exploration_rates import exploration_rates
from gfucb.models.head_posterior import HeadPosterior


class VarianceParts(NamedTuple):
    """Parts of the unit variance of values, each [row, action].

    Attributes:
        head: due to the head of the task, if what is shared were known.
        shared: due to what all tasks share: the mean of the heads, or the weights of a network.
        exploration: effects that the model has not seen, see `HeadPosterior`.
    """

    head: Tensor
    shared: Tensor
    exploration: Tensor

    @property
    def total(self) -> Tensor:
        """The unit variance."""
        return self.head + self.shared + self.exploration


def posterior_variance_parts(
    posterior: HeadPosterior, features: Tensor, tasks: Tensor, counts: Tensor | None = None
) -> VarianceParts:
    """The parts of `HeadPosterior.squared_widths`: [row, action, feature], [row].

    With `counts` [task] those of `PosteriorEllipsoid.bonus_widths`, whose bonuses grow with them.
    """
    size = posterior.feature_dim
    scaled, linear = features[..., :size], features[..., size : posterior.uncertain_dim]
    once = scaled @ posterior.covariances[tasks]
    explored = posterior.exploration_scale * ((linear @ posterior.exploration[tasks]) * linear).sum(
        -1
    )
    untried = (linear.square() * posterior.untried_variances).sum(-1)
    head = (once * scaled).sum(-1).clamp_min(0)
    shared = ((once @ posterior.mean_covariance) * once).sum(-1).clamp_min(0)
    rates = torch.ones_like(head)
    if counts is not None:
        rates = exploration_rates(head + shared, counts[tasks])
    return VarianceParts(rates * head, rates * shared, (explored + untried).clamp_min(0))


class RewardWeights(Protocol):
    """The derivatives of predicted means in the rewards, with everything but the heads fixed."""

    def of(self, features: Tensor, task: int) -> Tensor:
        """Weights of all samples in the values of a task at features [n, feature]: [n, sample]."""


class RidgeWeights:
    """Of heads that are ridge regressions on the samples of their own task.

    The value at phi is  offset + sum_j phi^T V^-1 phi_j (reward_j - offset),
    V = ridge I + sum_j phi_j phi_j^T, so the weight of a reward is phi^T V^-1 phi_j.

    Args:
        factors_of: lower factors of V of some tasks, [n] -> [n, feature, feature].
        features: of all samples, [sample, feature].
        tasks: of all samples, [sample].
    """

    def __init__(
        self, factors_of: Callable[[Tensor], Tensor], features: Tensor, tasks: Tensor
    ) -> None:
        self._factors_of = factors_of
        self._features, self._tasks = features, tasks

    def of(self, features: Tensor, task: int) -> Tensor:
        """See `RewardWeights`."""
        number = torch.tensor([task], device=features.device)
        solved = torch.cholesky_solve(features.mT, self._factors_of(number)[0]).mT
        return (solved @ self._features.mT) * (self._tasks == task)


class PosteriorWeights:
    """Of heads with a Gaussian posterior: own samples, and all others through the shared mean.

    With a = V_i^-1 phi, the mean of task i at phi is  offset + a^T (sum_j phi_j y_j + mean),  over
    its own samples j, and  mean = C sum_k V_k^-1 sum_j phi_j y_j  over the samples of the last fit.
    The weight of a reward of the same task is therefore a^T phi_j, and every sample of the fit adds
    a^T C V_k^-1 phi_j. A prior mean that is known, as that of catalogues, has C = 0.

    Args:
        posterior: of all heads.
        features: of all samples, [sample, feature + linear feature].
        tasks: of all samples, [sample].
        num_fitted: the first so many samples are those of the last fit.
    """

    def __init__(
        self, posterior: HeadPosterior, features: Tensor, tasks: Tensor, num_fitted: int
    ) -> None:
        self._posterior, self._tasks = posterior, tasks
        self._features = features[:, : posterior.feature_dim]
        self._solved: Tensor | None = None
        if bool(posterior.mean_covariance.any()):
            self._solved = _solved_by_task(self._features[:num_fitted], tasks[:num_fitted])

    def of(self, features: Tensor, task: int) -> Tensor:
        """See `RewardWeights`."""
        posterior = self._posterior
        number = torch.tensor([task], device=features.device)
        once = features[:, : posterior.feature_dim] @ posterior.covariances[number][0]
        weights = (once @ self._features.mT) * (self._tasks == task)
        if self._solved is not None:
            weights[:, : len(self._solved)] += once @ posterior.mean_covariance @ self._solved.mT
        return weights


class AverageWeights:
    """Of an average of two models, on the features of the first and then of the second.

    Args:
        first: the weights of the first model.
        second: those of the second.
        share: of the second model in the average.
        first_dim: the number of features of the first.
    """

    def __init__(
        self, first: RewardWeights, second: RewardWeights, share: float, first_dim: int
    ) -> None:
        self._first, self._second = first, second
        self._share, self._first_dim = share, first_dim

    def of(self, features: Tensor, task: int) -> Tensor:
        """See `RewardWeights`."""
        first = self._first.of(features[:, : self._first_dim], task)
        second = self._second.of(features[:, self._first_dim :], task)
        return (1 - self._share) * first + self._share * second


def _solved_by_task(features: Tensor, tasks: Tensor) -> Tensor:
    """V_k^-1 phi_j of samples [n, feature] of tasks [n], V_k = I + sum_j phi_j phi_j^T."""
    solved = torch.empty_like(features)
    for task in tasks.unique().tolist():
        own = tasks == task
        factor = ridge_cholesky(features[own].mT @ features[own], 1.0)
        solved[own] = torch.cholesky_solve(features[own].mT, factor).mT
    return solved

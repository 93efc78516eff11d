"""What a prediction consists of: the weight of every reward, and the parts of its variance."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from gfucb.core.linalg import ridge_cholesky
from gfucb.models.confidence_set import ConfidenceSet
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
    posterior: HeadPosterior, features: Tensor, tasks: Tensor
) -> VarianceParts:
    """The parts of `HeadPosterior.squared_widths`: [row, action, feature], [row]."""
    size = posterior.feature_dim
    scaled, linear = features[..., :size], features[..., size:]
    once = scaled @ posterior.covariances[tasks]
    explored = posterior.exploration_scale * ((linear @ posterior.exploration[tasks]) * linear).sum(
        -1
    )
    untried = (linear.square() * posterior.untried_variances).sum(-1)
    return VarianceParts(
        (once * scaled).sum(-1).clamp_min(0),
        ((once @ posterior.mean_covariance) * once).sum(-1).clamp_min(0),
        (explored + untried).clamp_min(0),
    )


class RewardWeights(Protocol):
    """The derivatives of predicted means in the rewards, with everything but the heads fixed."""

    def of(self, features: Tensor, task: int) -> Tensor:
        """Weights of all samples in the values of a task at features [n, feature]: [n, sample]."""


class RidgeWeights:
    """Of heads that are ridge regressions on the samples of their own task.

    The value at phi is  offset + sum_j phi^T V^-1 phi_j (reward_j - offset),
    V = ridge I + sum_j phi_j phi_j^T, so the weight of a reward is phi^T V^-1 phi_j.
    """

    def __init__(self, confidence_set: ConfidenceSet, features: Tensor) -> None:
        ellipsoid = confidence_set.ellipsoid()
        assert ellipsoid is not None, "the center is in its own confidence set"
        self._factors = ellipsoid.factors
        self._features, self._tasks = features, confidence_set.data.tasks

    def of(self, features: Tensor, task: int) -> Tensor:
        """See `RewardWeights`."""
        number = torch.tensor([task], device=features.device)
        solved = torch.cholesky_solve(features.mT, self._factors[number][0]).mT
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


def _solved_by_task(features: Tensor, tasks: Tensor) -> Tensor:
    """V_k^-1 phi_j of samples [n, feature] of tasks [n], V_k = I + sum_j phi_j phi_j^T."""
    solved = torch.empty_like(features)
    for task in tasks.unique().tolist():
        own = tasks == task
        factor = ridge_cholesky(features[own].mT @ features[own], 1.0)
        solved[own] = torch.cholesky_solve(features[own].mT, factor).mT
    return solved

"""A Gaussian prior over the heads of tasks that choose among items with ids."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.linalg import task_sums
from gfucb.core.records import Prediction
from gfucb.estimation.item_pairs import CELLS_PER_PAIR, ItemPairs

# Bounds the memory of [pair, rank * rank].
PAIRS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class ItemPrior:
    """Value of item j for task i: mean_j + w_ij with w_i ~ N(0, factor factor^T + diag(diagonal)).

    A reward is the value plus noise. The factor holds what tasks share: how the value of one item
    predicts that of another. The diagonal is specific to a pair of task and item.

    Attributes:
        mean: [item].
        factor: [item, rank].
        diagonal: [item].
        noise: variance of rewards around values, a tensor without axes.
    """

    mean: Tensor
    factor: Tensor
    diagonal: Tensor
    noise: Tensor

    @property
    def num_items(self) -> int:
        """The number of items."""
        return len(self.mean)

    @property
    def rank(self) -> int:
        """The number of columns of the factor."""
        return self.factor.shape[1]

    def covariance(self) -> Tensor:
        """Covariance of the values of one task: [item, item]."""
        return self.factor @ self.factor.mT + torch.diag(self.diagonal)

    def grown(self, num_items: int) -> ItemPrior:
        """The same prior for more items: a new one has the mean row and the mean variance."""
        new = num_items - self.num_items
        if new <= 0:
            return self
        row = self.factor.mean(0)
        # The rows scatter around their mean; their scatter is specific to the item if unknown.
        scatter = (self.factor - row).square().sum(1).mean()
        return ItemPrior(
            torch.cat([self.mean, self.mean.mean().expand(new)]),
            torch.cat([self.factor, row.expand(new, -1)]),
            torch.cat([self.diagonal, (self.diagonal.mean() + scatter).expand(new)]),
            self.noise,
        )

    def embeddings(self, largest_exact: int = 512) -> Tensor:
        """Features E [item, feature] such that heads have the prior N(0, I), in units of noise.

        Up to `largest_exact` items E is a Cholesky factor: E E^T = covariance / noise, exactly.
        A larger catalogue has E = factor / sqrt(noise) with `rank` columns. Its diagonal is then
        further noise, independent for distinct items: correct for items that a task rates once.
        """
        if self.num_items <= largest_exact:
            return torch.linalg.cholesky(self.covariance() / self.noise)
        return self.factor / self.noise.sqrt()


@dataclass(frozen=True, eq=False)
class TaskPosterior:
    """The posterior of the coefficients z of tasks, where w = factor z + what is specific.

    Attributes:
        mean: [task, rank].
        covariance: [task, rank, rank].
        log_likelihood: log density of the targets of each task, [task], up to what depends only
            on the squares within pairs.
    """

    mean: Tensor
    covariance: Tensor
    log_likelihood: Tensor


def task_posterior(prior: ItemPrior, pairs: ItemPairs) -> TaskPosterior:
    """Condition the coefficients of every task on its pairs: systems of size rank (Woodbury).

    With psi = diagonal + noise / count, the precision of z is I + sum factor factor^T / psi.
    """
    factor, items = prior.factor, pairs.items
    psi = prior.diagonal[items] + prior.noise / pairs.counts
    residuals = pairs.means - prior.mean[items]
    precision = pairs.by_task(1 / psi, outer_products(factor)).unflatten(1, (prior.rank,) * 2)
    precision = precision + torch.eye(prior.rank, dtype=factor.dtype, device=factor.device)
    moments = pairs.by_task(residuals / psi, factor).unsqueeze(2)
    cholesky = torch.linalg.cholesky(precision)
    mean = torch.cholesky_solve(moments, cholesky)
    log_density = psi.log() + residuals.square() / psi + math.log(2 * math.pi)
    doubled = task_sums(log_density, pairs.tasks, pairs.num_tasks)
    doubled = doubled + 2 * cholesky.diagonal(dim1=1, dim2=2).log().sum(1)
    doubled = doubled - (moments * mean).sum((1, 2))
    return TaskPosterior(mean.squeeze(2), torch.cholesky_inverse(cholesky), -doubled / 2)


def log_likelihood(prior: ItemPrior, pairs: ItemPairs) -> Tensor:
    """Log density of all targets under the prior, a tensor without axes."""
    repeated = (pairs.counts - 1).sum()
    within = repeated * (2 * math.pi * prior.noise).log() + pairs.counts.log().sum()
    within = within + pairs.within.sum() / prior.noise
    return task_posterior(prior, pairs).log_likelihood.sum() - within / 2


def predict_items(prior: ItemPrior, pairs: ItemPairs, tasks: Tensor, items: Tensor) -> Prediction:
    """Posterior mean and variance of the values of items [row, action] for tasks [row].

    The variance has no noise of rewards. Items that the task has rated use their own ratings.
    """
    posterior = task_posterior(prior, pairs)
    tasks = tasks[:, None].expand_as(items)
    is_dense = pairs.num_tasks * pairs.num_items <= CELLS_PER_PAIR * items.numel()
    shared_mean, shared_variance = shared_part(
        prior.factor, posterior, tasks, items, is_dense=is_dense
    )
    shared_mean = shared_mean + prior.mean[items]
    rows, is_rated = pairs.find(tasks, items)
    diagonal = prior.diagonal[items]
    if len(pairs):
        counts = pairs.counts[rows].where(is_rated, torch.zeros_like(diagonal))
        targets = pairs.means[rows].where(is_rated, torch.zeros_like(diagonal))
    else:
        counts = targets = torch.zeros_like(diagonal)
    # Given z, what is specific to the pair is a share `gain` of the residual.
    gain = counts * diagonal / (counts * diagonal + prior.noise)
    mean = shared_mean + gain * (targets - shared_mean)
    return Prediction(mean, (1 - gain).square() * shared_variance + (1 - gain) * diagonal)


def outer_products(rows: Tensor) -> Tensor:
    """Products x x^T of rows x, flattened: [n, column] -> [n, column * column]."""
    return (rows[:, :, None] * rows[:, None, :]).flatten(1)


def shared_part(
    factor: Tensor, posterior: TaskPosterior, tasks: Tensor, items: Tensor, *, is_dense: bool
) -> tuple[Tensor, Tensor]:
    """Posterior mean and variance of factor_item^T z_task, both in the shape of `items`.

    If `is_dense`, for all pairs at first, in two matrix products; otherwise for each pair.
    """
    means, variances = posterior.mean, posterior.covariance.flatten(1)
    outer = outer_products(factor)
    if is_dense:
        return (means @ factor.mT)[tasks, items], (variances @ outer.mT)[tasks, items]
    flat = zip(*(indices.flatten().split(PAIRS_AT_ONCE) for indices in (tasks, items)), strict=True)
    parts = [
        ((means[task] * factor[item]).sum(1), (variances[task] * outer[item]).sum(1))
        for task, item in flat
    ]
    mean, variance = (torch.cat(columns).view_as(items) for columns in zip(*parts, strict=True))
    return mean, variance

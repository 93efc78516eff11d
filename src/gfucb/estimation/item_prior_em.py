"""EM for `ItemPrior`: the likelihood of the targets of many tasks times a hyperprior."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.estimation.item_pairs import ItemPairs
from gfucb.estimation.item_prior import (
    ItemPrior,
    TaskPosterior,
    log_likelihood,
    outer_products,
    shared_part,
    task_posterior,
)

# The variance specific to an item has the weight of this many pairs at the common level.
LEVEL_PAIRS = 20.0
VARIANCE_STEPS = 3
SMALLEST_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """The hyperprior: rows (factor_j, mean_j) of items scatter around a common row.

    mean_j ~ N(common, mean_share scale), the elements of factor_j ~ N(common, factor_share scale /
    rank) and their common row ~ N(0, scale). The common mean has no penalty. diagonal_j is
    inverse-gamma around a common level, with the weight of `LEVEL_PAIRS` pairs.

    Attributes:
        scale: variance of the targets, a tensor without axes: all else is relative to it.
        mean_share: share of the variance that differences between the means of items may explain.
        factor_share: the same for differences between the rows of the factor.
    """

    scale: Tensor
    mean_share: float
    factor_share: float

    def precisions(self, rank: int) -> Tensor:
        """Precisions of an item's row around the common row: [rank + 1]."""
        shares = [self.factor_share / max(1, rank)] * rank + [self.mean_share]
        return 1 / (self.scale * self.scale.new_tensor(shares))

    def common_precisions(self, rank: int) -> Tensor:
        """Precisions of the common row around 0: [rank + 1]."""
        return self.scale.new_tensor([1.0] * rank + [0.0]) / self.scale

    def smallest_variance(self) -> Tensor:
        """Lower bound of noise and diagonal: their likelihood may be unbounded near 0."""
        return SMALLEST_SHARE * self.scale


def penalised_log_likelihood(prior: ItemPrior, pairs: ItemPairs, shrinkage: Shrinkage) -> Tensor:
    """What `em_step` never decreases, up to a constant: maximal over common row and level."""
    rows = torch.cat([prior.factor, prior.mean[:, None]], 1)
    own, common = shrinkage.precisions(prior.rank), shrinkage.common_precisions(prior.rank)
    row = own * rows.sum(0) / (own * len(rows) + common)
    scatter = (own * (rows - row).square()).sum() + (common * row.square()).sum()
    variances = prior.diagonal[pairs.items.unique()]
    level = _common_level(variances)
    spread = LEVEL_PAIRS * ((variances / level).log() + level / variances).sum()
    return log_likelihood(prior, pairs) - (scatter + spread) / 2


def em_step(prior: ItemPrior, pairs: ItemPairs, shrinkage: Shrinkage) -> ItemPrior:
    """One iteration of generalised EM, with the coefficients z of tasks as missing data.

    Cost: one sparse product of the pairs with rank^2 columns by task and one by item, and systems
    of size rank for all tasks and items.
    """
    posterior = task_posterior(prior, pairs)
    prior = _with_rows(prior, pairs, posterior, shrinkage)
    return _with_variances(prior, pairs, posterior, shrinkage)


def _with_rows(
    prior: ItemPrior, pairs: ItemPairs, posterior: TaskPosterior, shrinkage: Shrinkage
) -> ItemPrior:
    """Maximise over mean, factor and their common row at fixed variances: regressions on (z, 1)."""
    rank, width = prior.rank, prior.rank + 1
    weights = 1 / (prior.diagonal[pairs.items] + prior.noise / pairs.counts)
    ones = posterior.mean.new_ones(pairs.num_tasks, 1)
    features = torch.cat([posterior.mean, ones], 1)
    second = outer_products(features).unflatten(1, (width, width))
    second[:, :rank, :rank] += posterior.covariance
    grams = pairs.by_item(weights, second.flatten(1)).unflatten(1, (width, width))
    moments = pairs.by_item(weights * pairs.means, features)
    own, common = shrinkage.precisions(rank), shrinkage.common_precisions(rank)
    cholesky = torch.linalg.cholesky(grams + torch.diag(own))
    alone = torch.cholesky_solve(moments[:, :, None], cholesky).squeeze(2)
    pull = torch.cholesky_solve(torch.diag(own).expand_as(grams), cholesky)
    # The rows are alone_j + pull_j common. The common row balances them: own sum_j (row_j -
    # common) = its own penalty. Items without samples have the common row.
    eye = torch.eye(width, dtype=ones.dtype, device=ones.device)
    system = (eye - pull).sum(0) + torch.diag(common / own)
    rows = alone + pull @ torch.linalg.solve(system, alone.sum(0))
    return replace(prior, factor=rows[:, :rank].contiguous(), mean=rows[:, rank].contiguous())


def _with_variances(
    prior: ItemPrior, pairs: ItemPairs, posterior: TaskPosterior, shrinkage: Shrinkage
) -> ItemPrior:
    """Improve diagonal and noise: an inner EM with what is specific to a pair as missing data.

    Only pairs with several samples tell the two apart. Without them their ratio stays near that
    of the start, and predictions for other items do not depend on it.
    """
    items, counts = pairs.items, pairs.counts
    shared_mean, shared_variance = shared_part(
        prior.factor, posterior, pairs.tasks, items, is_dense=pairs.is_dense
    )
    squares = (pairs.means - prior.mean[items] - shared_mean).square() + shared_variance
    num_pairs = pairs.item_counts()
    diagonal, noise = prior.diagonal, prior.noise
    for _ in range(VARIANCE_STEPS):
        # `left`: the share of a residual that is noise in the mean of its pair.
        left = noise / (counts * diagonal[items] + noise)
        variances = left * diagonal[items]
        specific = pairs.item_sums((1 - left).square() * squares + variances)
        errors = counts * (left.square() * squares + variances) + pairs.within
        level = _common_level(diagonal[num_pairs > 0])
        diagonal = (specific + LEVEL_PAIRS * level) / (num_pairs + LEVEL_PAIRS)
        diagonal = diagonal.clamp_min(shrinkage.smallest_variance())
        error, count = pairs.total(errors, counts)
        noise = (error / count).clamp_min(shrinkage.smallest_variance())
    return replace(prior, diagonal=diagonal, noise=noise)


def _common_level(variances: Tensor) -> Tensor:
    """The most likely level of inverse-gamma variances [item]: their harmonic mean."""
    return len(variances) / (1 / variances).sum()

"""The covariance of heads over tasks, estimated by expectation maximisation.

Tasks whose rewards depend on few common features have heads that differ in few directions. With
the covariance of the heads that are known, a task learns these few numbers instead of a whole head.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from gfucb.core.shards import ONE_SHARD, Shards, global_tasks, totals
from gfucb.estimation.evidence import TaskMoments
from gfucb.estimation.sample_moments import SampleMoments

# The prior of the covariance: as if this many further tasks had uncorrelated heads. Chosen on the
# tuning seeds of the suite: 10 was worse with ten tasks, 100 had a third of the benefit.
PRIOR_TASKS = 25.0
# Steps in each fit. They continue from the fit before, so that many fits come close to a maximum.
NUM_STEPS = 4
# Steps from the identity, for the S of half of the tasks that has to predict the other half.
NUM_STEPS_OF_HALVES = 3
# The number of tasks times feature_dim^3 is at most this, in each step.
LARGEST_COST = 5e8
# With fewer samples than this many times the features, heads say little about each other, and the
# estimate costs much more than the rest of a fit.
SAMPLES_PER_FEATURE = 0.25


def covariance_factor(
    sums: TaskMoments | SampleMoments,
    scales: Tensor,
    mean_ratio: float,
    start: Tensor | None = None,
    shards: Shards = ONE_SHARD,
) -> Tensor | None:
    """The lower Cholesky factor of S in w_i ~ N(mean, D S D), [feature, feature].

    Each step raises the posterior density of S and of the mean of all heads, with the prior
    density |S|^(-p/2) exp(-p tr(S^-1) / 2) of S for p = `PRIOR_TASKS`. Tasks with few, noisy
    samples can be explained by directions of their own, so S must predict tasks that it was not
    estimated from: None, which is the identity, if the identity predicts them better.

    Args:
        sums: of all samples.
        scales: D, [feature].
        mean_ratio: the prior variance of the mean is `mean_ratio` * D^2; positive.
        start: the factor of the fit before; None for the identity.
        shards: over whose tasks the covariance goes.
    """
    size = len(scales)
    if totals(shards, float(sums.counts.sum()))[0] < SAMPLES_PER_FEATURE * size:
        return None
    tasks, ranks = _largest_tasks(sums.counts, max(1, int(LARGEST_COST / size**3)), shards)
    used = sums.of_tasks(tasks).scaled(scales)
    if not _predicts_other_tasks(used, ranks, mean_ratio, shards):
        return None
    # In the memory layout of saved tensors, so that a restored agent rounds in the same way.
    return _estimated(used, mean_ratio, start, NUM_STEPS, shards)[1].contiguous()


def _largest_tasks(counts: Tensor, most: int, shards: Shards) -> tuple[Tensor, Tensor]:
    """The own ones of the tasks with most samples among all shards, and their ranks: [n], [n]."""
    order = counts.argsort(descending=True, stable=True)[:most]
    order = order[counts[order] > 0]
    if shards.count == 1:
        return order, torch.arange(len(order), device=order.device)
    # Of equal counts those with the smallest numbers come first, as in one process.
    own = torch.stack([-counts[order], global_tasks(shards, order)], dim=1)
    found = shards.gather(own.cpu()).numpy()
    chosen = torch.from_numpy(found[np.lexsort((found[:, 1], found[:, 0]))[:most], 1])
    ranks = (chosen % shards.count == shards.index).nonzero().squeeze(1)
    tasks = chosen[ranks] // shards.count
    return tasks.to(order.device), ranks.to(order.device)


def _estimated(
    sums: TaskMoments, mean_ratio: float, start: Tensor | None, num_steps: int, shards: Shards
) -> tuple[Tensor, Tensor]:
    """The mean of heads [feature] and the lower factor of S after some steps."""
    identity = torch.eye(sums.moments.shape[1]).to(sums.moments)
    mean, factor = identity[0], identity if start is None else start
    for _ in range(num_steps):
        mean, factor = _step(sums, factor, mean_ratio, identity, shards)
    return mean, factor


def _step(
    sums: TaskMoments, factor: Tensor, mean_ratio: float, identity: Tensor, shards: Shards
) -> tuple[Tensor, Tensor]:
    """One step: posteriors of all heads given S and the mean, then S given their moments."""
    (num_tasks,) = totals(shards, len(sums.counts))
    precision = torch.cholesky_inverse(factor)
    covariances = torch.cholesky_inverse(torch.linalg.cholesky(sums.grams + precision))
    total = shards.sum(covariances.sum(0))
    alone = (covariances @ sums.moments.unsqueeze(-1)).squeeze(-1)  # heads for a mean of zero
    pull = precision @ shards.sum(alone.sum(0))
    mean_precision = identity / mean_ratio + num_tasks * precision - precision @ total @ precision
    mean_factor = torch.linalg.cholesky(0.5 * (mean_precision + mean_precision.mT))
    mean = torch.cholesky_solve(pull[:, None], mean_factor).squeeze(1)
    (explained,) = totals(shards, float((alone * sums.moments).sum()))
    noise = sums.noise(explained + float(pull @ mean), shards)
    deviations = alone + covariances @ (precision @ mean) - mean
    second_moments = total + shards.sum(deviations.mT @ deviations) / noise
    covariance = (PRIOR_TASKS * identity + second_moments) / (PRIOR_TASKS + num_tasks)
    return mean, torch.linalg.cholesky(0.5 * (covariance + covariance.mT))


def _predicts_other_tasks(
    sums: TaskMoments, ranks: Tensor, mean_ratio: float, shards: Shards
) -> bool:
    """Whether each half of the tasks has larger density with the S of the other half.

    The halves are tasks with even and with odd ranks [task] among those of all shards.
    """
    if totals(shards, len(sums.counts))[0] < 2:
        return False
    identity = torch.eye(sums.moments.shape[1]).to(sums.moments)
    halves = [sums.of_tasks((ranks % 2 == half).nonzero().squeeze(1)) for half in (0, 1)]
    plain = with_covariance = 0.0
    for own, other in (halves, halves[::-1]):
        # The first step starts from the identity, so its mean is that of the identity.
        mean, factor = _step(other, identity, mean_ratio, identity, shards)
        plain += _log_density(own, mean, identity, shards)
        for _ in range(NUM_STEPS_OF_HALVES - 1):
            mean, factor = _step(other, factor, mean_ratio, identity, shards)
        with_covariance += _log_density(own, mean, factor, shards)
    return with_covariance > plain


def _log_density(sums: TaskMoments, mean: Tensor, factor: Tensor, shards: Shards) -> float:
    """Log density of all rewards given mean and factor, with the best noise variance."""
    posterior = torch.linalg.cholesky(sums.grams + torch.cholesky_inverse(factor))
    pulls = sums.moments - sums.grams @ mean
    whitened = torch.linalg.solve_triangular(posterior, pulls.unsqueeze(-1), upper=False)
    explained = ((sums.moments + pulls) @ mean).sum() + whitened.square().sum()
    explained, count, log_determinant, num_tasks = totals(
        shards,
        float(explained),
        float(sums.counts.sum()),
        _log_determinant(posterior),
        len(sums.counts),
    )
    logs = count * math.log(sums.noise(explained, shards))
    return -0.5 * (logs + log_determinant + num_tasks * _log_determinant(factor))


def _log_determinant(factors: Tensor) -> float:
    """The sum over all lower factors L of the log determinants of L L^T."""
    return 2 * float(factors.diagonal(dim1=-2, dim2=-1).log().sum())

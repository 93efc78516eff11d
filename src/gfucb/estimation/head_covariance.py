"""The covariance of heads over tasks, estimated by expectation maximisation.

Tasks whose rewards depend on few common features have heads that differ in few directions. With
the covariance of the heads that are known, a task learns these few numbers instead of a whole head.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.estimation.evidence import TaskMoments

# The prior of the covariance: as if this many further tasks had uncorrelated heads. Chosen on the
# tuning seeds of the suite: 10 was worse with ten tasks, 100 had a third of the benefit.
PRIOR_TASKS = 25.0
# Steps in each fit. They continue from the fit before, so that many fits come close to a maximum.
NUM_STEPS = 4
# The number of tasks times feature_dim^3 is at most this, in each step.
LARGEST_COST = 5e8
# With fewer samples than this many times the features, heads say too little about each other.
SAMPLES_PER_FEATURE = 1.0


def covariance_factor(
    sums: TaskMoments, scales: Tensor, mean_ratio: float, start: Tensor | None = None
) -> Tensor | None:
    """The lower Cholesky factor of S in w_i ~ N(mean, D S D), [feature, feature].

    Each step raises the posterior density of S and of the mean of all heads, with the prior
    density |S|^(-p/2) exp(-p tr(S^-1) / 2) of S for p = `PRIOR_TASKS`. Tasks with few, noisy
    samples could be explained by directions of their own, so S must predict tasks that it was not
    estimated from: None, which is the identity, if the identity predicts them better.

    Args:
        sums: of all samples.
        scales: D, [feature].
        mean_ratio: the prior variance of the mean is `mean_ratio` * D^2; positive.
        start: the factor of the fit before; None for the identity.
    """
    size = len(scales)
    if float(sums.counts.sum()) < SAMPLES_PER_FEATURE * size:
        return None
    most = max(1, int(LARGEST_COST / size**3))
    order = sums.counts.argsort(descending=True, stable=True)[:most]
    sums = sums.of_tasks(order[sums.counts[order] > 0]).scaled(scales)
    identity = torch.eye(size, dtype=scales.dtype, device=scales.device)
    without = _heads(sums, identity, mean_ratio)
    found = without if start is None else _heads(sums, torch.cholesky_inverse(start), mean_ratio)
    for _ in range(NUM_STEPS - 1):
        factor = torch.linalg.cholesky(found.covariance(identity))
        found = _heads(sums, torch.cholesky_inverse(factor), mean_ratio)
    alone = torch.linalg.cholesky(sums.grams + identity)
    plain = _log_density(sums, without.mean, alone, torch.zeros_like(sums.squares))
    if found.density_of_left_out(sums, identity) <= plain:
        return None
    # In the memory layout of saved tensors, so that a restored agent rounds in the same way.
    return torch.linalg.cholesky(found.covariance(identity)).contiguous()


@dataclass(frozen=True, eq=False)
class _Heads:
    """The heads of tasks for one S.

    Attributes:
        mean: of all heads, [feature].
        moments: A_i + d_i d_i^T / noise, [task, feature, feature]: A_i is the covariance of a
            head and d_i the mean of its deviation from the mean of all.
    """

    mean: Tensor
    moments: Tensor

    def covariance(self, identity: Tensor) -> Tensor:
        """S given the heads."""
        return (PRIOR_TASKS * identity + self.moments.sum(0)) / (PRIOR_TASKS + len(self.moments))

    def density_of_left_out(self, sums: TaskMoments, identity: Tensor) -> float:
        """Log density of the rewards of each task given the S of all other tasks."""
        others = PRIOR_TASKS * identity + self.moments.sum(0) - self.moments
        factors = torch.linalg.cholesky(others / (PRIOR_TASKS + len(self.moments) - 1))
        posterior = torch.linalg.cholesky(sums.grams + torch.cholesky_inverse(factors))
        return _log_density(sums, self.mean, posterior, _log_determinants(factors))


def _heads(sums: TaskMoments, precision: Tensor, mean_ratio: float) -> _Heads:
    """The posteriors of all heads and their mean, given the inverse of S."""
    num_tasks, identity = len(sums.counts), torch.eye(len(precision)).to(precision)
    covariances = torch.cholesky_inverse(torch.linalg.cholesky(sums.grams + precision))
    total = covariances.sum(0)
    alone = (covariances @ sums.moments.unsqueeze(-1)).squeeze(-1)  # heads for a mean of zero
    pull = precision @ alone.sum(0)
    mean_precision = identity / mean_ratio + num_tasks * precision - precision @ total @ precision
    mean_factor = torch.linalg.cholesky(0.5 * (mean_precision + mean_precision.mT))
    mean = torch.cholesky_solve(pull[:, None], mean_factor).squeeze(1)
    noise = sums.noise(float((alone * sums.moments).sum()) + float(pull @ mean))
    deviations = alone + covariances @ (precision @ mean) - mean
    return _Heads(mean, covariances + deviations[:, :, None] * deviations[:, None, :] / noise)


def _log_density(
    sums: TaskMoments, mean: Tensor, posterior: Tensor, log_determinants: Tensor
) -> float:
    """Log density of all rewards with the best noise variance, up to a constant.

    `posterior` are lower factors of S_i^-1 + G_i, and `log_determinants` [task] those of S_i.
    """
    pulls = sums.moments - sums.grams @ mean
    squares = sums.squares - (sums.moments + pulls) @ mean
    whitened = torch.linalg.solve_triangular(posterior, pulls.unsqueeze(-1), upper=False)
    square = sums.noise(float(sums.squares.sum() - squares.sum() + whitened.square().sum()))
    determinants = float((log_determinants + _log_determinants(posterior)).sum())
    return -0.5 * (float(sums.counts.sum()) * math.log(square) + determinants)


def _log_determinants(factors: Tensor) -> Tensor:
    """Of L L^T for lower factors L: [task, feature, feature] -> [task]."""
    return 2 * factors.diagonal(dim1=-2, dim2=-1).log().sum(-1)

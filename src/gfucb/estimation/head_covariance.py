"""The covariance of heads over tasks, estimated by expectation maximisation.

Tasks whose rewards depend on few common features have heads that differ in few directions. With
the covariance of the heads that are known, a task learns these few numbers instead of a whole head.
"""

from __future__ import annotations

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


def covariance_factor(
    sums: TaskMoments, scales: Tensor, mean_ratio: float, start: Tensor | None = None
) -> Tensor:
    """The lower Cholesky factor of S in w_i ~ N(mean, D S D), [feature, feature].

    Each step raises the posterior density of S and of the mean of all heads, with the prior
    density |S|^(-p/2) exp(-p tr(S^-1) / 2) of S for p = `PRIOR_TASKS`.

    Args:
        sums: of all samples.
        scales: D, [feature].
        mean_ratio: the prior variance of the mean is `mean_ratio` * D^2; positive.
        start: the factor of the fit before; None for the identity.
    """
    size = len(scales)
    most = max(1, int(LARGEST_COST / size**3))
    order = sums.counts.argsort(descending=True, stable=True)[:most]
    sums = sums.of_tasks(order[sums.counts[order] > 0]).scaled(scales)
    identity = torch.eye(size, dtype=scales.dtype, device=scales.device)
    factor = identity if start is None else start
    for _ in range(NUM_STEPS):
        factor = _step(sums, factor, mean_ratio, identity)
    # In the memory layout of saved tensors, so that a restored agent rounds in the same way.
    return factor.contiguous()


def _step(sums: TaskMoments, factor: Tensor, mean_ratio: float, identity: Tensor) -> Tensor:
    """One step: posteriors of all heads given S and the mean, then S given their moments."""
    num_tasks = len(sums.counts)
    precision = torch.cholesky_inverse(factor)
    covariances = torch.cholesky_inverse(torch.linalg.cholesky(sums.grams + precision))
    total = covariances.sum(0)
    alone = (covariances @ sums.moments.unsqueeze(-1)).squeeze(-1)  # heads for a mean of zero
    pull = precision @ alone.sum(0)
    mean_precision = identity / mean_ratio + num_tasks * precision - precision @ total @ precision
    mean_factor = torch.linalg.cholesky(0.5 * (mean_precision + mean_precision.mT))
    mean = torch.cholesky_solve(pull[:, None], mean_factor).squeeze(1)
    noise = sums.noise(float((alone * sums.moments).sum()) + float(pull @ mean))
    deviations = alone + covariances @ (precision @ mean) - mean
    second_moments = total + deviations.mT @ deviations / noise
    covariance = (PRIOR_TASKS * identity + second_moments) / (PRIOR_TASKS + num_tasks)
    return torch.linalg.cholesky(0.5 * (covariance + covariance.mT))

"""Heads with a common Gaussian prior: their marginal likelihood and posterior, in closed form.

    y = Phi_i w_i + noise,   w_i ~ N(mean, D^2),   mean ~ N(0, mean_ratio * D^2),   D diagonal,

all in units of the noise variance, which is estimated. This is ridge regression with weights of
each task around weights that all tasks share. `mean_ratio = 0` fits the tasks separately.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.linalg import task_grams, task_sums

# The noise variance is estimated as if this many samples had an error of the whole reward range.
PSEUDO_SAMPLES = 1e-4


@dataclass(frozen=True, eq=False)
class TaskMoments:
    """Sums over the samples of each task, for features before scaling.

    Attributes:
        grams: sum of phi phi^T, [task, feature, feature].
        moments: sum of phi y, [task, feature].
        squares: sum of y^2 over all samples.
        num_samples: of all tasks.
        pseudo_square: the squared error of a pseudo-sample.
    """

    grams: Tensor
    moments: Tensor
    squares: float
    num_samples: int
    pseudo_square: float

    @classmethod
    def of(
        cls,
        features: Tensor,
        tasks: Tensor,
        targets: Tensor,
        num_tasks: int,
        *,
        pseudo_square: float,
    ) -> TaskMoments:
        """The sums of samples [n, feature], [n], [n]."""
        return cls(
            task_grams(features, tasks, num_tasks),
            task_sums(features * targets[:, None], tasks, num_tasks),
            float(targets.square().sum()),
            len(targets),
            pseudo_square,
        )


@dataclass(frozen=True, eq=False)
class TwoLevelPosterior:
    """The posterior for scaled features D phi, in units of the noise variance.

    Attributes:
        log_evidence: log marginal likelihood, up to a constant of the data.
        noise: the noise variance.
        covariances: (I + D G_i D)^-1, [task, feature, feature].
        moments: D phi y, [task, feature].
        mean: of the heads of all tasks, [feature].
        mean_covariance: its posterior covariance, [feature, feature].
    """

    log_evidence: float
    noise: float
    covariances: Tensor
    moments: Tensor
    mean: Tensor
    mean_covariance: Tensor


def log_evidence(sums: TaskMoments, scales: Tensor, mean_ratio: float) -> float:
    """Log marginal likelihood of prior standard deviations [feature], up to a constant."""
    factors, moments = _factors(sums, scales), sums.moments * scales
    whitened = torch.linalg.solve_triangular(factors, moments.unsqueeze(-1), upper=False)
    log_determinant = 2 * float(factors.diagonal(dim1=-2, dim2=-1).log().sum())
    square = sums.squares - float(whitened.square().sum())
    if mean_ratio > 0:
        precision = _mean_precision(torch.cholesky_inverse(factors), mean_ratio)
        solved = torch.linalg.solve_triangular(factors.mT, whitened, upper=True)
        factor = torch.linalg.cholesky(precision)
        pull = torch.linalg.solve_triangular(factor, solved.sum(0), upper=False)
        square -= float(pull.square().sum())
        log_determinant += 2 * float(factor.diagonal().log().sum())
        log_determinant += len(scales) * math.log(mean_ratio)
    return _score(sums, square, log_determinant)


def two_level_posterior(sums: TaskMoments, scales: Tensor, mean_ratio: float) -> TwoLevelPosterior:
    """The posterior of all heads and of their mean."""
    factors, moments = _factors(sums, scales), sums.moments * scales
    # In the memory layout of saved tensors: in another one products round differently, and a
    # restored agent would not continue to the last bit.
    covariances = torch.cholesky_inverse(factors).contiguous()
    heads = (covariances @ moments.unsqueeze(-1)).squeeze(-1)
    square = sums.squares - float((heads * moments).sum())
    log_determinant = 2 * float(factors.diagonal(dim1=-2, dim2=-1).log().sum())
    mean, mean_covariance = torch.zeros_like(scales), torch.zeros_like(factors[0])
    if mean_ratio > 0:
        factor = torch.linalg.cholesky(_mean_precision(covariances, mean_ratio))
        mean_covariance = torch.cholesky_inverse(factor).contiguous()
        mean = mean_covariance @ heads.sum(0)
        square -= float(mean @ heads.sum(0))
        log_determinant += 2 * float(factor.diagonal().log().sum())
        log_determinant += len(scales) * math.log(mean_ratio)
    return TwoLevelPosterior(
        _score(sums, square, log_determinant),
        _noise(sums, square),
        covariances,
        moments,
        mean,
        mean_covariance,
    )


def _factors(sums: TaskMoments, scales: Tensor) -> Tensor:
    """Lower factors of I + D G_i D, [task, feature, feature]."""
    matrices = scales[:, None] * sums.grams * scales
    matrices.diagonal(dim1=-2, dim2=-1).add_(1.0)
    factors, failures = torch.linalg.cholesky_ex(matrices)
    if bool(failures.any()):
        raise InvalidInputError(
            "the Gram matrix of the features is not finite; inputs are too large"
        )
    return factors


def _mean_precision(covariances: Tensor, mean_ratio: float) -> Tensor:
    """I / mean_ratio + sum_i (I - V_i^-1): the precision of the mean of all heads."""
    eye = torch.eye(covariances.shape[-1], dtype=covariances.dtype, device=covariances.device)
    return eye * (1 / mean_ratio + len(covariances)) - covariances.sum(0)


def _noise(sums: TaskMoments, square: float) -> float:
    total = max(square, 0.0) + PSEUDO_SAMPLES * sums.pseudo_square
    return total / (sums.num_samples + PSEUDO_SAMPLES)


def _score(sums: TaskMoments, square: float, log_determinant: float) -> float:
    count = sums.num_samples + PSEUDO_SAMPLES
    return -0.5 * (count * math.log(_noise(sums, square)) + log_determinant)

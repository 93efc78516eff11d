"""Heads with a common Gaussian prior: their marginal likelihood and posterior, in closed form.

    y = Phi_i w_i + noise,   w_i ~ N(mean, D S D),   mean ~ N(0, mean_ratio * D^2),   D diagonal,

all in units of the noise variance, which is estimated. This is ridge regression with weights of
each task around weights that all tasks share. `mean_ratio = 0` fits the tasks separately. S says
how deviations from the mean are correlated; it is the identity unless its factor is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
        squares: sum of y^2, [task].
        counts: the number of samples, [task].
        pseudo_square: the squared error of a pseudo-sample.
    """

    grams: Tensor
    moments: Tensor
    squares: Tensor
    counts: Tensor
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
            task_sums(targets.square(), tasks, num_tasks),
            torch.bincount(tasks, minlength=num_tasks),
            pseudo_square,
        )

    def scaled(self, scales: Tensor, factor: Tensor | None = None) -> TaskMoments:
        """The sums for features times `scales` [feature], then times `factor` if it is given."""
        grams, moments = scales[:, None] * self.grams * scales, self.moments * scales
        if factor is not None:
            grams, moments = factor.mT @ grams @ factor, moments @ factor
        return replace(self, grams=grams, moments=moments)

    def of_tasks(self, tasks: Tensor) -> TaskMoments:
        """The sums of some tasks [n]."""
        return replace(
            self,
            grams=self.grams[tasks],
            moments=self.moments[tasks],
            squares=self.squares[tasks],
            counts=self.counts[tasks],
        )

    def without(self, part: TaskMoments) -> TaskMoments:
        """The sums of all samples but those of a part."""
        return replace(
            self,
            grams=self.grams - part.grams,
            moments=self.moments - part.moments,
            squares=self.squares - part.squares,
            counts=self.counts - part.counts,
        )

    def noise(self, explained: float) -> float:
        """The noise variance, if this much of the sum of squares is explained."""
        square = max(float(self.squares.sum()) - explained, 0.0)
        total = square + PSEUDO_SAMPLES * self.pseudo_square
        return total / (float(self.counts.sum()) + PSEUDO_SAMPLES)


@dataclass(frozen=True, eq=False)
class TwoLevelPosterior:
    """The posterior for scaled features L^T D phi, S = L L^T, in units of the noise variance.

    Attributes:
        log_evidence: log marginal likelihood, up to a constant of the data.
        noise: the noise variance.
        covariances: (I + L^T D G_i D L)^-1, [task, feature, feature].
        moments: L^T D phi y, [task, feature].
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
    sums = sums.scaled(scales)
    factors = _factors(sums)
    whitened = torch.linalg.solve_triangular(factors, sums.moments.unsqueeze(-1), upper=False)
    log_determinant = 2 * float(factors.diagonal(dim1=-2, dim2=-1).log().sum())
    explained = float(whitened.square().sum())
    if mean_ratio > 0:
        precision = _mean_precision(torch.cholesky_inverse(factors), _identity(scales) / mean_ratio)
        solved = torch.linalg.solve_triangular(factors.mT, whitened, upper=True)
        factor = torch.linalg.cholesky(precision)
        pull = torch.linalg.solve_triangular(factor, solved.sum(0), upper=False)
        explained += float(pull.square().sum())
        log_determinant += 2 * float(factor.diagonal().log().sum())
        log_determinant += len(scales) * math.log(mean_ratio)
    return _score(sums, explained, log_determinant)


def two_level_posterior(
    sums: TaskMoments, scales: Tensor, mean_ratio: float, factor: Tensor | None = None
) -> TwoLevelPosterior:
    """The posterior of all heads and of their mean.

    Args:
        sums: of all samples.
        scales: prior standard deviations D, [feature].
        mean_ratio: prior variance of the mean relative to that of deviations; 0 for none.
        factor: lower Cholesky factor of S, [feature, feature]; None for the identity.
    """
    sums = sums.scaled(scales, factor)
    factors, moments = _factors(sums), sums.moments
    # In the memory layout of saved tensors: in another one products round differently, and a
    # restored agent would not continue to the last bit.
    covariances = torch.cholesky_inverse(factors).contiguous()
    heads = (covariances @ moments.unsqueeze(-1)).squeeze(-1)
    explained = float((heads * moments).sum())
    log_determinant = 2 * float(factors.diagonal(dim1=-2, dim2=-1).log().sum())
    mean, mean_covariance = torch.zeros_like(scales), torch.zeros_like(factors[0])
    if mean_ratio > 0:
        root = _identity(scales) if factor is None else factor
        precision = _mean_precision(covariances, root.mT @ root / mean_ratio)
        mean_factor = torch.linalg.cholesky(precision)
        mean_covariance = torch.cholesky_inverse(mean_factor).contiguous()
        mean = mean_covariance @ heads.sum(0)
        explained += float(mean @ heads.sum(0))
        log_determinant += 2 * float((mean_factor.diagonal() / root.diagonal()).log().sum())
        log_determinant += len(scales) * math.log(mean_ratio)
    return TwoLevelPosterior(
        _score(sums, explained, log_determinant),
        sums.noise(explained),
        covariances,
        moments,
        mean,
        mean_covariance,
    )


def _factors(sums: TaskMoments) -> Tensor:
    """Lower factors of I + G_i, [task, feature, feature]."""
    matrices = sums.grams + _identity(sums.moments[0])
    factors, failures = torch.linalg.cholesky_ex(matrices)
    if bool(failures.any()):
        raise InvalidInputError(
            "the Gram matrix of the features is not finite; inputs are too large"
        )
    return factors


def _mean_precision(covariances: Tensor, prior: Tensor) -> Tensor:
    """Prior + sum_i (I - V_i^-1): the precision of the mean of all heads."""
    return prior + len(covariances) * _identity(prior[0]) - covariances.sum(0)


def _identity(like: Tensor) -> Tensor:
    return torch.eye(len(like), dtype=like.dtype, device=like.device)


def _score(sums: TaskMoments, explained: float, log_determinant: float) -> float:
    count = float(sums.counts.sum()) + PSEUDO_SAMPLES
    return -0.5 * (count * math.log(sums.noise(explained)) + log_determinant)

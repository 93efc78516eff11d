"""Heads with a common Gaussian prior: their marginal likelihood and posterior, in closed form.

    y = Phi_i w_i + noise,   w_i ~ N(mean, D S D),   mean ~ N(0, mean_ratio * D^2),   D diagonal,

all in units of the noise variance, which is estimated. This is ridge regression with weights of
each task around weights that all tasks share. `mean_ratio = 0` fits the tasks separately. S says
how deviations from the mean are correlated; it is the identity unless its factor is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Protocol

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.linalg import is_finite_factor, task_grams, task_sums
from gfucb.core.shards import ONE_SHARD, Shards, totals
from gfucb.models.sample_covariances import SampleCovariances

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

    def of_all(self, shards: Shards) -> TaskMoments:
        """The sums over shards that have the same tasks."""
        if shards.count == 1:
            return self
        grams, moments, squares = (shards.sum(x) for x in (self.grams, self.moments, self.squares))
        return TaskMoments(grams, moments, squares, shards.sum(self.counts), self.pseudo_square)

    def noise(self, explained: float, shards: Shards = ONE_SHARD) -> float:
        """The noise variance, if this much of the sum of squares of all shards is explained."""
        squares, count = totals(shards, float(self.squares.sum()), float(self.counts.sum()))
        return noise_variance(squares, explained, count, self.pseudo_square)

    def head_sums(self, shards: Shards) -> tuple[HeadSums, Tensor]:
        """The sums over the tasks of all shards, and the covariances of the own ones."""
        factors = _factors(self)
        # In the memory layout of saved tensors: in another one products round differently, and a
        # restored agent would not continue to the last bit.
        covariances = torch.cholesky_inverse(factors).contiguous()
        heads = (covariances @ self.moments.unsqueeze(-1)).squeeze(-1)
        sums = HeadSums(
            len(heads),
            covariances.sum(0),
            heads.sum(0),
            float((heads * self.moments).sum()),
            2 * float(factors.diagonal(dim1=-2, dim2=-1).log().sum()),
            float(self.squares.sum()),
            float(self.counts.sum()),
        )
        return sums.of_all(shards), covariances


@dataclass(frozen=True, eq=False)
class HeadSums:
    """Sums over tasks, for heads with the prior N(0, I): all that the mean of heads depends on.

    Attributes:
        num_tasks: the number of tasks.
        covariances: sum of (I + G_i)^-1, [feature, feature].
        heads: sum of the posterior means, [feature].
        explained: sum of squares that the heads explain.
        log_determinant: sum of log |I + G_i|.
        squares: sum of squared targets.
        count: the number of samples.
    """

    num_tasks: float
    covariances: Tensor
    heads: Tensor
    explained: float
    log_determinant: float
    squares: float
    count: float

    def plus(self, other: HeadSums) -> HeadSums:
        """The sums over the tasks of both."""
        pairs = ((getattr(self, x.name), getattr(other, x.name)) for x in fields(self))
        return HeadSums(*(one + more for one, more in pairs))

    def of_all(self, shards: Shards) -> HeadSums:
        """The sums over the tasks of all shards, in one exchange."""
        if shards.count == 1:
            return self
        numbers = (self.num_tasks, self.explained, self.log_determinant, self.squares, self.count)
        own = torch.cat([self.covariances.flatten(), self.heads, self.heads.new_tensor(numbers)])
        matrix, heads, found = shards.sum(own).split(
            [self.covariances.numel(), len(self.heads), len(numbers)]
        )
        num_tasks, explained, log_determinant, squares, count = found.tolist()
        covariances = matrix.view_as(self.covariances)
        return HeadSums(num_tasks, covariances, heads, explained, log_determinant, squares, count)


class SumsOfTasks(Protocol):
    """What `two_level_posterior` needs of samples: `TaskMoments`, or `SampleMoments`."""

    @property
    def moments(self) -> Tensor:
        """Sum of phi y, [task, feature]."""

    @property
    def pseudo_square(self) -> float:
        """The squared error of a pseudo-sample."""

    def scaled(self, scales: Tensor, factor: Tensor | None = None) -> SumsOfTasks:
        """The sums for features times `scales` [feature], then times `factor` if it is given."""

    def head_sums(self, shards: Shards) -> tuple[HeadSums, Tensor | SampleCovariances]:
        """The sums over the tasks of all shards, and the covariances of the own ones."""


@dataclass(frozen=True, eq=False)
class TwoLevelPosterior:
    """The posterior for scaled features L^T D phi, S = L L^T, in units of the noise variance.

    Attributes:
        log_evidence: log marginal likelihood, up to a constant of the data.
        noise: the noise variance.
        covariances: (I + L^T D G_i D L)^-1, [task, feature, feature], or in the form of samples.
        moments: L^T D phi y, [task, feature].
        mean: of the heads of all tasks, [feature].
        mean_covariance: its posterior covariance, [feature, feature].
    """

    log_evidence: float
    noise: float
    covariances: Tensor | SampleCovariances
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
    sums: SumsOfTasks,
    scales: Tensor,
    mean_ratio: float,
    factor: Tensor | None = None,
    shards: Shards = ONE_SHARD,
) -> TwoLevelPosterior:
    """The posterior of all heads and of their mean.

    Args:
        sums: of all samples.
        scales: prior standard deviations D, [feature].
        mean_ratio: prior variance of the mean relative to that of deviations; 0 for none.
        factor: lower Cholesky factor of S, [feature, feature]; None for the identity.
        shards: over whose tasks the mean goes.
    """
    sums = sums.scaled(scales, factor)
    found, covariances = sums.head_sums(shards)
    explained, log_determinant = found.explained, found.log_determinant
    mean, mean_covariance = torch.zeros_like(scales), torch.zeros_like(found.covariances)
    if mean_ratio > 0:
        root = _identity(scales) if factor is None else factor
        prior = root.mT @ root / mean_ratio
        precision = prior + found.num_tasks * _identity(scales) - found.covariances
        mean_factor = torch.linalg.cholesky(precision)
        mean_covariance = torch.cholesky_inverse(mean_factor).contiguous()
        mean = mean_covariance @ found.heads
        explained += float(mean @ found.heads)
        log_determinant += 2 * float((mean_factor.diagonal() / root.diagonal()).log().sum())
        log_determinant += len(scales) * math.log(mean_ratio)
    noise = noise_variance(found.squares, explained, found.count, sums.pseudo_square)
    evidence = -0.5 * ((found.count + PSEUDO_SAMPLES) * math.log(noise) + log_determinant)
    return TwoLevelPosterior(evidence, noise, covariances, sums.moments, mean, mean_covariance)


def noise_variance(squares: float, explained: float, count: float, pseudo_square: float) -> float:
    """The noise variance of samples of which this much of the sum of squares is explained."""
    total = max(squares - explained, 0.0) + PSEUDO_SAMPLES * pseudo_square
    return total / (count + PSEUDO_SAMPLES)


def _factors(sums: TaskMoments) -> Tensor:
    """Lower factors of I + G_i, [task, feature, feature]."""
    matrices = sums.grams + _identity(sums.moments[0])
    factors, failures = torch.linalg.cholesky_ex(matrices)
    if not is_finite_factor(factors, failures):
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

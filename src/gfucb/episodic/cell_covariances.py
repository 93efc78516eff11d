"""Cells whose noise has covariances of their own, where the data speak for them.

`cell_clusters` assumes one covariance of the noise in all cells. If an emission is not linear, the
noise of a state depends on the state. Here the covariance of a cell is drawn from an inverse
Wishart distribution around the common one and integrated out. The evidence decides whether
covariances differ, by how much, and which branches of a tree of observations are one cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist
from scipy.special import gammaln, multigammaln

from gfucb.episodic.cell_clusters import (
    NUM_ITERATIONS,
    Clusters,
    between_scatter,
    excess_variance,
    means_of,
    principal_directions,
    whitening,
)
from gfucb.episodic.distinct_rows import Floats, Integers

# Degrees of freedom of the prior beyond the number of coordinates: the smaller, the more
# covariances may differ. With the last, all are the same.
FREEDOMS = (6.0, 12.0, 25.0, 10_000.0)
# Cells get covariances of their own if the logarithm of the evidence grows by this number.
SMALLEST_GAIN = 10.0
# The weight, in samples, of the prior on means: those of two states differ by about ten standard
# deviations of the noise.
PRIOR_SAMPLES = 0.01
# Partitions have the probabilities of a Chinese restaurant process with this parameter: few large
# cells. With 1, outliers of nonlinear emissions were cells of their own.
CONCENTRATION = 1e-3

LinkageMethod = Literal["average", "ward"]


@dataclass(frozen=True, eq=False)
class Sums:
    """Counts [cell], sums [cell, coordinate] and sums of products of points in cells."""

    counts: Floats
    sums: Floats
    products: Floats

    @staticmethod
    def of(points: Floats, labels: Integers, num_cells: int) -> Sums:
        """The sums of points [n, coordinate] with cells [n]."""
        size = points.shape[1]
        sums, products = np.zeros((num_cells, size)), np.zeros((num_cells, size, size))
        np.add.at(sums, labels, points)
        np.add.at(products, labels, points[:, :, None] * points[:, None])
        return Sums(np.bincount(labels, minlength=num_cells).astype(np.float64), sums, products)


@dataclass(frozen=True)
class CovariancePrior:
    """A normal inverse Wishart prior around mean 0 and unit covariance.

    Attributes:
        size: the number of coordinates.
        freedom: the degrees of freedom of the covariance, above size + 1.
    """

    size: int
    freedom: float

    def posterior(self, sums: Sums) -> tuple[Floats, Floats, Floats, Floats]:
        """Weights and means [cell], [cell, coordinate], freedoms [cell] and scale matrices."""
        weights, freedoms = PRIOR_SAMPLES + sums.counts, self.freedom + sums.counts
        means = sums.sums / weights[:, None]
        scales = (self.freedom - self.size - 1) * np.eye(self.size) + sums.products
        scales = scales - weights[:, None, None] * means[:, :, None] * means[:, None]
        return weights, means, freedoms, scales

    def log_evidence(self, sums: Sums) -> Floats:
        """The logarithm of the density of all points of each cell, [cell]."""
        weights, _, freedoms, scales = self.posterior(sums)
        prior = np.log(self.freedom - self.size - 1)
        return np.asarray(
            -0.5 * self.size * (sums.counts * np.log(np.pi) + np.log(weights / PRIOR_SAMPLES))
            + 0.5 * self.freedom * self.size * prior
            - 0.5 * freedoms * np.linalg.slogdet(scales)[1]
            + _log_gamma(freedoms, self.size)
            - multigammaln(0.5 * self.freedom, self.size)
        )

    def predictive(self, sums: Sums) -> Predictive:
        """The distribution of the next point of each cell."""
        weights, means, freedoms, scales = self.posterior(sums)
        shares = weights / (weights + 1)
        constants = gammaln(0.5 * (freedoms + 1)) - gammaln(0.5 * (freedoms - self.size + 1))
        constants += 0.5 * self.size * np.log(shares / np.pi)
        constants -= 0.5 * np.linalg.slogdet(scales)[1]
        precisions = shares[:, None, None] * np.linalg.inv(scales)
        return Predictive(means, precisions, freedoms, constants)


@dataclass(frozen=True, eq=False)
class Predictive:
    """Student distributions of the next points of cells: one for each."""

    means: Floats
    precisions: Floats
    freedoms: Floats
    constants: Floats

    def log_density(self, points: Floats) -> Floats:
        """Of points [n, coordinate] in all cells, [n, cell]."""
        differences = points[:, None] - self.means
        distances = np.einsum("nci,cij,ncj->nc", differences, self.precisions, differences)
        return np.asarray(self.constants - 0.5 * (self.freedoms + 1) * np.log1p(distances))


def with_own_covariances(stages: Sequence[Floats], pooled: Clusters) -> Clusters | None:
    """Clusters with covariances of their own; None if one covariance explains the data.

    Args:
        stages: observations, [stage][observation, column].
        pooled: their clusters with one covariance.
    """
    if not pooled.is_mixture:
        return None
    centered = [rows - rows.mean(axis=0) for rows in stages]
    transform, labels = pooled.transform, pooled.labels
    found = None
    for _ in range(NUM_ITERATIONS):
        whitened = [rows @ transform for rows in centered]
        residuals = np.concatenate(
            [rows - means_of(rows, own)[own] for rows, own in zip(whitened, labels, strict=True)]
        )
        num_free = len(residuals) - sum(int(own.max()) + 1 for own in labels)
        if num_free < 1:
            return found
        transform = transform @ whitening(residuals, num_free)
        whitened = [rows @ transform for rows in centered]
        scatter = between_scatter(whitened, labels) + sum(map(excess_variance, whitened))
        directions = principal_directions(scatter)
        trees = [Tree(rows @ directions) for rows in whitened]
        freedom = _freedom(trees, directions.shape[1])
        if freedom is None:
            return found
        prior = CovariancePrior(directions.shape[1], freedom)
        labels = [tree.cut(prior)[1] for tree in trees]
        found = Clusters(transform, directions, labels, pooled.scale, freedom=freedom)
    return found


def _freedom(trees: Sequence[Tree], size: int) -> float | None:
    """The degrees of freedom with the largest evidence; None for one covariance."""
    if not size:
        return None
    evidence = [
        sum(tree.cut(CovariancePrior(size, size + more))[0] for tree in trees) for more in FREEDOMS
    ]
    has_gain = max(evidence) > evidence[-1] + SMALLEST_GAIN
    return size + FREEDOMS[int(np.argmax(evidence))] if has_gain else None


class Tree:
    """A hierarchy of the points [n, coordinate] of a stage, with the sums of all branches.

    Args:
        points: of the stage.
        linkage_method: average linkage of squared distances, or Ward's.
    """

    def __init__(self, points: Floats, linkage_method: LinkageMethod = "average") -> None:
        self._num_points = number = len(points)
        self._children: list[list[int]] = []
        if number > 1:
            squared = linkage_method == "average"
            distances = pdist(points, "sqeuclidean" if squared else "euclidean")
            merges = linkage(distances, linkage_method)
            self._children = merges[:, :2].astype(np.int64).tolist()
        rows = points[:, :, None] * points[:, None]
        more = len(self._children)
        counts = np.append(np.ones(number), np.zeros(more))
        sums = np.concatenate([points, np.zeros((more, points.shape[1]))])
        products = np.concatenate([rows, np.zeros((more, *rows.shape[1:]))])
        for branch, (left, right) in enumerate(self._children, start=number):
            counts[branch] = counts[left] + counts[right]
            sums[branch] = sums[left] + sums[right]
            products[branch] = products[left] + products[right]
        self._sums = Sums(counts, sums, products)

    def cut(self, prior: CovariancePrior) -> tuple[float, Integers]:
        """The largest log evidence of the points in cells that are branches; the cells, [n]."""
        best = evidence_of_cells(prior, self._sums).tolist()
        is_cut = [False] * len(best)
        for branch, (left, right) in enumerate(self._children, start=self._num_points):
            apart = best[left] + best[right]
            if apart > best[branch]:
                best[branch], is_cut[branch] = apart, True
        labels = np.full(len(best), -1)
        num_cells = 0
        if not is_cut[-1]:
            labels[-1], num_cells = 0, 1
        for branch in reversed(range(self._num_points, len(best))):  # parents before children
            for child in self._children[branch - self._num_points]:
                labels[child] = labels[branch]
                if labels[branch] < 0 and not is_cut[child]:
                    labels[child], num_cells = num_cells, num_cells + 1
        return best[-1], labels[: self._num_points]


def evidence_of_cells(prior: CovariancePrior, sums: Sums) -> Floats:
    """The log evidence of the points of each cell, and of their being one cell, [cell]."""
    return prior.log_evidence(sums) + (gammaln(sums.counts) + np.log(CONCENTRATION))


def _log_gamma(freedoms: NDArray[np.float64], size: int) -> Floats:
    """The multivariate log Gamma function at half of the freedoms, [cell]."""
    terms = gammaln(0.5 * (freedoms[:, None] - np.arange(size)))
    return np.asarray(terms.sum(axis=1) + 0.25 * size * (size - 1) * np.log(np.pi))

"""Clusters of observations within stages, on a scale that all stages and tasks share.

The model is that of linear discriminant analysis: in every stage an observation is the mean of a
cell plus noise, and the covariance of the noise is the same everywhere. Noise is estimated from
the differences of nearest neighbours first and from the residuals of cells afterwards. In units of
the noise, cells differ along a few directions, those in which some stage has more variance than
noise would have. There the number of cells follows from the scale and need not be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, pdist
from scipy.special import chdtri

from gfucb.episodic.distinct_rows import Floats, Integers

# Probability that the noise of an observation is larger than the limit beyond which it starts a
# new cell.
TAIL = 1e-6
# Largest number of directions in which cells may differ.
LARGEST_RANK = 16
# Directions that explain less than this share of the largest one are noise.
SMALLEST_SHARE = 0.01
NUM_ITERATIONS = 3
# The scale of noise is that of nearest neighbours, times at most this factor (as variances).
LARGEST_NOISE_RATIO = 4.0
# Between these factors the limit of distances within cells follows the data.
SCALES = (0.7, 2.0)
# In many dimensions noise keeps observations apart: the spread in a stage is at most this factor
# times the scale of neighbours. Beyond it observations fill a space of few dimensions.
LARGEST_SPREAD = 8.0
# Up to this number of dimensions neighbours are always close.
FEW_DIMENSIONS = 5
# Clusters in few dimensions: squared distances grow by this factor from within to between.
SMALLEST_GAP = 4.0
# Cells of a stage of continuous observations: the root of their number, up to this one.
LARGEST_NUMBER_OF_CELLS = 32
# Cells whose means are closer than this share of the limit of distances within cells are one.
LARGEST_OVERLAP = 0.5
# Observations that recur form clusters if squared distances within cells are below this share of
# those between cells.
LARGEST_WITHIN = 0.5


@dataclass(frozen=True, eq=False)
class Clusters:
    """Cells of observations.

    Attributes:
        transform: to coordinates in which the noise has unit covariance, [column, coordinate].
        directions: in which cells differ, [coordinate, direction].
        labels: the cell of each observation, [stage][observation].
        scale: multiplies the squared distance beyond which an observation starts a new cell.
        is_mixture: whether cells are components of a mixture, so that an observation between two
            is likelier to be of the larger one. Regions of continuous observations are not.
        freedom: degrees of freedom of the prior of covariances, where cells have their own; None
            if all have the same.
    """

    transform: Floats
    directions: Floats
    labels: list[Integers]
    scale: float = 1.0
    is_mixture: bool = True
    freedom: float | None = None


def fit_clusters(stages: Sequence[Floats]) -> Clusters | None:
    """Clusters of distinct observations [stage][observation, column].

    None if observations do not vary within any stage.
    """
    centered = [rows - rows.mean(axis=0) for rows in stages]
    basis = varying_directions(np.concatenate(centered))
    if not basis.shape[1] or max(len(rows) for rows in stages) < 3:
        return None
    neighbours = unit_of_neighbours(centered, basis)
    if neighbours is None:  # observations that differ by less than rounding
        return None
    transform, ratio = neighbours
    directions, labels = np.zeros((transform.shape[1], 0)), [_one_cell(rows) for rows in stages]
    scale = 1.0
    is_continuous = ratio > LARGEST_SPREAD
    if basis.shape[1] <= FEW_DIMENSIONS:
        is_continuous = not _has_gaps([rows @ transform for rows in centered])
    if is_continuous:
        return _continuous_cells(centered, basis)
    for _ in range(NUM_ITERATIONS):
        whitened = [rows @ transform for rows in centered]
        scatter = sum(excess_variance(rows) for rows in whitened) + between_scatter(
            whitened, labels
        )
        directions = principal_directions(scatter)
        scale = _scale_of_gap([rows @ directions for rows in whitened])
        labels = [_cells(rows, directions, scale) for rows in whitened]
        residuals = np.concatenate(
            [rows - means_of(rows, own)[own] for rows, own in zip(whitened, labels, strict=True)]
        )
        freedom = len(residuals) - sum(int(own.max()) + 1 for own in labels)
        if freedom < 1:
            break
        transform = transform @ whitening(residuals, freedom)
    whitened = [rows @ transform for rows in centered]
    directions = principal_directions(between_scatter(whitened, labels))
    labels = [
        _joined(rows @ directions, own, scale) for rows, own in zip(whitened, labels, strict=True)
    ]
    return Clusters(transform, directions, labels, scale)


def unit_of_neighbours(centered: Sequence[Floats], basis: Floats) -> tuple[Floats, float] | None:
    """A transform to units of the noise, and the spread in units of neighbours; None without noise.

    Args:
        centered: observations less the mean of their stage, [stage][observation, column].
        basis: of the directions in which they vary, [column, coordinate].
    """
    transform = basis
    for _ in range(NUM_ITERATIONS):
        differences = _neighbour_differences([rows @ transform for rows in centered])
        if not differences.any():
            return None
        transform = transform @ whitening(differences, len(differences)) * 2**0.5
    spread = np.concatenate([rows @ transform for rows in centered])
    ratio = float(np.median(np.linalg.eigvalsh(spread.T @ spread / len(spread))))
    return transform / min(ratio, LARGEST_NOISE_RATIO) ** 0.5, ratio


def _joined(rows: Floats, labels: Integers, scale: float) -> Integers:
    """Cells without those that were cut in two.

    Where noise depends on the state, linkage may divide a state. Decoded by their means, such
    cells are close.
    """
    size = rows.shape[1]
    if not size:
        return labels
    limit = LARGEST_OVERLAP * scale * distance_limit(size)
    for _ in range(NUM_ITERATIONS):
        if labels.max() > 0:
            tree = linkage(pdist(means_of(rows, labels), "sqeuclidean"), "average")
            groups = np.asarray(fcluster(tree, limit, "distance"), dtype=np.int64)
            labels = groups[labels] - 1
        distances = cdist(rows, means_of(rows, labels), "sqeuclidean")
        nearest = negative_log_density(distances, np.bincount(labels), size).argmin(axis=1)
        labels = np.unique(nearest, return_inverse=True)[1].reshape(-1)
    return np.asarray(labels, dtype=np.int64)


def negative_log_density(squared_distances: Floats, counts: Integers | Floats, size: int) -> Floats:
    """-2 log of the density of observations in cells, up to a constant, [n, cell].

    Args:
        squared_distances: from the means of cells, in units of the noise, [n, cell].
        counts: of the observations of each cell, [cell]; the mean of few is itself uncertain.
        size: the number of coordinates.
    """
    variances = 1 + 1 / counts
    return np.asarray(squared_distances / variances + size * np.log(variances) - 2 * np.log(counts))


def _continuous_cells(centered: Sequence[Floats], basis: Floats) -> Clusters:
    """Cells of observations without clusters: small regions, more of them with more data.

    The scale is that of the observations within regions, so that an observation far from all
    others is a new cell.
    """
    every = np.concatenate(centered) @ basis
    transform = basis / np.sqrt(every.var(axis=0))
    stages = [rows @ transform for rows in centered]
    labels = [_regions(rows) for rows in stages]
    residuals = np.concatenate(
        [rows - means_of(rows, own)[own] for rows, own in zip(stages, labels, strict=True)]
    )
    scale = np.sqrt(np.maximum((residuals**2).mean(axis=0), 1e-6))
    return Clusters(transform / scale, np.eye(len(scale)), labels, is_mixture=False)


def _regions(rows: Floats) -> Integers:
    number = min(LARGEST_NUMBER_OF_CELLS, round(len(rows) ** 0.5))
    if number < 2:
        return _one_cell(rows)
    tree = linkage(pdist(rows, "sqeuclidean"), "average")
    return np.asarray(fcluster(tree, number, "maxclust") - 1, dtype=np.int64)


def _has_gaps(stages: Sequence[Floats]) -> bool:
    """Whether stages mostly have clusters: a jump in the distances at which groups are joined."""
    gaps = []
    for rows in stages:
        if len(rows) >= 8:
            heights = linkage(pdist(rows, "sqeuclidean"), "average")[:, 2]
            top = heights[len(heights) // 2 :]
            gaps.append((top[1:] / np.maximum(top[:-1], 1e-300)).max() >= SMALLEST_GAP)
    return bool(gaps) and float(np.mean(gaps)) > 0.5


def are_apart(stages: Sequence[Floats], labels: Sequence[Integers]) -> bool:
    """Whether observations of one cell are much closer to each other than to other cells.

    States of a finite environment may be at equal distances, as one-hot vectors are; they then
    have no clusters, and each is a state of its own.
    """
    within, between = [np.zeros(1)], [np.zeros(0)]
    for rows, own in zip(stages, labels, strict=True):
        distances = pdist(rows, "sqeuclidean")
        first, second = np.triu_indices(len(rows), 1)
        is_same = own[first] == own[second]
        within.append(distances[is_same])
        between.append(distances[~is_same])
    far = np.concatenate(between)
    return bool(len(far)) and np.concatenate(within).mean() < LARGEST_WITHIN * far.mean()


@lru_cache
def distance_limit(num_coordinates: int) -> float:
    """The squared distance from a mean that noise of unit covariance rarely exceeds."""
    return float(chdtri(num_coordinates, TAIL)) if num_coordinates else 0.0


def between_scatter(stages: Sequence[Floats], labels: Sequence[Integers]) -> Floats:
    """Scatter of the means of cells within stages, [coordinate, coordinate]."""
    scatter = np.zeros((stages[0].shape[1],) * 2)
    for rows, own in zip(stages, labels, strict=True):
        counts = np.bincount(own)
        if len(counts) > 1:
            means = means_of(rows, own)
            means = means - counts @ means / counts.sum()
            scatter += (counts[:, None] * means).T @ means
    return scatter


def principal_directions(scatter: Floats) -> Floats:
    """The leading directions of a scatter matrix, [coordinate, direction]."""
    values, vectors = np.linalg.eigh(scatter)
    leading = vectors[:, values > max(1e-9, SMALLEST_SHARE * values[-1])]
    return np.asarray(leading[:, ::-1][:, :LARGEST_RANK])


def varying_directions(rows: Floats) -> Floats:
    """An orthonormal basis of the directions in which rows vary, [column, direction]."""
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    return np.asarray(vectors[:, values > max(1e-300, 1e-9 * values[-1])])


def _neighbour_differences(stages: Sequence[Floats]) -> Floats:
    """The difference of each observation from its nearest neighbour in its stage."""
    differences = []
    for rows in stages:
        if len(rows) >= 3:
            distances = cdist(rows, rows, "sqeuclidean")
            np.fill_diagonal(distances, np.inf)
            differences.append(rows - rows[distances.argmin(axis=1)])
    return np.concatenate(differences)


def whitening(rows: Floats, freedom: int) -> Floats:
    """A matrix W for which rows @ W have unit covariance, shrunk where rows are few."""
    size = rows.shape[1]
    covariance = rows.T @ rows / freedom
    shrinkage = size / (size + freedom)
    isotropic = np.trace(covariance) / size * np.eye(size)
    values, vectors = np.linalg.eigh((1 - shrinkage) * covariance + shrinkage * isotropic)
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1e-6 * values[-1])))


def excess_variance(rows: Floats) -> Floats:
    """The scatter of rows [n, coordinate] in directions with more variance than unit noise has."""
    number, size = rows.shape
    if number < 4:
        return np.zeros((size, size))
    values, vectors = np.linalg.eigh(rows.T @ rows / (number - 1))
    # The largest eigenvalue of pure noise, with a margin for its fluctuations (Johnstone, 2001).
    ratio = 1 + np.sqrt(size / number)
    is_signal = values > ratio**2 + 3 * number ** (-2 / 3) * ratio ** (4 / 3)
    excess = number * (values - 1) * is_signal
    return np.asarray((vectors * excess) @ vectors.T)


def _scale_of_gap(stages: Sequence[Floats]) -> float:
    """The limit of distances within cells, relative to that of Gaussian noise of one covariance.

    It is in the largest gap between the distances at which groups are joined: noise may have
    heavier tails, or more variance in some states, and states may be close.
    """
    size = stages[0].shape[1]
    if not size:
        return 1.0
    usual = size + distance_limit(size)
    heights = np.concatenate(
        [linkage(pdist(rows, "sqeuclidean"), "average")[:, 2] for rows in stages if len(rows) > 1]
    )
    low, high = SCALES[0] * usual, SCALES[1] * usual
    above = np.sort(heights[heights > low])
    edges = np.log(np.concatenate([[low], above]))
    gaps = np.diff(edges)[edges[:-1] < np.log(high)]
    if not len(gaps):
        return 1.0
    widest = int(gaps.argmax())
    return min(SCALES[1], float(np.exp(edges[widest : widest + 2].mean()) / usual))


def _cells(rows: Floats, directions: Floats, scale: float) -> Integers:
    """Cells of the whitened rows of a stage: along `directions`, and of rows far from all others.

    A new state may differ in a direction that no stage has shown yet.
    """
    labels = _linked(rows)
    if directions.shape[1]:
        along = _linked(rows @ directions, scale)
        labels = np.unique(np.stack([labels, along]), axis=1, return_inverse=True)[1].reshape(-1)
    return np.asarray(labels, dtype=np.int64)


def _linked(rows: Floats, scale: float = 1.0) -> Integers:
    """Average linkage, cut where two means are further apart than noise explains."""
    if len(rows) < 2:
        return _one_cell(rows)
    size = rows.shape[1]
    tree = linkage(pdist(rows, "sqeuclidean"), "average")
    labels = fcluster(tree, scale * (size + distance_limit(size)), "distance") - 1
    return np.asarray(labels, dtype=np.int64)


def _one_cell(rows: Floats) -> Integers:
    return np.zeros(len(rows), dtype=np.int64)


def means_of(rows: Floats, labels: Integers) -> Floats:
    """The mean of each cell, [cell, coordinate]."""
    sums = np.zeros((int(labels.max()) + 1, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return np.asarray(sums / np.bincount(labels)[:, None])

"""Cells that overlap: noise nearly as large as the difference between states.

Distances between observations then have no gap, and `cell_clusters` takes all observations of a
stage for one cell. The evidence of a mixture still tells how many cells there are. It is compared
in all coordinates, because each partition has directions and a scale of noise of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gfucb.episodic.cell_clusters import (
    NUM_ITERATIONS,
    Clusters,
    between_scatter,
    excess_variance,
    means_of,
    principal_directions,
    unit_of_neighbours,
    varying_directions,
    whitening,
)
from gfucb.episodic.cell_covariances import (
    FREEDOMS,
    SMALLEST_GAIN,
    CovariancePrior,
    LinkageMethod,
    Sums,
    Tree,
    evidence_of_cells,
)
from gfucb.episodic.distinct_rows import Floats, Integers

# Small cells are branches of the first, cells that overlap of the second.
LINKAGE_METHODS: tuple[LinkageMethod, ...] = ("average", "ward")


def with_overlapping_cells(stages: Sequence[Floats], present: Clusters) -> Clusters | None:
    """Clusters of one covariance with more evidence; None if `present` explains as much.

    Args:
        stages: observations, [stage][observation, column].
        present: their clusters.
    """
    if not present.is_mixture:
        return None
    centered = [rows - rows.mean(axis=0) for rows in stages]
    neighbours = unit_of_neighbours(centered, varying_directions(np.concatenate(centered)))
    if neighbours is None:
        return None
    found, best = None, _log_evidence(centered, present) + SMALLEST_GAIN
    # Residuals of stages in one cell would take differences between cells for noise, so the first
    # unit is that of neighbours.
    transform, labels = neighbours[0], [np.zeros(len(rows), dtype=np.int64) for rows in centered]
    for _ in range(NUM_ITERATIONS + 1):
        following = _with_noise(centered, transform, labels, present.scale)
        if following is None or any(
            _are_same(own, following.labels) for own in (labels, present.labels)
        ):
            break
        # The noise is still that of the cells before, so the evidence of a step may fall.
        evidence = _log_evidence(centered, following)
        if evidence > best:
            found, best = following, evidence
        unit = _unit_of_residuals(centered, following)
        if unit is None:
            break
        transform, labels = unit, following.labels
    return found


def _are_same(first: Sequence[Integers], second: Sequence[Integers]) -> bool:
    """Whether the cells [stage][observation] are the same, whatever their numbers are."""
    for one, other in zip(first, second, strict=True):
        number = len(np.unique(one * (int(other.max()) + 1) + other))
        if not number == len(np.unique(one)) == len(np.unique(other)):
            return False
    return True


def _with_noise(
    centered: Sequence[Floats], transform: Floats, labels: Sequence[Integers], scale: float
) -> Clusters | None:
    """The cells with the largest evidence in units of the noise; None without directions."""
    whitened = [rows @ transform for rows in centered]
    scatter = between_scatter(whitened, labels) + sum(map(excess_variance, whitened))
    directions = principal_directions(scatter)
    size = directions.shape[1]
    if not size:
        return None
    prior = CovariancePrior(size, size + FREEDOMS[-1])
    cells = [_cut(rows @ directions, prior) for rows in whitened]
    return Clusters(transform, directions, cells, scale, freedom=prior.freedom)


def _unit_of_residuals(centered: Sequence[Floats], clusters: Clusters) -> Floats | None:
    """The transform to units of the noise within cells; None if each observation is a cell."""
    labels = clusters.labels
    whitened = [rows @ clusters.transform for rows in centered]
    residuals = np.concatenate(
        [rows - means_of(rows, own)[own] for rows, own in zip(whitened, labels, strict=True)]
    )
    num_free = len(residuals) - sum(int(own.max()) + 1 for own in labels)
    return clusters.transform @ whitening(residuals, num_free) if num_free > 0 else None


def _cut(points: Floats, prior: CovariancePrior) -> Integers:
    cuts = [Tree(points, method).cut(prior) for method in LINKAGE_METHODS]
    return max(cuts, key=lambda cut: cut[0])[1]


def _log_evidence(centered: Sequence[Floats], clusters: Clusters) -> float:
    """The logarithm of the evidence of observations, in all coordinates.

    In directions in which cells do not differ observations are noise around the mean of the stage.
    """
    transform, directions = clusters.transform, clusters.directions
    size, rank = directions.shape
    volume = 0.5 * np.linalg.slogdet(transform.T @ transform)[1]
    found = 0.0
    for rows, labels in zip(centered, clusters.labels, strict=True):
        whitened = rows @ transform
        along = whitened @ directions
        rest = (whitened**2).sum() - (along**2).sum()
        found += len(rows) * (volume - 0.5 * (size - rank) * np.log(2 * np.pi)) - 0.5 * rest
        if rank:
            freedom = clusters.freedom or rank + FREEDOMS[-1]
            sums = Sums.of(along, labels, int(labels.max()) + 1)
            found += evidence_of_cells(CovariancePrior(rank, freedom), sums).sum()
    return float(found)

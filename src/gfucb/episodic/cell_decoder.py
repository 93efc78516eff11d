"""Decoders: from observations to cells, the abstract states of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from gfucb.core.random import random_stream
from gfucb.episodic.cell_clusters import (
    Clusters,
    are_apart,
    distance_limit,
    fit_clusters,
    negative_log_density,
)
from gfucb.episodic.cell_covariances import (
    CONCENTRATION,
    CovariancePrior,
    Predictive,
    Sums,
    with_own_covariances,
)
from gfucb.episodic.cell_overlaps import with_overlapping_cells
from gfucb.episodic.distinct_rows import Floats, Integers
from gfucb.episodic.observation_table import ObservationTable

# Observations of a stage from which clusters are computed; all are decoded afterwards.
CLUSTERED_ROWS = 150
# The same where cells overlap.
OVERLAPPING_ROWS = 600
# Observations recur if at least this share of the transitions start at one seen before.
RECURRENT_SHARE = 0.5
# Cells without vectors are never the likeliest.
SMALLEST_COUNT = 1e-300
# Where cells have covariances of their own, squared distances exceed those of the vectors that were
# clustered by at most this factor.
LARGEST_EXCESS = 1.2


class CellDecoder(Protocol):
    """Maps the vectors of a stage to numbers of cells; a vector unlike all others gets a new one.

    A cell keeps its number until the next fit.
    """

    def num_cells(self, stage: int) -> int:
        """The number of cells of a stage."""

    def find(self, stage: int, rows: NDArray[np.generic], known: int) -> Integers:
        """The cells of rows [n, column] among the first `known`; -1 for others: [n]."""

    def nearest(self, stage: int, rows: NDArray[np.generic], known: int) -> Integers:
        """The nearest of the first `known` cells; -1 where there is none: [n]."""

    def add(self, stage: int, rows: NDArray[np.generic], known: int) -> Integers:
        """The cells of rows [n, column], the first `known` preferred; new ones where needed."""

    def recentre(self, stage: int, rows: NDArray[np.generic], cells: Integers) -> None:
        """Adapt to all vectors [n, column] of a stage and their cells [n]."""

    def restore(self, stage: int, rows: NDArray[np.generic], cells: Integers) -> None:
        """Add the cells that `add` gave to these rows before."""


class DistinctCells:
    """Every distinct vector is a cell."""

    def __init__(self, tables: Sequence[ObservationTable]) -> None:
        self._tables = tables
        self._sizes = [0] * len(tables)

    def num_cells(self, stage: int) -> int:
        """The number of vectors."""
        return self._sizes[stage]

    def find(self, stage: int, rows: NDArray[np.generic], known: int) -> Integers:
        """The indices of the vectors in their table."""
        found = self._tables[stage].keys.find(rows)
        return np.where(found < known, found, -1)

    def nearest(self, stage: int, rows: NDArray[np.generic], known: int) -> Integers:
        """The same as `find`: vectors have no distances."""
        return self.find(stage, rows, known)

    def add(self, stage: int, rows: NDArray[np.generic], known: int) -> Integers:
        """The indices of vectors that are already in their table."""
        found = self._tables[stage].keys.find(rows)
        self._sizes[stage] = max(self._sizes[stage], int(found.max(initial=-1)) + 1)
        return found

    def recentre(self, stage: int, rows: NDArray[np.generic], cells: Integers) -> None:
        """Nothing: a vector is its own cell."""

    def restore(self, stage: int, rows: NDArray[np.generic], cells: Integers) -> None:
        """The same as `add`."""
        self.add(stage, rows, self._sizes[stage])


class ClusterCells:
    """The nearest mean of a cluster, unless noise does not explain the distance.

    Args:
        clusters: the scale.
        stages: the vectors that were clustered, [stage][vector, column].
    """

    def __init__(self, clusters: Clusters, stages: Sequence[Floats]) -> None:
        self._transform = clusters.transform
        self._directions = clusters.directions
        self._is_mixture = clusters.is_mixture
        size, rank = clusters.directions.shape
        # The test on all coordinates is for directions that no stage has shown yet.
        along, far = clusters.scale * distance_limit(rank), distance_limit(size)
        self._limits = along, (1.3 * max(1.0, clusters.scale) if rank else 1.0) * far
        self._means: list[Floats] = []
        self._counts: list[Floats] = []
        for rows, labels in zip(stages, clusters.labels, strict=True):
            counts = np.bincount(labels).astype(np.float64)
            sums = np.zeros((len(counts), size))
            np.add.at(sums, labels, rows @ self._transform)
            self._means.append(sums / counts[:, None] if len(rows) else sums)
            self._counts.append(counts)

    @property
    def is_continuous(self) -> bool:
        """Whether cells are regions of observations without clusters."""
        return not self._is_mixture

    def num_cells(self, stage: int) -> int:
        """The number of clusters and of vectors that were far from all."""
        return len(self._means[stage])

    def find(self, stage: int, rows: NDArray[np.generic], known: int) -> Integers:
        """The nearest of the first `known` cells; -1 if it is too far."""
        return self._nearest(stage, rows.astype(np.float64) @ self._transform, 0, known)

    def nearest(self, stage: int, rows: NDArray[np.generic], known: int) -> Integers:
        """The nearest of the first `known` cells, however far it is."""
        points = rows.astype(np.float64) @ self._transform
        return self._nearest(stage, points, 0, known, is_limited=False)

    def add(self, stage: int, rows: NDArray[np.generic], known: int) -> Integers:
        """The nearest cell, or a new one."""
        points = rows.astype(np.float64) @ self._transform
        cells = self._nearest(stage, points, 0, known)
        for row in np.flatnonzero(cells < 0):
            found = self._nearest(stage, points[row : row + 1], known, self.num_cells(stage))
            cells[row] = found[0] if found[0] >= 0 else self._new_cell(stage, points[row])
        return cells

    def recentre(self, stage: int, rows: NDArray[np.generic], cells: Integers) -> None:
        """Move the means to those of all vectors [n, column] of each cell."""
        if not len(rows):
            return
        size = self.num_cells(stage)
        counts = np.bincount(cells, minlength=size).astype(np.float64)
        sums = np.zeros_like(self._means[stage])
        np.add.at(sums, cells, rows.astype(np.float64) @ self._transform)
        seen = counts > 0
        self._means[stage][seen] = sums[seen] / counts[seen, None]
        self._counts[stage] = np.maximum(counts, 1.0)

    def restore(self, stage: int, rows: NDArray[np.generic], cells: Integers) -> None:
        """A new cell at every row whose cell has the next number."""
        points = rows.astype(np.float64) @ self._transform
        for point, cell in zip(points, cells, strict=True):
            if cell == self.num_cells(stage):
                self._new_cell(stage, point)

    def _nearest(
        self, stage: int, points: Floats, first: int, last: int, is_limited: bool = True
    ) -> Integers:
        means = self._means[stage][first:last]
        if not len(means):
            return np.full(len(points), -1, dtype=np.int64)
        counts, rank = self._counts[stage][first:last], self._directions.shape[1]
        differences = points[:, None] - means
        # The mean of few observations is itself uncertain.
        scale = 1 + 1 / counts
        far = np.einsum("nck,nck->nc", differences, differences) / scale
        along, limits = far, (self._limits[1], self._limits[1])
        if rank:
            projected = differences @ self._directions
            along = np.einsum("nck,nck->nc", projected, projected) / scale
            limits = self._limits
        scores = along
        if self._is_mixture:
            scores = negative_log_density(along * scale, counts, rank or points.shape[1])
        cells = scores.argmin(axis=1)
        rows = np.arange(len(points))
        is_near = (along[rows, cells] <= limits[0]) & (far[rows, cells] <= limits[1])
        return np.where(is_near | (not is_limited), cells + first, -1)

    def _new_cell(self, stage: int, point: Floats) -> int:
        self._means[stage] = np.concatenate([self._means[stage], point[None]])
        self._counts[stage] = np.append(self._counts[stage], 1.0)
        return len(self._counts[stage]) - 1


class CovarianceCells(ClusterCells):
    """The likeliest cluster, whose noise has a covariance of its own, or a new one.

    Args:
        clusters: the clusters, with the freedom of their covariances.
        stages: the vectors that were clustered, [stage][vector, column].
    """

    def __init__(self, clusters: Clusters, stages: Sequence[Floats]) -> None:
        super().__init__(clusters, stages)
        assert clusters.freedom is not None
        self._prior = CovariancePrior(clusters.directions.shape[1], clusters.freedom)
        self._centers = [rows.sum(axis=0) / max(1, len(rows)) @ self._transform for rows in stages]
        self._sums: list[Sums] = []
        self._predictive: list[Predictive] = []
        largest = self._limits[1]
        for stage, (rows, labels) in enumerate(zip(stages, clusters.labels, strict=True)):
            points = rows @ self._transform
            along = self._along(stage, points)
            self._sums.append(Sums.of(along, labels, self.num_cells(stage)))
            self._predictive.append(self._prior.predictive(self._sums[stage]))
            if len(rows):
                within = ((points - self._means[stage][labels]) ** 2).sum(axis=1)
                largest = max(largest, LARGEST_EXCESS * float(within.max()))
        self._largest_distance = largest
        self._of_new = self._prior.predictive(Sums.of(along[:0], labels[:0], 1))

    def recentre(self, stage: int, rows: NDArray[np.generic], cells: Integers) -> None:
        """Means and covariances of all vectors [n, column] of each cell."""
        super().recentre(stage, rows, cells)
        if len(rows):
            along = self._along(stage, rows.astype(np.float64) @ self._transform)
            self._set_sums(stage, Sums.of(along, cells, self.num_cells(stage)))

    def _set_sums(self, stage: int, sums: Sums) -> None:
        self._sums[stage], self._predictive[stage] = sums, self._prior.predictive(sums)

    def _along(self, stage: int, points: Floats) -> Floats:
        """Points in the directions in which cells differ, from the centre of the stage."""
        return np.asarray((points - self._centers[stage]) @ self._directions)

    def _nearest(
        self, stage: int, points: Floats, first: int, last: int, is_limited: bool = True
    ) -> Integers:
        counts = self._sums[stage].counts[first:last]
        if not len(counts):
            return np.full(len(points), -1, dtype=np.int64)
        along = self._along(stage, points)
        scores = self._predictive[stage].log_density(along)[:, first:last]
        scores = scores + np.log(np.maximum(counts, SMALLEST_COUNT))
        cells = scores.argmax(axis=1)
        differences = points - self._means[stage][first:last][cells]
        far = (differences**2).sum(axis=1) / (1 + 1 / np.maximum(counts[cells], 1))
        of_new = self._of_new.log_density(along)[:, 0] + np.log(CONCENTRATION)
        is_known = scores.max(axis=1) >= of_new
        is_near = is_known & (far <= self._largest_distance)
        return np.where(is_near | (not is_limited), cells + first, -1)

    def _new_cell(self, stage: int, point: Floats) -> int:
        cell, old = super()._new_cell(stage, point), self._sums[stage]
        new = Sums.of(self._along(stage, point[None]), np.zeros(1, dtype=np.int64), 1)
        parts = zip(
            (old.counts, old.sums, old.products), (new.counts, new.sums, new.products), strict=True
        )
        self._set_sums(stage, Sums(*(np.concatenate(pair) for pair in parts)))
        return cell


def fit_decoder(
    tables: Sequence[ObservationTable], sizes: Sequence[int], is_recurrent: bool, seed: int
) -> CellDecoder:
    """The decoder that the first `sizes` [stage] vectors of each stage support.

    Vectors that recur are states of a finite environment; each is a cell, unless they form
    clusters.
    """
    distinct = DistinctCells(tables)
    stages = _samples(tables, sizes, CLUSTERED_ROWS, seed)
    seen = [stage for stage, rows in enumerate(stages) if len(rows)]
    clusters = fit_clusters([stages[stage] for stage in seen])
    if clusters is None:
        return distinct
    if is_recurrent and not are_apart([stages[stage] for stage in seen], clusters.labels):
        return distinct
    if not is_recurrent:
        rows = [stages[stage] for stage in seen]
        clusters = with_own_covariances(rows, clusters) or clusters
        if with_overlapping_cells(rows, clusters) is not None:
            # A rare state is not far from the others, and is found by several of its observations.
            stages = _samples(tables, sizes, OVERLAPPING_ROWS, seed)
            rows = [stages[stage] for stage in seen]
            larger = fit_clusters(rows)
            assert larger is not None
            clusters = with_overlapping_cells(rows, larger) or larger
    by_stage = dict(zip(seen, clusters.labels, strict=True))
    none = np.zeros(0, dtype=np.int64)
    labels = [by_stage.get(stage, none) for stage in range(len(tables))]
    cells = ClusterCells if clusters.freedom is None else CovarianceCells
    return cells(replace(clusters, labels=labels), stages)


def is_recurrent(tables: Sequence[ObservationTable]) -> bool:
    """Whether transitions mostly start at vectors from which others have started."""
    distinct = sum(len(np.unique(table.key_indices)) for table in tables)
    return distinct <= (1 - RECURRENT_SHARE) * sum(len(table) for table in tables)


def _samples(
    tables: Sequence[ObservationTable], sizes: Sequence[int], largest: int, seed: int
) -> list[Floats]:
    """At most `largest` of the first `sizes` [stage] vectors of each stage, in their order."""
    return [
        _sample(table.keys.rows[:size], largest, random_stream(seed, "clusters", stage, size))
        for stage, (table, size) in enumerate(zip(tables, sizes, strict=True))
    ]


def _sample(rows: NDArray[np.generic], largest: int, generator: torch.Generator) -> Floats:
    """At most `largest` of the rows, in their order."""
    if len(rows) > largest:
        drawn = torch.randperm(len(rows), generator=generator)[:largest]
        rows = rows[np.sort(drawn.numpy())]
    return rows.astype(np.float64)

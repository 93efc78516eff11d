"""Regions of continuous observations that all stages share.

Observations without clusters, such as the position and velocity of a car, are divided into small
regions, more of them with more data. If transitions depend on observations and not on the stage,
the transitions of all stages tell what an action does in a region.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from gfucb.core.random import random_stream
from gfucb.episodic.distinct_rows import Floats, Integers
from gfucb.episodic.observation_table import ObservationTable

# The number of regions: the root of that of the observations, up to this one.
LARGEST_NUMBER_OF_REGIONS = 200
# Observations from which regions are computed; all are decoded afterwards.
LARGEST_SAMPLE = 3000
LLOYD_STEPS = 3


class RegionCells:
    """The nearest of points that all stages share: a decoder whose cells are the same everywhere.

    Args:
        centers: in units of `scale`, [region, column].
        scale: of observations, [column].
    """

    def __init__(self, centers: Floats, scale: Floats) -> None:
        self._tree, self._scale, self._size = cKDTree(centers), scale, len(centers)

    def num_cells(self, stage: int) -> int:
        """The number of regions."""
        return self._size

    def find(self, stage: int, rows: NDArray[np.generic], known: int) -> Integers:
        """The nearest region."""
        if not len(rows):
            return np.zeros(0, dtype=np.int64)
        return np.asarray(
            self._tree.query(rows.astype(np.float64) / self._scale)[1], dtype=np.int64
        )

    nearest = add = find

    def recentre(self, stage: int, rows: NDArray[np.generic], cells: Integers) -> None:
        """Nothing: stages share their regions."""

    def restore(self, stage: int, rows: NDArray[np.generic], cells: Integers) -> None:
        """Nothing: there are no new regions until the next fit."""


def fit_regions(
    tables: Sequence[ObservationTable],
    sizes: Sequence[int],
    seed: int,
    at_most: int = LARGEST_NUMBER_OF_REGIONS,
) -> RegionCells:
    """Regions of the first `sizes` [stage] observations: spread out, then moved to their means."""
    every = np.concatenate(
        [table.keys.rows[:size] for table, size in zip(tables, sizes, strict=True)]
    ).astype(np.float64)
    deviations = every.std(axis=0)
    scale = np.where(deviations > 0, deviations, 1.0)
    generator = random_stream(seed, "regions", len(every))
    drawn = torch.randperm(len(every), generator=generator)[:LARGEST_SAMPLE]
    points = every[drawn.numpy()] / scale
    centers = _spread_out(points, min(at_most, max(2, round(len(every) ** 0.5))))
    for _ in range(LLOYD_STEPS):
        nearest = cKDTree(centers).query(points)[1]
        counts = np.bincount(nearest, minlength=len(centers))
        sums = np.zeros_like(centers)
        np.add.at(sums, nearest, points)
        centers = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centers)
    return RegionCells(centers, scale)


def _spread_out(points: Floats, number: int) -> Floats:
    """Points, each far from those before: [number or less, column]."""
    chosen = [0]
    distances = ((points - points[0]) ** 2).sum(axis=1)
    while len(chosen) < number and distances.max() > 0:
        chosen.append(int(distances.argmax()))
        distances = np.minimum(distances, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return np.asarray(points[chosen])

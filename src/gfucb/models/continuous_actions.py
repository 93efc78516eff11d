"""Columns of candidates that are set on a scale, if these are few: a price, a dose, a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from gfucb.core.shards import ONE_SHARD, Shards, in_any

# Smooth functions of more columns than this have too many degrees of freedom to try. More are
# possible if they are settings: each has at most half as many values as there are candidates.
FEW_CONTINUOUS, MOST_CONTINUOUS = 2, 4
# The length scale of effects that are possible, as a share of half of the range of a column.
EXPLORED_LENGTH = 0.5
NUM_FREQUENCIES = {1: 8, 2: 16, 3: 32, 4: 32}
# The angle between directions that divide a half circle evenly, for any number of them.
GOLDEN_ANGLE = math.pi * (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class ContinuousActions:
    """The columns in which the candidates of a row differ, if these are few and no one-hot action.

    Such candidates are often the same in every round, as prices or doses are. No context then makes
    an agent try what lies between two values that it knows, so smooth effects of these columns
    belong to what it explores.

    Attributes:
        columns: their indices, [continuous], at most `MOST_CONTINUOUS`.
        center: the middle of their ranges among the first candidates, [continuous].
        half_range: half of their ranges, [continuous].
    """

    columns: Tensor
    center: Tensor
    half_range: Tensor

    @classmethod
    def of_candidates(
        cls, candidates: Tensor, shards: Shards = ONE_SHARD
    ) -> ContinuousActions | None:
        """Those of candidates [row, action, column] without one-hot actions; None if too many."""
        varies = (candidates != candidates[:, :1]).any(1).any(0)
        if shards.count > 1:
            varies = shards.sum(varies.to(torch.int64)) > 0
        columns = varies.nonzero().squeeze(1)
        if not 1 <= len(columns) <= MOST_CONTINUOUS:
            return None
        if len(columns) > FEW_CONTINUOUS and not _is_grid(candidates[..., columns], shards):
            return None
        values = candidates[..., columns].flatten(0, 1).to(torch.float64)
        own = torch.stack([values.amin(0), values.amax(0)]) if len(values) else values
        found = shards.gather(own)
        low, high = found.amin(0), found.amax(0)
        return cls(columns, (low + high) / 2, (high - low) / 2)

    def are_all(self, num_columns: int) -> bool:
        """Whether inputs of so many columns have no others."""
        return len(self.columns) == num_columns

    @property
    def num_features(self) -> int:
        """The number of `features`."""
        return 2 * NUM_FREQUENCIES[len(self.columns)]

    def features(self, inputs: Tensor) -> Tensor:
        """Fourier features [n, 2 frequency] of inputs [n, column], with squares that sum to 1.

        Their products approximate a Gaussian kernel on columns scaled to -1 .. 1.
        """
        scaled = (inputs[:, self.columns].to(torch.float64) - self.center) / self.half_range
        frequencies = _normal_frequencies(len(self.columns)).to(scaled)
        phases = scaled.clamp(-2, 2) @ frequencies.T / EXPLORED_LENGTH
        return torch.cat([phases.cos(), phases.sin()], dim=1) / math.sqrt(len(frequencies))


def _is_grid(values: Tensor, shards: Shards) -> bool:
    """Whether each column of [row, action, column] has few values in every row."""
    ordered = values.sort(1).values
    counts = 1 + (ordered.diff(dim=1) != 0).sum(1)
    return not in_any(shards, bool((2 * counts > values.shape[1]).any()))


@cache
def _normal_frequencies(dimension: int) -> Tensor:
    """Points [frequency, dimension] that are spread as evenly as normal vectors can be."""
    count = NUM_FREQUENCIES[dimension]
    ranks = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    if dimension == 1:
        return torch.special.ndtri(0.5 + ranks / 2)[:, None]
    if dimension > 2:
        points = torch.quasirandom.SobolEngine(dimension).draw(count + 1, dtype=torch.float64)
        return torch.special.ndtri(points[1:])  # the first point is at zero, its quantile infinite
    lengths = (-2 * (1 - ranks).log()).sqrt()
    angles = GOLDEN_ANGLE * torch.arange(count, dtype=torch.float64)
    return lengths[:, None] * torch.stack([angles.cos(), angles.sin()], dim=1)

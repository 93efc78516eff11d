"""Directions in which the columns of a table vary together, found without rewards."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.shards import Shards, totals

# Fewer columns are used as they are: there is little to gain. So are more, whose eigenvectors would
# take long.
FEWEST_COLUMNS, MOST_COLUMNS = 16, 1000


@dataclass(frozen=True, eq=False)
class ColumnDirections:
    """The principal directions of the correlation matrix C of standardised columns.

    Attributes:
        variances: of the directions, falling, [direction].
        axes: orthonormal, [column, direction].
        mean_variance: of all columns.
    """

    variances: Tensor
    axes: Tensor
    mean_variance: float

    @classmethod
    def of(cls, columns: Tensor, most: int, shards: Shards) -> ColumnDirections:
        """The first `most` directions of standardised columns [n, column] of all shards.

        C is shrunk to the identity, which counts as one sample for each column.
        """
        size = columns.shape[1]
        (total,) = totals(shards, len(columns))
        correlations = shards.sum(columns.mT @ columns)
        correlations.diagonal().add_(size)
        correlations /= total + size
        if not bool(correlations.isfinite().all()):
            raise InvalidInputError("the inputs are too large: their correlations are not finite")
        variances, axes = torch.linalg.eigh(correlations)
        variances, axes = variances.flip(0)[:most].clamp_min(0), axes.flip(1)[:, :most]
        return cls(variances, axes, float(correlations.diagonal().mean()))

    def projection(self, power: float) -> Tensor | None:
        """R [column, direction]: independent effects of x R give those of x the prior C^power.

        The mean square of all numbers is that of x. None for columns as they are.
        """
        is_complete = self.axes.shape[0] == self.axes.shape[1]
        if power == 0 and is_complete:
            return None
        roots = self.variances ** (power / 2)
        mean_square = float((self.variances * roots.square()).mean())
        scaled = self.axes * roots * (self.mean_variance / mean_square) ** 0.5
        # The symmetric root of all columns changes little when correlations change little.
        return scaled @ self.axes.mT if is_complete else scaled

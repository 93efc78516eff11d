"""The confidence ellipsoid of heads whose statistics are features of samples."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gfucb.core.linalg import ridge_cholesky
from gfucb.core.shards import totals
from gfucb.models.head_ellipsoid import HeadEllipsoid

if TYPE_CHECKING:
    from gfucb.models.sample_statistics import SampleStatistics


@dataclass(frozen=True, eq=False)
class SampleEllipsoid(HeadEllipsoid):
    """A `HeadEllipsoid` whose matrices follow from the features of samples."""

    _: KW_ONLY
    statistics: SampleStatistics
    ridge: float

    def __post_init__(self) -> None:
        """Factors are computed for few tasks at a time, and not stored."""

    @property
    def cholesky(self) -> Tensor:
        """The factors of all tasks as one tensor, which may be large."""
        return ridge_cholesky(self.statistics.grams, self.ridge)

    def factors_of(self, tasks: Tensor) -> Tensor:
        """L_i of some tasks: [n] -> [n, feature, feature]."""
        return ridge_cholesky(self.statistics.taken(tasks).grams, self.ridge)

    def squared_widths(self, features: Tensor, tasks: Tensor) -> Tensor:
        """phi^T V_task^-1 phi: [row, action, feature], [row] -> [row, action]."""
        return self.statistics.inverse_norms(features, tasks, self.ridge)

    def value_covariances(self, features: Tensor, tasks: Tensor) -> Tensor:
        """Phi V_task^-1 Phi^T in each row: [row, action, feature] -> [row, action, action]."""
        factors = ridge_cholesky(self.statistics.taken(tasks).grams, self.ridge)
        whitened = torch.linalg.solve_triangular(factors, features.mT, upper=False)
        return whitened.mT @ whitened

    def farthest(self, chosen: Tensor, tasks: Tensor) -> tuple[Tensor, float]:
        """The heads with the largest sum of values of features [row, feature], and how far."""
        if self.norm_bound is not None:
            return super().farthest(chosen, tasks)
        tasks, positions = tasks.unique(return_inverse=True)
        own = self.centers.new_zeros(len(tasks), self.centers.shape[1])
        steps = self._steps(own.index_add(0, positions, chosen), tasks)
        if steps is None:
            return self.centers, 0.0
        (distance,) = totals(
            self.shards, float(self.statistics.norms(steps, tasks, self.ridge).sum())
        )
        # Most of very many heads do not change.
        return self.centers.index_add(0, tasks, steps), distance

    def farthest_heads(self, directions: Tensor) -> Tensor:
        """The W in the set with the largest sum_i <directions[i], w_i>: [task, feature] twice."""
        if self.norm_bound is not None:
            return super().farthest_heads(directions)
        tasks = directions.any(-1).nonzero().squeeze(1)
        steps = self._steps(directions[tasks], tasks)
        return self.centers if steps is None else self.centers.index_add(0, tasks, steps)

    def _steps(self, directions: Tensor, tasks: Tensor) -> Tensor | None:
        """From the centers of distinct tasks [n] to the farthest heads; None if nowhere."""
        reach = self.statistics.solved(directions, tasks, self.ridge)
        squared_length = self.shards.sum((directions * reach).sum())
        if self.squared_radius == 0 or squared_length == 0:
            return None
        return reach * (self.squared_radius / squared_length).sqrt()

    def _solved(self, directions: Tensor) -> Tensor:
        tasks = directions.any(-1).nonzero().squeeze(1)
        solved = self.statistics.solved(directions[tasks], tasks, self.ridge)
        return torch.zeros_like(directions).index_copy(0, tasks, solved)

    def squared_distance(self, heads: Tensor) -> float:
        """sum_i (w_i - centers[i])^T V_i (w_i - centers[i]) of heads [task, feature]."""
        steps = heads - self.centers
        moved = steps.any(-1).nonzero().squeeze(1)
        own = float(self.statistics.norms(steps[moved], moved, self.ridge).sum())
        return totals(self.shards, own)[0]

"""The confidence ellipsoid of heads on one fixed representation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.linalg import cholesky_solve, inverse_squared_norms, norm_bound_multipliers
from gfucb.core.records import Prediction
from gfucb.core.shards import ONE_SHARD, Shards, totals
from gfucb.core.validation.record_fields import (
    require_bound,
    require_floats,
    require_not_negative,
    require_type,
)
from gfucb.models.copy_on_write import CopyOnWriteRows

# The search for the logarithm of a multiplier goes up to this size, in steps of STRIDE.
LARGEST_LOGARITHM, STRIDE = 28.0, 3.0


@dataclass(frozen=True, eq=False)
class HeadEllipsoid:
    """{ W : sum_i (w_i - centers[i])^T V_i (w_i - centers[i]) <= squared_radius }, V_i = L_i L_i^T.

    All tasks share one radius: a larger step of one head leaves less for the others.

    Attributes:
        centers: [task, feature].
        factors: L_i, lower triangles, [task, feature, feature].
        squared_radius: >= 0.
        norm_bound: additionally |w_i| <= norm_bound, or None.
        shards: over which the sum goes; these are the tasks of one of them.
    """

    centers: Tensor
    factors: CopyOnWriteRows
    squared_radius: float
    norm_bound: float | None = None
    shards: Shards = ONE_SHARD

    def __post_init__(self) -> None:
        require_floats(self.centers, "centers", "task", "feature")
        require_type(self.factors, "factors", CopyOnWriteRows)
        num_tasks, feature_dim = self.centers.shape
        if self.factors.shape != (num_tasks, feature_dim, feature_dim):
            raise InvalidInputError(
                "factors must have the shape [task, feature, feature] of the centers "
                f"{list(self.centers.shape)}, got {list(self.factors.shape)}"
            )
        require_not_negative(self.squared_radius, "squared_radius")
        require_bound(self.norm_bound, "norm_bound")

    @property
    def cholesky(self) -> Tensor:
        """The factors as one tensor."""
        return self.factors.whole

    def center_values(self, features: Tensor, tasks: Tensor) -> Tensor:
        """<centers[task], phi>: [row, action, feature], [row] -> [row, action]."""
        return (features @ self.centers[tasks].unsqueeze(-1)).squeeze(-1)

    def factors_of(self, tasks: Tensor) -> Tensor:
        """L_i of some tasks: [n] -> [n, feature, feature]."""
        return self.factors[tasks]

    def squared_widths(self, features: Tensor, tasks: Tensor) -> Tensor:
        """phi^T V_task^-1 phi: [row, action, feature], [row] -> [row, action]."""
        all_tasks = torch.arange(len(self.factors), device=tasks.device)
        factors = self.cholesky if torch.equal(tasks, all_tasks) else self.factors[tasks]
        return inverse_squared_norms(factors, features)

    def bonus_widths(self, features: Tensor, tasks: Tensor) -> Tensor:
        """The same for the bonus of a row alone."""
        return self.squared_widths(features, tasks)

    def value_covariances(self, features: Tensor, tasks: Tensor) -> Tensor:
        """Phi V_task^-1 Phi^T in each row: [row, action, feature] -> [row, action, action]."""
        whitened = torch.linalg.solve_triangular(self.factors[tasks], features.mT, upper=False)
        return whitened.mT @ whitened

    def prediction(self, mean: Tensor, chosen: Tensor, tasks: Tensor) -> Prediction:
        """Means [row] with their unit variances, those of features [row, feature]."""
        return Prediction(mean, self.squared_widths(chosen.unsqueeze(1), tasks).squeeze(1))

    def farthest(self, chosen: Tensor, tasks: Tensor) -> tuple[Tensor, float]:
        """The heads with the largest sum of values of features [row, feature], and how far."""
        heads = self.farthest_heads(torch.zeros_like(self.centers).index_add(0, tasks, chosen))
        return heads, self.squared_distance(heads)

    def farthest_heads(self, directions: Tensor) -> Tensor:
        """The W in the set with the largest sum_i <directions[i], w_i>: [task, feature] twice.

        Without a norm bound this is  centers + V^-1 g sqrt(radius / g^T V^-1 g).
        """
        reach = self._solved(directions)
        squared_length = self.shards.sum((directions * reach).sum())
        if self.squared_radius == 0 or squared_length == 0:
            return self.centers
        heads = self.centers + reach * (self.squared_radius / squared_length).sqrt()
        if self.norm_bound is None or bool((heads.norm(dim=-1) <= self.norm_bound).all()):
            return heads
        return self._farthest_bounded_heads(directions, self.norm_bound)

    def _solved(self, directions: Tensor) -> Tensor:
        """V^-1 of directions [task, feature], without a solve where the direction is zero."""
        nonzero = directions.any(-1).nonzero().squeeze(1)
        if len(nonzero) == len(directions):
            return cholesky_solve(self.cholesky, directions)
        solved = cholesky_solve(self.factors[nonzero], directions[nonzero])
        return torch.zeros_like(directions).index_copy(0, nonzero, solved)

    def _farthest_bounded_heads(self, directions: Tensor, norm_bound: float) -> Tensor:
        """The same with the bound: the root of the distance as a function of the multiplier."""
        # Few agents have a bound, and scipy.optimize is half of what an agent loads beside torch.
        from scipy.optimize import brentq

        heads_for = self._bounded_heads(directions, norm_bound)

        def excess(log_multiplier: float) -> float:
            heads = heads_for(math.exp(log_multiplier))
            return self.squared_distance(heads) - self.squared_radius

        # The distance falls as the multiplier grows: take strides until the boundary is crossed.
        logarithm, stride = 0.0, STRIDE if excess(0.0) > 0 else -STRIDE
        while (excess(logarithm) > 0) == (stride > 0):
            if abs(logarithm) > LARGEST_LOGARITHM:  # the ellipsoid is inactive, or a point
                return heads_for(math.exp(logarithm))
            logarithm += stride
        root, step = float(brentq(excess, logarithm - stride, logarithm, xtol=1e-13)), 1e-13
        while excess(root) > 0 and root < LARGEST_LOGARITHM:  # to the inner side of the boundary
            root, step = root + step, 2 * step
        return heads_for(math.exp(root))

    def _bounded_heads(self, directions: Tensor, norm_bound: float) -> Callable[[float], Tensor]:
        """For a multiplier m, argmax <g, w> - m |w - c|^2_V over |w| <= D, task by task.

        That is a norm-bounded problem with matrix m V and moment g / 2 + m V c.
        """
        precision = self.cholesky @ self.cholesky.mT
        eigenvalues, basis = torch.linalg.eigh(precision)
        pull = (precision @ self.centers.unsqueeze(-1)).squeeze(-1)

        def heads_for(multiplier: float) -> Tensor:
            moments = directions / 2 + multiplier * pull
            rotated = (basis.mT @ moments.unsqueeze(-1)).squeeze(-1)
            scaled = multiplier * eigenvalues
            scaled = scaled + norm_bound_multipliers(scaled, rotated, norm_bound)
            return (basis @ (rotated / scaled).unsqueeze(-1)).squeeze(-1)

        return heads_for

    @property
    def is_empty(self) -> bool:
        """Whether no heads satisfy both the ellipsoid and the norm bound."""
        if self.norm_bound is None or float(self.centers.norm(dim=-1).max()) <= self.norm_bound:
            return False
        # Without a direction every multiplier gives the nearest heads.
        nearest = self._bounded_heads(torch.zeros_like(self.centers), self.norm_bound)(1.0)
        return self.squared_distance(nearest) > self.squared_radius * (1 + 1e-9)

    def squared_distance(self, heads: Tensor) -> float:
        """sum_i (w_i - centers[i])^T V_i (w_i - centers[i]) of heads [task, feature]."""
        steps = heads - self.centers
        moved = steps.any(-1).nonzero().squeeze(1)
        factors = self.cholesky if len(moved) == len(steps) else self.factors[moved]
        own = float((factors.mT @ steps[moved].unsqueeze(-1)).square().sum())
        return totals(self.shards, own)[0]

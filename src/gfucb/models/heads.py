"""Heads on one fixed representation: their sufficient statistics and their confidence ellipsoid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.linalg import (
    cholesky_solve,
    inverse_squared_norms,
    norm_bound_multipliers,
    ridge_cholesky,
    task_grams,
    task_sums,
)
from gfucb.core.records import Prediction
from gfucb.core.shards import ONE_SHARD, Shards, totals
from gfucb.core.validation.record_fields import (
    require_bound,
    require_floats,
    require_not_negative,
    require_type,
)
from gfucb.core.validation.settings import validate_number
from gfucb.models.copy_on_write import CopyOnWriteRows

# The search for the logarithm of a multiplier goes up to this size, in steps of STRIDE.
LARGEST_LOGARITHM, STRIDE = 28.0, 3.0
# Leave-one-out residuals are divided by 1 - leverage, or by this if it is larger.
SMALLEST_LEFT_OUT = 1e-3


@dataclass(frozen=True)
class HeadPenalty:
    """The regularisation of heads: ridge |w|^2 in the loss, and optionally |w| <= norm_bound."""

    ridge: float = 1.0
    norm_bound: float | None = None

    def __post_init__(self) -> None:
        validate_number(self.ridge, "ridge", above=0.0)
        if self.norm_bound is not None:
            validate_number(self.norm_bound, "head_norm_bound", above=0.0, is_finite=False)


@dataclass(frozen=True, eq=False)
class HeadStatistics:
    """Sufficient statistics of least squares for a fixed phi.

    Attributes:
        matrices: sum of phi(x) phi(x)^T, [task, feature, feature].
        moments: sum of phi(x) (reward - offset), [task, feature].
    """

    matrices: CopyOnWriteRows
    moments: Tensor
    _factors: dict[tuple[float, bool], CopyOnWriteRows] = field(default_factory=dict, repr=False)

    @property
    def grams(self) -> Tensor:
        """The matrices as one tensor."""
        return self.matrices.whole

    @classmethod
    def of(cls, features: Tensor, tasks: Tensor, targets: Tensor, num_tasks: int) -> HeadStatistics:
        """Statistics of features [n, feature], tasks [n], targets less the offset [n]."""
        return cls(
            CopyOnWriteRows(task_grams(features, tasks, num_tasks)),
            task_sums(features * targets[:, None], tasks, num_tasks),
        )

    @classmethod
    def empty(
        cls, num_tasks: int, feature_dim: int, device: torch.device | str = "cpu"
    ) -> HeadStatistics:
        """The statistics of no data."""
        moments = torch.zeros(num_tasks, feature_dim, dtype=torch.float64, device=device)
        return cls(CopyOnWriteRows(moments.new_zeros(num_tasks, feature_dim, feature_dim)), moments)

    def with_tasks(self, count: int) -> HeadStatistics:
        """The same with `count` more tasks, which have no data."""
        none = HeadStatistics.empty(count, self.moments.shape[1], self.moments.device)
        moments = torch.cat([self.moments, none.moments])
        return HeadStatistics(self.matrices.extended(none.grams), moments)

    def plus(self, other: HeadStatistics) -> HeadStatistics:
        """Statistics of both data sets together, the sum."""
        return HeadStatistics(
            CopyOnWriteRows(self.grams + other.grams), self.moments + other.moments
        )

    def scaled(self, factor: float) -> HeadStatistics:
        """Statistics of targets times `factor`; the factorised matrices are shared."""
        return replace(self, moments=factor * self.moments)

    def after(
        self, features: Tensor, tasks: Tensor, targets: Tensor
    ) -> tuple[HeadStatistics, Tensor]:
        """Statistics with samples [n, feature], [n], [n] added, and the tasks that have changed."""
        changed, positions = tasks.unique(return_inverse=True)
        if len(tasks) == len(changed) == len(self.moments):
            order = positions.argsort()
            return self.plus_one_each(features[order], targets[order]), changed
        added = HeadStatistics.of(features, positions, targets, len(changed))
        return self.plus_at(changed, added), changed

    def plus_one_each(self, features: Tensor, targets: Tensor) -> HeadStatistics:
        """Statistics after one more sample of every task: [task, feature], [task].

        The same as `plus` without the Gram matrices of the new samples: with many tasks the
        cost is that of memory.
        """
        grams = torch.addcmul(self.grams, features[:, :, None], features[:, None, :])
        moments = torch.addcmul(self.moments, features, targets[:, None])
        return HeadStatistics(CopyOnWriteRows(grams), moments)

    def plus_at(self, tasks: Tensor, other: HeadStatistics) -> HeadStatistics:
        """Statistics with `other`, that of the distinct tasks [n] only, added.

        Gram matrices and factors of all other tasks are shared, so they cost nothing.
        """
        grams = self.matrices[tasks] + other.grams
        return HeadStatistics(
            self.matrices.replaced(tasks, grams),
            self.moments.index_add(0, tasks, other.moments),
            {
                (ridge, is_checked): factors.replaced(
                    tasks, ridge_cholesky(grams, ridge, is_checked=is_checked)
                )
                for (ridge, is_checked), factors in self._factors.items()
            },
        )

    def taken(self, tasks: Tensor) -> HeadStatistics:
        """Statistics of the tasks [n] only, in this order."""
        factors = {key: CopyOnWriteRows(factors[tasks]) for key, factors in self._factors.items()}
        return HeadStatistics(CopyOnWriteRows(self.matrices[tasks]), self.moments[tasks], factors)

    def factors(self, ridge: float, *, is_checked: bool = True) -> CopyOnWriteRows:
        """Lower factors of gram + ridge I, [task, feature, feature], computed once."""
        key = (ridge, is_checked)
        if key not in self._factors:
            found = ridge_cholesky(self.grams, ridge, is_checked=is_checked)
            self._factors[key] = CopyOnWriteRows(found)
        return self._factors[key]

    def cholesky(self, ridge: float, *, is_checked: bool = True) -> Tensor:
        """The factors as one tensor."""
        return self.factors(ridge, is_checked=is_checked).whole

    def heads(self, penalty: HeadPenalty, *, is_checked: bool = True) -> Tensor:
        """argmin_w |Phi w - y|^2 + ridge |w|^2 (and |w| <= norm_bound): [task, feature].

        Features that are not finite raise an error, or give NaN heads if not `is_checked`.
        """
        heads = cholesky_solve(self.cholesky(penalty.ridge, is_checked=is_checked), self.moments)
        bound = penalty.norm_bound
        if bound is None or bool((heads.norm(dim=-1) <= bound).all()):
            return heads
        if not is_checked and not bool(self.grams.isfinite().all()):
            return torch.full_like(heads, torch.nan)  # eigh would raise an error
        # Where the bound is active, the minimiser is that of a larger ridge. The search for that
        # ridge has no gradients: those of eigenvectors do not exist at equal eigenvalues.
        with torch.no_grad():
            eigenvalues, basis = torch.linalg.eigh(self.grams)
            rotated = (basis.transpose(-1, -2) @ self.moments.unsqueeze(-1)).squeeze(-1)
            ridges = penalty.ridge + norm_bound_multipliers(
                eigenvalues.clamp_min(0) + penalty.ridge, rotated, bound
            )
        factors = ridge_cholesky(self.grams, ridges.unsqueeze(-1), is_checked=is_checked)
        return cholesky_solve(factors, self.moments)

    def heads_solved_at(self, tasks: Tensor, penalty: HeadPenalty, heads: Tensor) -> Tensor:
        """The heads [task, feature], with those of the tasks [n] solved again."""
        if len(tasks) == len(heads):
            return self.heads(penalty)
        return heads.index_copy(0, tasks, self.taken(tasks).heads(penalty))


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
        if self.factors.base.shape != (num_tasks, feature_dim, feature_dim):
            raise InvalidInputError(
                "factors must have the shape [task, feature, feature] of the centers "
                f"{list(self.centers.shape)}, got {list(self.factors.base.shape)}"
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

    def squared_widths(self, features: Tensor, tasks: Tensor) -> Tensor:
        """phi^T V_task^-1 phi: [row, action, feature], [row] -> [row, action]."""
        all_tasks = torch.arange(len(self.factors), device=tasks.device)
        factors = self.cholesky if torch.equal(tasks, all_tasks) else self.factors[tasks]
        return inverse_squared_norms(factors, features)

    def value_covariances(self, features: Tensor, tasks: Tensor) -> Tensor:
        """Phi V_task^-1 Phi^T in each row: [row, action, feature] -> [row, action, action]."""
        whitened = torch.linalg.solve_triangular(self.factors[tasks], features.mT, upper=False)
        return whitened.mT @ whitened

    def prediction(self, mean: Tensor, chosen: Tensor, tasks: Tensor) -> Prediction:
        """Means [row] with their unit variances, those of features [row, feature]."""
        return Prediction(mean, self.squared_widths(chosen.unsqueeze(1), tasks).squeeze(1))

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


def shorten(heads: Tensor, norm_bound: float) -> None:
    """Overwrite heads [task, feature] by their projection to the ball of radius `norm_bound`."""
    with torch.no_grad():
        norms = heads.norm(dim=-1, keepdim=True)
        heads *= (norm_bound / norms.clamp_min(norm_bound)).clamp_max(1.0)


def stepped(heads: Tensor, steps: Tensor, norm_bound: float | None) -> Tensor:
    """Heads + steps, each step shortened where it would leave |w| <= norm_bound: [..., feature].

    The heads must satisfy the bound. Points between them and a point of a convex set stay in that
    set.
    """
    if norm_bound is None:
        return heads + steps
    # |w + s step|^2 = bound^2 has one root s >= 0 where |w| <= bound.
    squares = steps.square().sum(-1)
    products = (heads * steps).sum(-1)
    slack = (norm_bound**2 - heads.square().sum(-1)).clamp_min(0)
    root = (products.square() + squares * slack).sqrt() - products
    shares = torch.where(squares > 0, root / squares.clamp_min(torch.finfo(squares.dtype).tiny), 0)
    return heads + shares.clamp(max=1).unsqueeze(-1) * steps

"""Heads on one fixed representation: their penalty and their sufficient statistics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from gfucb.core.linalg import (
    cholesky_solve,
    norm_bound_multipliers,
    ridge_cholesky,
    task_grams,
    task_sums,
)
from gfucb.core.shards import Shards
from gfucb.core.validation.settings import validate_number
from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.head_ellipsoid import HeadEllipsoid

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
            bound = validate_number(self.norm_bound, "head_norm_bound", above=0.0, is_finite=False)
            # An integer may be too large to be compared with tensors.
            object.__setattr__(self, "norm_bound", bound)


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
        return HeadStatistics(
            self.matrices.extended(none.grams),
            torch.cat([self.moments, none.moments]),
            {
                (ridge, is_checked): factors.extended(
                    ridge_cholesky(none.grams, ridge, is_checked=is_checked)
                )
                for (ridge, is_checked), factors in self._factors.items()
            },
        )

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

    def with_samples_at(
        self, tasks: Tensor, features: Tensor, positions: Tensor, targets: Tensor
    ) -> HeadStatistics:
        """Statistics in which the distinct tasks [n] have these samples only.

        Shapes: features [sample, feature], positions in `tasks` [sample], targets [sample].
        """
        own = HeadStatistics.of(features, positions, targets, len(tasks))
        difference = HeadStatistics(
            CopyOnWriteRows(own.grams - self.matrices[tasks]), own.moments - self.moments[tasks]
        )
        return self.plus_at(tasks, difference)

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

    def ellipsoid(
        self,
        heads: Tensor,
        ridge: float,
        squared_radius: float,
        norm_bound: float | None,
        shards: Shards,
    ) -> HeadEllipsoid:
        """The heads around these within a radius."""
        return HeadEllipsoid(heads, self.factors(ridge), squared_radius, norm_bound, shards)

    def tensors(self) -> dict[str, Tensor]:
        """Named tensors, for saving."""
        return {"grams": self.grams, "moments": self.moments}


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

"""Statistics of heads for very many tasks: memory in proportion to the samples of a task.

The Gram matrix of a task has k^2 numbers, those of its n samples n k. With K = Phi Phi^T and
K + ridge I = L L^T, W = L^-1 Phi, the matrix V = Phi^T Phi + ridge I has the inverse

    V^-1 = (I - W^T W) / ridge,

so that heads and widths follow from systems of the size n of the samples. A task with more samples
than features has a Gram matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from gfucb.core.linalg import (
    cholesky_solve,
    inverse_squared_norms,
    ridge_cholesky,
    task_grams,
    task_sums,
)
from gfucb.core.shards import Shards
from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.head_ellipsoid import HeadEllipsoid
from gfucb.models.heads import HeadPenalty, HeadStatistics
from gfucb.models.sample_ellipsoid import SampleEllipsoid
from gfucb.models.sample_rows import SampleRows
from gfucb.models.task_parts import parts_of_similar_size

# Factors of a call are kept for the next one up to this many numbers.
LARGEST_KEPT = 2**22


class _SolvedTasks(NamedTuple):
    """The tasks [n] of a call, the ridge, and for parts of them: indices, W or L, is it L."""

    tasks: Tensor
    ridge: float
    parts: list[tuple[Tensor, Tensor, bool]]


@dataclass(frozen=True, eq=False)
class SampleStatistics(HeadStatistics):
    """`HeadStatistics` that stores features of samples; Gram matrices of few tasks only.

    Attributes:
        matrices: Gram matrices of the tasks with many samples, [heavy task, feature, feature].
        heavy: the position of a task in `matrices`, or -1, [task].
        counts: the number of rows of a task, [task].
        last: its last row, or -1, [task].
        rows: the features of all other samples.
        size: how many rows of `rows` belong to these statistics.
    """

    _: KW_ONLY
    heavy: Tensor
    counts: Tensor
    last: Tensor
    rows: SampleRows
    size: int
    _solved_last: list[_SolvedTasks] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def none(cls, num_tasks: int, feature_dim: int, device: torch.device | str) -> SampleStatistics:
        """The statistics of no data."""
        moments = torch.zeros(num_tasks, feature_dim, dtype=torch.float64, device=device)
        absent = torch.full((num_tasks,), -1, dtype=torch.int64, device=device)
        matrices = CopyOnWriteRows(moments.new_zeros(0, feature_dim, feature_dim))
        rows = SampleRows(feature_dim, device)
        return cls(
            matrices, moments, heavy=absent, counts=absent + 1, last=absent, rows=rows, size=0
        )

    @classmethod
    def of_samples(
        cls, features: Tensor, tasks: Tensor, targets: Tensor, num_tasks: int
    ) -> SampleStatistics:
        """Statistics of features [n, feature], tasks [n], targets less the offset [n]."""
        empty = cls.none(num_tasks, features.shape[1], features.device)
        counts = torch.bincount(tasks, minlength=num_tasks)
        many = (counts > features.shape[1]).nonzero().squeeze(1)
        heavy = empty.heavy.index_copy(0, many, torch.arange(len(many), device=many.device))
        is_heavy = heavy[tasks] >= 0
        grams = task_grams(features[is_heavy], heavy[tasks[is_heavy]], len(many))
        few = ~is_heavy
        rows = SampleRows(features.shape[1], features.device, max(64, int(few.sum())))
        last = rows.append(features[few], tasks[few], empty.last)
        return cls(
            CopyOnWriteRows(grams),
            task_sums(features * targets[:, None], tasks, num_tasks),
            heavy=heavy,
            counts=counts.masked_fill(heavy >= 0, 0),
            last=last,
            rows=rows,
            size=rows.size,
        )

    @property
    def grams(self) -> Tensor:
        """The Gram matrices of all tasks as one tensor, which may be large."""
        return self.taken(torch.arange(len(self.moments), device=self.moments.device)).grams

    def with_tasks(self, count: int) -> SampleStatistics:
        """The same with `count` more tasks, which have no data."""
        none = self.heavy.new_full((count,), -1)
        return replace(
            self,
            moments=torch.cat([self.moments, self.moments.new_zeros(count, self.feature_dim)]),
            heavy=torch.cat([self.heavy, none]),
            counts=torch.cat([self.counts, none + 1]),
            last=torch.cat([self.last, none]),
        )

    @property
    def feature_dim(self) -> int:
        """The number of features."""
        return self.moments.shape[1]

    def after(
        self, features: Tensor, tasks: Tensor, targets: Tensor
    ) -> tuple[SampleStatistics, Tensor]:
        """Statistics with samples [n, feature], [n], [n] added, and the tasks that have changed."""
        changed = tasks.unique()
        positions = self.heavy[tasks]
        few = positions < 0
        rows = self.rows.first(self.size)
        last = rows.append(features[few], tasks[few], self.last)
        added = torch.bincount(tasks[few], minlength=len(self.counts))
        matrices = self.matrices
        if not bool(few.all()):
            own, slots = positions[~few].unique(return_inverse=True)
            grams = task_grams(features[~few], slots, len(own))
            matrices = matrices.replaced(own, matrices[own] + grams)
        found = replace(
            self,
            matrices=matrices,
            moments=self.moments.index_add(0, tasks, features * targets[:, None]),
            counts=self.counts + added,
            last=last,
            rows=rows,
            size=rows.size,
        )
        return found._with_heavy(changed[found.counts[changed] > self.feature_dim]), changed

    def with_samples_at(
        self, tasks: Tensor, features: Tensor, positions: Tensor, targets: Tensor
    ) -> SampleStatistics:
        """Statistics in which the distinct tasks [n] have these samples only."""
        many = self.heavy[tasks]
        many = many[many >= 0]
        without = replace(
            self,
            matrices=self.matrices.replaced(many, torch.zeros_like(self.matrices[many])),
            moments=self.moments.index_fill(0, tasks, 0.0),
            counts=self.counts.index_fill(0, tasks, 0),
            last=self.last.index_fill(0, tasks, -1),
        )
        return without.after(features, tasks[positions], targets)[0]

    def _with_heavy(self, tasks: Tensor) -> SampleStatistics:
        """The same with Gram matrices for the tasks [n]; their rows are no longer used."""
        if len(tasks) == 0:
            return self
        grams = self.taken(tasks).grams
        first = len(self.matrices)
        slots = torch.arange(first, first + len(tasks), device=tasks.device)
        return replace(
            self,
            matrices=self.matrices.extended(grams),
            heavy=self.heavy.index_copy(0, tasks, slots),
            counts=self.counts.index_fill(0, tasks, 0),
            last=self.last.index_fill(0, tasks, -1),
        )

    def taken(self, tasks: Tensor) -> HeadStatistics:
        """Statistics of the tasks [n] only, with Gram matrices."""
        features, _ = self._features(tasks)
        grams = features.mT @ features
        is_heavy = self.heavy[tasks] >= 0
        if bool(is_heavy.any()):
            grams[is_heavy] = self.matrices[self.heavy[tasks[is_heavy]]]
        return HeadStatistics(CopyOnWriteRows(grams), self.moments[tasks])

    def heads(self, penalty: HeadPenalty, *, is_checked: bool = True) -> Tensor:
        """The heads of all tasks, see `HeadStatistics`; those without data are zero."""
        has_data = ((self.counts > 0) | (self.heavy >= 0)).nonzero().squeeze(1)
        return self.heads_solved_at(has_data, penalty, torch.zeros_like(self.moments))

    def heads_solved_at(self, tasks: Tensor, penalty: HeadPenalty, heads: Tensor) -> Tensor:
        """The heads [task, feature], with those of the tasks [n] solved again."""
        heads = heads.clone()
        for rows in self._parts(tasks):
            own = tasks[rows]
            if penalty.norm_bound is None:
                heads[own] = self.solved(self.moments[own], own, penalty.ridge)
            else:
                heads[own] = self.taken(own).heads(penalty)
        return heads

    def inverse_norms(self, features: Tensor, tasks: Tensor, ridge: float) -> Tensor:
        """phi^T V_task^-1 phi: [row, n, feature], [row] -> [row, n]."""

        def by_samples(whitened: Tensor, vectors: Tensor) -> Tensor:
            explained = (vectors @ whitened.mT).square().sum(-1)
            return ((vectors.square().sum(-1) - explained) / ridge).clamp_min(0)

        return self._by_kind(by_samples, inverse_squared_norms, features, tasks, ridge)

    def products(self, vectors: Tensor, tasks: Tensor, ridge: float) -> Tensor:
        """V_task^-1 of vectors: [row, n, feature], [row] -> [row, n, feature]."""

        def by_samples(whitened: Tensor, vectors: Tensor) -> Tensor:
            return (vectors - (vectors @ whitened.mT) @ whitened) / ridge

        def by_factor(factors: Tensor, vectors: Tensor) -> Tensor:
            return torch.cholesky_solve(vectors.mT, factors).mT

        return self._by_kind(by_samples, by_factor, vectors, tasks, ridge)

    def solved(self, vectors: Tensor, tasks: Tensor, ridge: float) -> Tensor:
        """V_task^-1 of vectors: [row, feature], [row] -> [row, feature]."""

        def by_samples(whitened: Tensor, vectors: Tensor) -> Tensor:
            inside = whitened.mT @ (whitened @ vectors.unsqueeze(-1))
            return (vectors - inside.squeeze(-1)) / ridge

        return self._by_kind(by_samples, cholesky_solve, vectors, tasks, ridge)

    def norms(self, vectors: Tensor, tasks: Tensor, ridge: float) -> Tensor:
        """v^T V_task v: [row, feature], [row] -> [row]; the tasks are distinct."""
        found = ridge * vectors.square().sum(-1)
        for rows in self._parts(tasks):
            features, _ = self._features(tasks[rows])
            found[rows] += (features @ vectors[rows].unsqueeze(-1)).square().sum((-2, -1))
        many = (self.heavy[tasks] >= 0).nonzero().squeeze(1)
        grams = self.matrices[self.heavy[tasks[many]]]
        products = (vectors[many].unsqueeze(1) @ grams).squeeze(1)
        return found.index_add(0, many, (products * vectors[many]).sum(-1))

    def squared_sizes(self) -> Tensor:
        """The sum of squared features of each task, the trace of its Gram matrix: [task]."""
        tasks = self.rows.tasks(self.size)
        squares = self.rows.features(self.size).to(torch.float64).square().sum(1)
        found = task_sums(squares.masked_fill(self.heavy[tasks] >= 0, 0.0), tasks, len(self.heavy))
        many = (self.heavy >= 0).nonzero().squeeze(1)
        traces = self.matrices.whole.diagonal(dim1=-2, dim2=-1).sum(-1)
        return found.index_copy(0, many, traces[self.heavy[many]])

    def ellipsoid(
        self,
        heads: Tensor,
        ridge: float,
        squared_radius: float,
        norm_bound: float | None,
        shards: Shards,
    ) -> HeadEllipsoid:
        """The heads around these within a radius, see `HeadEllipsoid`."""
        empty = CopyOnWriteRows(self.moments.new_zeros(0, 0, 0))
        return SampleEllipsoid(
            heads, empty, squared_radius, norm_bound, shards, statistics=self, ridge=ridge
        )

    def tensors(self) -> dict[str, Tensor]:
        """Named tensors, for saving."""
        return {
            "features": self.rows.features(self.size),
            "tasks": self.rows.tasks(self.size),
            "heavy": (self.heavy >= 0).nonzero().squeeze(1)[self.heavy[self.heavy >= 0].argsort()],
            "grams": self.matrices.whole,
            "moments": self.moments,
        }

    @classmethod
    def restored(cls, tensors: Mapping[str, Tensor]) -> SampleStatistics:
        """The statistics with these tensors, which are checked already."""
        moments, heavy = tensors["moments"], tensors["heavy"]
        empty = cls.none(len(moments), moments.shape[1], moments.device)
        features, tasks = tensors["features"].to(torch.float64), tensors["tasks"]
        rows = SampleRows(moments.shape[1], moments.device, max(64, len(tasks)))
        last = rows.append(features, tasks, empty.last)
        counts = torch.bincount(tasks, minlength=len(moments))
        slots = torch.arange(len(heavy), device=heavy.device)
        return replace(
            empty,
            matrices=CopyOnWriteRows(tensors["grams"]),
            moments=moments,
            heavy=empty.heavy.index_copy(0, heavy, slots),
            counts=counts.index_fill(0, heavy, 0),  # rows from before a task had many
            last=last.index_fill(0, heavy, -1),
            rows=rows,
            size=rows.size,
        )

    def _features(self, tasks: Tensor) -> tuple[Tensor, Tensor]:
        most = int(self.counts[tasks].max()) if len(tasks) else 0
        return self.rows.gather(self.last[tasks], most)

    def _by_kind(
        self,
        by_samples: Callable[[Tensor, Tensor], Tensor],
        by_factor: Callable[[Tensor, Tensor], Tensor],
        vectors: Tensor,
        tasks: Tensor,
        ridge: float,
    ) -> Tensor:
        """The result of W [row, slot, feature] where a task has few samples, of L elsewhere."""
        parts, orders = [], []
        for rows, matrices, is_heavy in self._factors_of(tasks, ridge):
            parts.append((by_factor if is_heavy else by_samples)(matrices, vectors[rows]))
            orders.append(rows)
        if not parts:
            return by_samples(vectors.new_zeros(0, 0, self.feature_dim), vectors)
        return torch.cat(parts)[torch.cat(orders).argsort()]

    def _factors_of(self, tasks: Tensor, ridge: float) -> Iterator[tuple[Tensor, Tensor, bool]]:
        """Parts of the tasks [n]: indices, W or L, and whether it is L; kept for the next call."""
        for last in self._solved_last:
            if last.ridge == ridge and torch.equal(last.tasks, tasks):
                yield from last.parts
                return
        parts, size = [], 0
        for rows in self._parts(tasks):
            own = tasks[rows]
            is_heavy = bool(self.heavy[own[0]] >= 0)
            if is_heavy:
                matrices = ridge_cholesky(self.matrices[self.heavy[own]], ridge)
            else:
                features, _ = self._features(own)
                factors = ridge_cholesky(features @ features.mT, ridge)
                matrices = torch.linalg.solve_triangular(factors, features, upper=False)
            size += matrices.numel()
            if size <= LARGEST_KEPT:
                parts.append((rows, matrices, is_heavy))
            yield rows, matrices, is_heavy
        if size <= LARGEST_KEPT:
            self._solved_last[:] = [_SolvedTasks(tasks, ridge, parts)]

    def _parts(self, tasks: Tensor) -> Iterator[Tensor]:
        """Indices of the tasks [n] in parts; a part has tasks with Gram matrices, or others."""
        is_heavy = self.heavy[tasks] >= 0
        sizes = self.counts[tasks].masked_fill(is_heavy, self.feature_dim + 1)
        return parts_of_similar_size(sizes, self.feature_dim, ends=self.feature_dim)

"""The samples of very many tasks, in place of a Gram matrix for each.

With K = Phi Phi^T of the n samples of a task, I + K = L L^T, W = L^-1 Phi and z = L^-1 y,

    (I + G)^-1 = I - W^T W,   head = W^T z,   |y|^2 - explained = |z|^2,   |I + G| = |I + K|,

so that all sums over tasks need systems of the size n, and one product of all W.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from gfucb.core.linalg import ridge_cholesky, task_sums
from gfucb.core.shards import ONE_SHARD, Shards
from gfucb.estimation.evidence import HeadSums, TaskMoments
from gfucb.models.sample_covariances import SampleCovariances
from gfucb.models.task_parts import parts_of_similar_size


@dataclass(frozen=True, eq=False)
class SampleMoments:
    """Samples with the members of `TaskMoments` that fits of many tasks use.

    Attributes:
        features: [n, feature].
        tasks: [n].
        targets: [n].
        num_tasks: M.
        pseudo_square: the squared error of a pseudo-sample.
    """

    features: Tensor
    tasks: Tensor
    targets: Tensor
    num_tasks: int
    pseudo_square: float

    @cached_property
    def counts(self) -> Tensor:
        """The number of samples, [task]."""
        return torch.bincount(self.tasks, minlength=self.num_tasks)

    @cached_property
    def moments(self) -> Tensor:
        """Sum of phi y, [task, feature]."""
        return task_sums(self.features * self.targets[:, None], self.tasks, self.num_tasks)

    def scaled(self, scales: Tensor, factor: Tensor | None = None) -> SampleMoments:
        """The samples with features times `scales` [feature], then times `factor`."""
        features = self.features * scales
        return replace(self, features=features if factor is None else features @ factor)

    def of_tasks(self, tasks: Tensor) -> TaskMoments:
        """The sums of some tasks [n]."""
        position = self.tasks.new_full((self.num_tasks,), -1)
        position[tasks] = torch.arange(len(tasks), device=tasks.device)
        slots = position[self.tasks]
        rows = (slots >= 0).nonzero().squeeze(1)
        return TaskMoments.of(
            self.features[rows],
            slots[rows],
            self.targets[rows],
            len(tasks),
            pseudo_square=self.pseudo_square,
        )

    def head_sums(self, shards: Shards) -> tuple[HeadSums, SampleCovariances]:
        """The sums over the tasks of all shards, and the covariances of the own ones."""
        size = self.features.shape[1]
        order = self.tasks.argsort(stable=True)
        none = self.features.new_zeros(size, size)
        sums = HeadSums(0, none, none[0], 0.0, 0.0, 0.0, 0.0)
        for tasks in parts_of_similar_size(self.counts, size, ends=size):
            if int(self.counts[tasks[-1]]) > size:
                own, _ = self.of_tasks(tasks).head_sums(ONE_SHARD)
            else:
                own = self._sums_by_samples(tasks, order)
            sums = sums.plus(own)
        covariances = SampleCovariances.of(self.features, self.tasks, self.num_tasks)
        return sums.of_all(shards), covariances

    def _sums_by_samples(self, tasks: Tensor, order: Tensor) -> HeadSums:
        """The sums of tasks [n] with few samples; `order` are all samples, sorted by task."""
        counts = self.counts[tasks][:, None]
        slots = torch.arange(int(counts.max()), device=tasks.device)
        present = slots < counts
        first = (self._ends[tasks])[:, None] - counts
        rows = order[(first + slots).clamp_max(max(0, len(order) - 1)) * present]
        features = self.features[rows] * present.unsqueeze(-1)
        targets = (self.targets[rows] * present).unsqueeze(-1)
        factors = ridge_cholesky(features @ features.mT, 1.0)
        whitened = torch.linalg.solve_triangular(factors, features, upper=False).flatten(0, 1)
        residuals = torch.linalg.solve_triangular(factors, targets, upper=False)
        identity = torch.eye(whitened.shape[1], dtype=whitened.dtype, device=whitened.device)
        squares = float(targets.square().sum())
        return HeadSums(
            len(tasks),
            len(tasks) * identity - whitened.mT @ whitened,
            whitened.mT @ residuals.flatten(),
            squares - float(residuals.square().sum()),
            2 * float(factors.diagonal(dim1=-2, dim2=-1).log().sum()),
            squares,
            float(counts.sum()),
        )

    @cached_property
    def _ends(self) -> Tensor:
        return self.counts.cumsum(0)

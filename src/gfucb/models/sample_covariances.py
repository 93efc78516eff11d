"""Covariances of the heads of very many tasks, in memory in proportion to their samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.models.sample_statistics import SampleStatistics


@dataclass(frozen=True, eq=False)
class SampleCovariances:
    """(I + Phi_i^T Phi_i)^-1 of all tasks, as the features of their samples.

    Matrices of few tasks are computed when they are needed, see `SampleStatistics`. A task with
    more samples than features has a Gram matrix.

    Attributes:
        statistics: of the samples; its moments are not used.
    """

    statistics: SampleStatistics

    @classmethod
    def none(cls, num_tasks: int, size: int, device: torch.device | str) -> SampleCovariances:
        """Those of no data: identities."""
        return cls(SampleStatistics.none(num_tasks, size, device))

    @classmethod
    def of(cls, features: Tensor, tasks: Tensor, num_tasks: int) -> SampleCovariances:
        """Those of samples [n, feature], [n]."""
        targets = features.new_zeros(len(features))
        return cls(SampleStatistics.of_samples(features, tasks, targets, num_tasks))

    def __len__(self) -> int:
        return len(self.statistics.moments)

    @property
    def size(self) -> int:
        """The number of features."""
        return self.statistics.feature_dim

    def __getitem__(self, tasks: Tensor) -> Tensor:
        """The matrices of the tasks [n]: [n, feature, feature]."""
        eye = torch.eye(self.size, dtype=torch.float64, device=tasks.device)
        return self.times(eye.expand(len(tasks), -1, -1), tasks)

    @property
    def whole(self) -> Tensor:
        """The matrices of all tasks, which may be large."""
        return self[torch.arange(len(self), device=self.statistics.moments.device)]

    def times(self, vectors: Tensor, tasks: Tensor) -> Tensor:
        """The matrices of the tasks [row] times vectors [row, n, feature]."""
        return self.statistics.products(vectors, tasks, 1.0)

    def after(self, features: Tensor, tasks: Tensor) -> SampleCovariances:
        """With samples [n, feature], [n] added."""
        targets = features.new_zeros(len(features))
        return SampleCovariances(self.statistics.after(features, tasks, targets)[0])

    def with_only(self, tasks: Tensor, features: Tensor, positions: Tensor) -> SampleCovariances:
        """Those in which the distinct tasks [n] have these samples only: [sample, feature]."""
        targets = features.new_zeros(len(features))
        samples = self.statistics.with_samples_at(tasks, features, positions, targets)
        return SampleCovariances(samples)

    def with_tasks(self, count: int) -> SampleCovariances:
        """With `count` more tasks, which have no data."""
        return SampleCovariances(self.statistics.with_tasks(count))

    def tensors(self) -> dict[str, Tensor]:
        """Named tensors, for saving."""
        found = self.statistics.tensors()
        return {name: found[name] for name in ("features", "tasks", "heavy", "grams")}

    @classmethod
    def restored(cls, tensors: Mapping[str, Tensor], num_tasks: int) -> SampleCovariances:
        """Those with these tensors, whose types and shapes are checked already."""
        grams, tasks, heavy = (tensors[name] for name in ("grams", "tasks", "heavy"))
        indices = torch.cat([tasks, heavy])
        if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < num_tasks:
            raise InvalidInputError(f"tasks of the state must be from 0 to {num_tasks - 1}")
        if len(heavy.unique()) < len(heavy):
            raise InvalidInputError("a task of the state has two Gram matrices")
        moments = grams.new_zeros(num_tasks, grams.shape[-1])
        return cls(SampleStatistics.restored({**tensors, "moments": moments}))

"""Covariance matrices of tasks in two forms: all stored, or computed from samples when needed."""

from __future__ import annotations

import torch
from torch import Tensor

from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.inverse_grams import distinct_rounds, inverse_grams, with_groups, with_samples
from gfucb.models.sample_covariances import SampleCovariances

Covariances = CopyOnWriteRows | SampleCovariances


def as_covariances(matrices: Tensor | SampleCovariances) -> Covariances:
    """Matrices [task, size, size], or samples, as one of the forms."""
    return CopyOnWriteRows(matrices) if isinstance(matrices, Tensor) else matrices


def identities(num_tasks: int, size: int, like: Tensor, *, holds_samples: bool) -> Covariances:
    """The matrices of no data."""
    if holds_samples:
        return SampleCovariances.none(num_tasks, size, like.device)
    return CopyOnWriteRows(identity_matrices(num_tasks, size, like))


def identity_matrices(count: int, size: int, like: Tensor) -> Tensor:
    """[count, size, size]."""
    return torch.eye(size, dtype=like.dtype, device=like.device).repeat(count, 1, 1)


def of_samples(before: Covariances, features: Tensor, tasks: Tensor, num_tasks: int) -> Covariances:
    """(I + Phi_i^T Phi_i)^-1 of samples [n, feature], [n], in the form of those before."""
    if isinstance(before, SampleCovariances):
        return SampleCovariances.of(features, tasks, num_tasks)
    return CopyOnWriteRows(inverse_grams(features, tasks, num_tasks))


def after_samples(matrices: Covariances, features: Tensor, tasks: Tensor) -> Covariances:
    """With samples [n, feature], [n] added."""
    if isinstance(matrices, SampleCovariances):
        return matrices.after(features, tasks)
    for rows in distinct_rounds(tasks):
        matrices = with_samples(matrices, tasks[rows], features[rows])
    return matrices


def expecting_samples(matrices: Covariances, features: Tensor, tasks: Tensor) -> Covariances:
    """With samples [n, feature], [n] added for one decision."""
    if isinstance(matrices, SampleCovariances):
        return matrices.after(features, tasks)
    return with_groups(matrices, tasks, features)


def with_samples_only(
    matrices: Covariances, own: Covariances, tasks: Tensor, features: Tensor, positions: Tensor
) -> Covariances:
    """With the matrices `own` of distinct tasks, those of samples at these positions of them."""
    if isinstance(matrices, SampleCovariances):
        return matrices.with_only(tasks, features, positions)
    return matrices.replaced(tasks, own.whole)


def with_more_tasks(matrices: Covariances, count: int) -> Covariances:
    """With `count` more tasks, which have no data."""
    if isinstance(matrices, SampleCovariances):
        return matrices.with_tasks(count)
    return matrices.extended(identity_matrices(count, matrix_size(matrices), matrices.base))


def matrix_size(matrices: Covariances) -> int:
    """The number of rows of each matrix."""
    return matrices.size if isinstance(matrices, SampleCovariances) else matrices.shape[-1]


def products(matrices: Covariances, vectors: Tensor, tasks: Tensor) -> Tensor:
    """The matrices of the tasks [row] times vectors: [row, n, feature] -> [row, n, feature]."""
    if isinstance(matrices, SampleCovariances):
        return matrices.times(vectors, tasks)
    return vectors @ matrices[tasks]


def solved(matrices: Covariances, moments: Tensor, tasks: Tensor | None = None) -> Tensor:
    """The matrices of the tasks [n], by default all, times moments [n, feature]."""
    if isinstance(matrices, SampleCovariances):
        if tasks is None:
            tasks = torch.arange(len(matrices), device=moments.device)
        return matrices.times(moments.unsqueeze(1), tasks).squeeze(1)
    rows = matrices.whole if tasks is None else matrices[tasks]
    return (rows @ moments.unsqueeze(-1)).squeeze(-1)

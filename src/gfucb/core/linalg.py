"""Batched ridge algebra in float64: Cholesky factors, never an explicit inverse."""

from __future__ import annotations

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError

# With more rows per task than this on average, one matrix product per task is cheaper than one
# outer product per row.
FEW_ROWS = 4
NEWTON_STEPS = 20
ROUNDING = 1e-12
TINY = 1e-300


def first_best(values: Tensor) -> Tensor:
    """The first option of the largest value, up to rounding: [..., option] -> [...].

    Values that differ by rounding count as equal, because the last bit depends on the device and
    on the size of a batch.
    """
    best = values.max(-1, keepdim=True).values
    return (values >= best - ROUNDING * best.abs()).to(torch.int8).argmax(-1)


def task_sums(rows: Tensor, tasks: Tensor, num_tasks: int) -> Tensor:
    """Sum rows by task: [sample, ...], [sample] -> [task, ...]."""
    return rows.new_zeros(num_tasks, *rows.shape[1:]).index_add(0, tasks, rows)


def task_grams(features: Tensor, tasks: Tensor, num_tasks: int) -> Tensor:
    """Sum of phi phi^T for each task: [sample, feature] -> [task, feature, feature]."""
    # A CUDA graph under capture must not read values from the device, as the counts below do.
    is_captured = features.is_cuda and torch.cuda.is_current_stream_capturing()
    if len(features) <= FEW_ROWS * num_tasks or is_captured:
        return task_sums(features[:, :, None] * features[:, None, :], tasks, num_tasks)
    counts = torch.bincount(tasks, minlength=num_tasks).tolist()
    return torch.stack([own.mT @ own for own in features[tasks.argsort(stable=True)].split(counts)])


def ridge_cholesky(grams: Tensor, ridge: float | Tensor, *, is_checked: bool = True) -> Tensor:
    """Lower factor L of gram + ridge I = L L^T: [..., feature, feature].

    The ridge is one number, or one for each matrix in a shape that broadcasts. A matrix without a
    factor raises an error. If not `is_checked` its factor is NaN instead, and the call does not
    wait for the device.
    """
    eye = torch.eye(grams.shape[-1], dtype=grams.dtype, device=grams.device)
    factor, failures = torch.linalg.cholesky_ex(grams + ridge * eye)
    if is_checked:
        if not is_finite_factor(factor, failures):
            raise InvalidInputError(
                "the Gram matrix of the features plus ridge is not positive definite in float64; "
                "features or inputs are too large, not finite, or the ridge is too small for them"
            )
        return factor
    return factor.masked_fill((failures != 0)[..., None, None], torch.nan)


def is_finite_factor(factor: Tensor, failures: Tensor) -> bool:
    """Whether `cholesky_ex` succeeded on finite matrices: [..., feature, feature], [...].

    Some processors' libraries factor a matrix with an infinite diagonal without a failure.
    """
    return not bool(failures.any()) and bool(factor.diagonal(dim1=-2, dim2=-1).isfinite().all())


def cholesky_solve(cholesky: Tensor, vectors: Tensor) -> Tensor:
    """Solve (L L^T) x = v: [..., feature, feature], [..., feature] -> [..., feature]."""
    # Not torch.cholesky_solve, which may wait for the device between matrices.
    whitened = torch.linalg.solve_triangular(cholesky, vectors.unsqueeze(-1), upper=False)
    return torch.linalg.solve_triangular(cholesky.mT, whitened, upper=True).squeeze(-1)


def inverse_squared_norms(cholesky: Tensor, vectors: Tensor) -> Tensor:
    """v^T (L L^T)^-1 v for many v: [..., feature, feature], [..., n, feature] -> [..., n]."""
    whitened = torch.linalg.solve_triangular(cholesky, vectors.transpose(-1, -2), upper=False)
    return whitened.square().sum(-2)


def norm_bound_multipliers(eigenvalues: Tensor, rotated: Tensor, bound: float) -> Tensor:
    """The smallest v >= 0 with |(A + v I)^-1 m| <= bound: [task, 1].

    Newton's method on 1/|w| (More and Sorensen 1983), which increases to the root without
    overshooting. Shapes: eigenvalues of A and m in its eigenbasis, both [task, feature].
    """
    multipliers = torch.zeros_like(rotated[:, :1])
    for _ in range(NEWTON_STEPS):
        solution = rotated / (eigenvalues + multipliers)
        squared = solution.square().sum(-1, keepdim=True)
        slope = (solution.square() / (eigenvalues + multipliers)).sum(-1, keepdim=True)
        step = squared / slope.clamp_min(TINY) * (squared.sqrt() / bound - 1)
        multipliers = multipliers + step.clamp_min(0)
    return multipliers

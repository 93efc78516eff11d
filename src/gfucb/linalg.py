"""Batched ridge algebra in float64: Cholesky factors, never an explicit inverse."""

from __future__ import annotations

import torch
from torch import Tensor

# Rows handled at once when outer products [row, feature, feature] are summed: bounds the memory.
GRAM_CHUNK = 4096


def task_sums(rows: Tensor, tasks: Tensor, num_tasks: int) -> Tensor:
    """Sum rows by task: [sample, ...], [sample] -> [task, ...]."""
    return rows.new_zeros(num_tasks, *rows.shape[1:]).index_add(0, tasks, rows)


def task_grams(features: Tensor, tasks: Tensor, num_tasks: int) -> Tensor:
    """Sum of phi phi^T for each task: [sample, feature] -> [task, feature, feature]."""
    feature_dim = features.shape[1]
    grams = features.new_zeros(num_tasks, feature_dim, feature_dim)
    for phi, task in zip(features.split(GRAM_CHUNK), tasks.split(GRAM_CHUNK), strict=True):
        grams = grams.index_add(0, task, phi[:, :, None] * phi[:, None, :])
    return grams


def ridge_cholesky(grams: Tensor, ridge: float) -> Tensor:
    """Lower factor L of gram + ridge I = L L^T: [..., feature, feature]."""
    eye = torch.eye(grams.shape[-1], dtype=grams.dtype, device=grams.device)
    return torch.linalg.cholesky(grams + ridge * eye)


def cholesky_solve(cholesky: Tensor, vectors: Tensor) -> Tensor:
    """Solve (L L^T) x = v: [..., feature, feature], [..., feature] -> [..., feature]."""
    return torch.cholesky_solve(vectors.unsqueeze(-1), cholesky).squeeze(-1)


def inverse_squared_norms(cholesky: Tensor, vectors: Tensor) -> Tensor:
    """v^T (L L^T)^-1 v for many v: [..., feature, feature], [..., n, feature] -> [..., n]."""
    whitened = torch.linalg.solve_triangular(cholesky, vectors.transpose(-1, -2), upper=False)
    return whitened.square().sum(-2)


def norm_bounded_ridge(
    grams: Tensor, moments: Tensor, *, ridge: float, norm_bound: float, iterations: int = 100
) -> Tensor:
    """Minimise w^T (G + ridge I) w - 2 w^T m  subject to  |w| <= norm_bound, for each task.

    The constrained minimiser is the ridge solution for a larger ridge; that multiplier is
    found by bisection on the norm, which falls as the multiplier grows.

    Shapes: grams [task, feature, feature], moments [task, feature] -> [task, feature].
    """
    eigenvalues, basis = torch.linalg.eigh(grams)
    eigenvalues = eigenvalues.clamp_min(0) + ridge
    rotated = (basis.transpose(-1, -2) @ moments.unsqueeze(-1)).squeeze(-1)

    def solution(multiplier: Tensor) -> Tensor:
        return rotated / (eigenvalues + multiplier.unsqueeze(-1))

    low = torch.zeros_like(rotated[:, 0])
    high = rotated.norm(dim=-1) / norm_bound  # at this multiplier the norm is within the bound
    inside = solution(low).norm(dim=-1) <= norm_bound
    for _ in range(iterations):
        middle = (low + high) / 2
        too_long = solution(middle).norm(dim=-1) > norm_bound
        low, high = torch.where(too_long, middle, low), torch.where(too_long, high, middle)
    multiplier = torch.where(inside, torch.zeros_like(high), high)
    return (basis @ solution(multiplier).unsqueeze(-1)).squeeze(-1)

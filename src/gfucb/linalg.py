"""Batched ridge algebra in float64: Cholesky factors, never an explicit inverse."""

from __future__ import annotations

import torch
from torch import Tensor

# Rows handled at once when outer products [row, feature, feature] are summed: bounds the memory.
GRAM_CHUNK = 4096
NEWTON_STEPS = 20
TINY = 1e-300


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


def norm_bounded_minimisers(
    eigenvalues: Tensor, basis: Tensor, moments: Tensor, bound: float
) -> Tensor:
    """Minimise w^T A w - 2 w^T m  subject to  |w| <= bound, for each task.

    Where the bound binds, the minimiser is that of A + v I; the multiplier v is found by
    Newton's method on 1/|w| (More and Sorensen 1983), which rises to it without overshooting.

    Shapes: A = basis diag(eigenvalues) basis^T, [task, feature] and [task, feature, feature];
    moments [task, feature] -> [task, feature].
    """
    rotated = (basis.transpose(-1, -2) @ moments.unsqueeze(-1)).squeeze(-1)
    multiplier = torch.zeros_like(rotated[:, :1])
    for _ in range(NEWTON_STEPS):
        solution = rotated / (eigenvalues + multiplier)
        squared = solution.square().sum(-1, keepdim=True)
        slope = (solution.square() / (eigenvalues + multiplier)).sum(-1, keepdim=True)
        step = squared / slope.clamp_min(TINY) * (squared.sqrt() / bound - 1)
        multiplier = multiplier + step.clamp_min(0)
    return (basis @ (rotated / (eigenvalues + multiplier)).unsqueeze(-1)).squeeze(-1)

"""Errors of ridge regression in closed form: residuals and leave-one-out errors."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gfucb.core.linalg import ridge_cholesky
from gfucb.models import MultitaskDataset, Representation, features_of
from gfucb.models.heads import SMALLEST_LEFT_OUT

ErrorKind = Literal["leave_one_out", "residual"]


def head_errors(
    features: Tensor, targets: Tensor, present: Tensor, *, ridge: float, kind: ErrorKind
) -> Tensor:
    """Errors of the ridge heads of each task and target, in padded batches: [task, slot, target].

    Args:
        features: [task, slot, feature].
        targets: [task, slot, target].
        present: which slots hold a sample, [task, slot].
        ridge: the penalty on heads.
        kind: `residual` on the samples themselves; `leave_one_out` of the heads that are fitted
            without the sample.
    """
    features, targets = without_padding(features, targets, present)
    num_slots, feature_dim = features.shape[1:]
    solve = _residuals_by_kernel if num_slots < feature_dim else _residuals_by_features
    residuals, shares = solve(features, targets, ridge)
    if kind == "residual":
        return residuals
    return residuals / shares.clamp_min(SMALLEST_LEFT_OUT).unsqueeze(-1)


def without_padding(features: Tensor, targets: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """Both [task, slot, ...], zero in slots without a sample."""
    # Products with ones take time, also in the backward pass. To look waits for a GPU.
    if present.device.type == "cpu" and bool(present.all()):
        return features, targets
    return features * present.unsqueeze(-1), targets * present.unsqueeze(-1)


# Neither function below checks its factor, because a check waits for the GPU in every step.
# Non-finite numbers reach the weights, and the fit of the heads refuses them.


def _residuals_by_features(
    features: Tensor, targets: Tensor, ridge: float
) -> tuple[Tensor, Tensor]:
    """Residuals of targets [task, slot, target], and 1 - leverage [task, slot].

    Solves systems of the size of the features [task, slot, feature].
    """
    cholesky = ridge_cholesky(features.mT @ features, ridge, is_checked=False)
    # The columns of L^-1 Phi^T: their squared norms are the leverages, and they give the fit.
    whitened = torch.linalg.solve_triangular(cholesky, features.mT, upper=False)
    return targets - whitened.mT @ (whitened @ targets), 1 - whitened.square().sum(1)


def _residuals_by_kernel(features: Tensor, targets: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """The same by systems of the size of the samples: cheaper with more features than slots.

    ridge (Phi Phi^T + ridge I)^-1 maps targets to residuals, and its diagonal is 1 - leverage.
    """
    cholesky = ridge_cholesky(features @ features.mT, ridge, is_checked=False)
    eye = torch.eye(features.shape[1], dtype=features.dtype, device=features.device)
    whitening = torch.linalg.solve_triangular(cholesky, eye.expand_as(cholesky), upper=False)
    return ridge * whitening.mT @ (whitening @ targets), ridge * whitening.square().sum(1)


def all_targets(data: MultitaskDataset, offset: float) -> Tensor:
    """Targets minus the offset, then the auxiliary targets: [sample, target]."""
    targets = (data.targets - offset).unsqueeze(-1)
    if data.auxiliary_targets is None:
        return targets
    return torch.cat([targets, data.auxiliary_targets], dim=-1)


def held_out_error(
    representation: Representation, data: MultitaskDataset, *, offset: float, ridge: float
) -> float:
    """Mean squared leave-one-out error of the heads, auxiliary targets included."""
    features, targets = features_of(representation, data.inputs), all_targets(data, offset)
    total = 0.0
    for task in data.tasks.unique():
        own = (data.tasks == task).nonzero().squeeze(1)
        present = torch.ones(1, len(own), dtype=torch.bool, device=own.device)
        errors = head_errors(
            features[own][None], targets[own][None], present, ridge=ridge, kind="leave_one_out"
        )
        total += float(errors.square().sum())
    return total / max(1, len(data))

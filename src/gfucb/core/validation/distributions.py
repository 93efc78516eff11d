"""Validation of probabilities of actions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.arrays import to_tensor

# Probabilities are often stored in single precision.
ROUNDING = 1e-5


def validate_distribution(values: Any, available: Tensor, name: str) -> Tensor:
    """Probabilities of all actions [row, action] in float64: of available ones, with the sum 1."""
    given, shape = to_tensor(values, name).cpu(), tuple(available.shape)
    if given.is_complex() or tuple(given.shape) != shape:
        raise InvalidInputError(
            f"{name} must have the shape [row, action] = {list(shape)}, got {list(given.shape)}"
        )
    given = given.to(torch.float64)
    is_valid = (given >= 0) & (given <= 1 + ROUNDING)  # not true of NaN
    if not bool(is_valid.all()):
        row, action = (~is_valid).nonzero()[0].tolist()
        raise InvalidInputError(
            f"{name} must be between 0 and 1, got {float(given[row, action]):g} for action "
            f"{action} in row {row}"
        )
    is_wrong = (given > 0) & ~available.cpu()
    if bool(is_wrong.any()):
        row, action = is_wrong.nonzero()[0].tolist()
        raise InvalidInputError(
            f"{name} must be 0 for actions that are not available, got "
            f"{float(given[row, action]):g} for action {action} in row {row}; mask such "
            "actions and divide by the sum of the others"
        )
    is_off = (given.sum(1) - 1).abs() > ROUNDING * shape[1]
    if bool(is_off.any()):
        row = int(is_off.nonzero()[0])
        raise InvalidInputError(
            f"{name} must sum to 1 in every row, got {float(given[row].sum()):g} in row {row}"
        )
    return given / given.sum(1, keepdim=True)

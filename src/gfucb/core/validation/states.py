"""Validation of saved states: names, shapes, types and ranges, before anything is changed."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import LARGEST_COMPUTED


def validate_state(state: Any) -> None:
    """Refuse what is no mapping; an empty one is the state of an agent without data."""
    if not isinstance(state, Mapping):
        raise InvalidInputError(
            f"a state is a dictionary of named tensors, got {type(state).__name__}"
        )
    for name in state:
        if not isinstance(name, str):
            raise InvalidInputError(f"the names of a state must be texts, got {name!r}")


def validate_state_names(
    state: Any, required: Collection[str], optional_prefixes: Sequence[str] = ()
) -> None:
    """Check that a state is a mapping of tensors with exactly the `required` names.

    Names that start with one of `optional_prefixes` are allowed besides.
    """
    validate_state(state)
    for name in state:
        if name not in required and not name.startswith(tuple(optional_prefixes)):
            raise InvalidInputError(f"the state has an unexpected tensor {name!r}")
    for name in [*required, *state]:
        _tensor_named(name, state)


def validate_state_tensor(
    state: Mapping[str, Tensor],
    name: str,
    shape: Sequence[int | None],
    *,
    dtype: torch.dtype | None = None,
    low: float = -math.inf,
    high: float = math.inf,
    is_finite: bool = True,
) -> Tensor:
    """The tensor `name` of a state, checked.

    Args:
        state: all tensors by name.
        name: the one to check.
        shape: the length of each axis; None where any length will do.
        dtype: the type it must have; None for any real type.
        low: the least number it may hold.
        high: the largest number it may hold.
        is_finite: whether infinity is refused. NaN always is.
    """
    tensor = _tensor_named(name, state)
    if tensor.is_complex() or (dtype is not None and tensor.dtype != dtype):
        raise InvalidInputError(
            f"{name!r} of the state must be {dtype or 'real numbers'}, got {tensor.dtype}"
        )
    fits = tensor.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, tensor.shape, strict=True)
    )
    if not fits:
        expected = ["any" if length is None else length for length in shape]
        raise InvalidInputError(
            f"{name!r} of the state must have the shape {expected}, got {list(tensor.shape)}"
        )
    _require_numbers(tensor, name, low, high, is_finite)
    return tensor


def validate_state_like(state: Mapping[str, Tensor], example: Mapping[str, Tensor]) -> None:
    """Check that a state has the names, types and shapes of an example, and no huge numbers."""
    validate_state_names(state, list(example))
    largest = LARGEST_COMPUTED
    for name, tensor in example.items():
        validate_state_tensor(
            state, name, tensor.shape, dtype=tensor.dtype, low=-largest, high=largest
        )


def _tensor_named(name: str, state: Mapping[str, Tensor]) -> Tensor:
    if name not in state:
        raise InvalidInputError(f"the state has no tensor {name!r}")
    if not isinstance(state[name], Tensor):
        raise InvalidInputError(
            f"{name!r} of the state must be a tensor, got {type(state[name]).__name__}"
        )
    if state[name].is_nested or state[name].layout != torch.strided:
        raise InvalidInputError(f"{name!r} of the state must be a dense tensor")
    return state[name]


def _require_numbers(tensor: Tensor, name: str, low: float, high: float, is_finite: bool) -> None:
    if tensor.is_floating_point():
        bad = ~tensor.isfinite() if is_finite else tensor.isnan()
        if bool(bad.any()):
            found = float(tensor[bad][0])
            raise InvalidInputError(f"{name!r} of the state must be finite, got {found}")
    if tensor.numel() == 0 or (low == -math.inf and high == math.inf):
        return
    least, largest = float(tensor.min()), float(tensor.max())
    if least < low or largest > high:
        raise InvalidInputError(
            f"{name!r} of the state must lie between {low:g} and {high:g}, got numbers from "
            f"{least:g} to {largest:g}"
        )

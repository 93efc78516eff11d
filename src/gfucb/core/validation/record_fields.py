"""Validation of records at construction: types and shapes, at a cost of about a microsecond.

Records are built in every decision, so numbers in tensors are not checked here.
"""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from gfucb.core.errors import InvalidInputError


def require_floats(value: Any, name: str, *axes: str) -> None:
    """Refuse what is not a tensor of floats with one axis for each name."""
    if isinstance(value, Tensor) and value.ndim == len(axes) and value.is_floating_point():
        return
    found = type(value).__name__
    if isinstance(value, Tensor):
        found = f"{value.dtype} of shape {list(value.shape)}"
    raise InvalidInputError(f"{name} must be floats of shape [{', '.join(axes)}], got {found}")


def require_type(value: Any, name: str, kind: type) -> None:
    """Refuse what is not of type `kind`."""
    if not isinstance(value, kind):
        raise InvalidInputError(f"{name} must be a {kind.__name__}, got {type(value).__name__}")


def require_not_negative(value: Any, name: str) -> None:
    """Refuse what is not a finite number of at least 0."""
    if not (_is_number(value) and 0 <= value < math.inf):
        raise InvalidInputError(f"{name} must be finite and not negative, got {value!r}")


def require_bound(value: Any, name: str) -> None:
    """Refuse what is neither None nor a number above 0."""
    if value is not None and not (_is_number(value) and value > 0):
        raise InvalidInputError(f"{name} must be None or a number above 0, got {value!r}")


def _is_number(value: Any) -> bool:
    # A float in almost all calls; the test of its exact type is the fastest one.
    return type(value) is float or (isinstance(value, int | float) and not isinstance(value, bool))

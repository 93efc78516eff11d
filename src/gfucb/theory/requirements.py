"""Refusals of impossible numbers, each in a sentence that names the number."""

from __future__ import annotations

import math

from gfucb.errors import InvalidInputError


def require_positive(**values: float) -> None:
    """All values are finite and above zero."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise InvalidInputError(f"{name} must be positive and finite, got {value}")


def require_not_negative(**values: float) -> None:
    """All values are finite and at least zero."""
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise InvalidInputError(f"{name} must be finite and not negative, got {value}")


def require_probability(**values: float) -> None:
    """All values lie strictly between 0 and 1."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise InvalidInputError(f"{name} must lie strictly between 0 and 1, got {value}")

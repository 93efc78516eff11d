"""Refusals of impossible numbers, each in a sentence that names the number."""

from __future__ import annotations

import math

from gfucb.core.errors import InvalidInputError


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


def require_round(round_index: float) -> None:
    """Rounds are counted from 1."""
    if not (math.isfinite(round_index) and round_index >= 1):
        raise InvalidInputError(f"rounds are counted from 1, got round {round_index}")


def require_counts(**values: float) -> None:
    """All values are whole numbers of at least 1."""
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 1 and value == int(value)):
            raise InvalidInputError(f"{name} must be a whole number of at least 1, got {value}")

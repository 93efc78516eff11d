"""Checks of several numbers at once; the names of the arguments appear in the messages."""

from __future__ import annotations

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import validate_count, validate_not_negative, validate_number


def require_positive(**values: float) -> None:
    """Refuse values that are not finite and above zero."""
    for name, value in values.items():
        validate_number(value, name, above=0.0)


def require_not_negative(**values: float) -> None:
    """Refuse values that are not finite and at least zero."""
    for name, value in values.items():
        validate_not_negative(value, name)


def require_counts(**values: int) -> None:
    """Refuse values that are not integers of at least 1."""
    for name, value in values.items():
        validate_count(value, name)


def require_probability(**values: float) -> None:
    """Refuse values that do not lie strictly between 0 and 1."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise InvalidInputError(f"{name} must lie strictly between 0 and 1, got {value}")


def require_round(round_index: int) -> None:
    """Refuse a round below 1: rounds are counted from 1."""
    validate_number(round_index, "the round, counted from 1,", at_least=1.0)

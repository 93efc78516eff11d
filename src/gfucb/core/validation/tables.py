"""Checks of the tables of finite MDPs: shapes, finiteness, probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError

Array = NDArray[np.float64]

# How far a sum of probabilities may be from one: a few roundings of a long sum.
PROBABILITY_TOLERANCE = 1e-9


def validate_table(table: Array, name: str, axes: str) -> None:
    """Refuse a table that is not a finite numpy array with one axis per word of `axes`."""
    if not isinstance(table, np.ndarray) or table.ndim != len(axes.split()) or table.size == 0:
        raise InvalidInputError(
            f"{name} must be a non-empty numpy array with the axes [{axes}], "
            f"got {getattr(table, 'shape', type(table).__name__)}"
        )
    if table.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} must be real numbers, got {table.dtype}")
    if not np.isfinite(table).all():
        raise InvalidInputError(f"{name} must be finite, but some values are NaN or infinite")


def validate_probabilities(rows: Array, name: str) -> None:
    """Refuse rows (last axis) that are not probability distributions."""
    if rows.min() < 0:
        raise InvalidInputError(f"{name} must not be negative, but the smallest is {rows.min()}")
    worst = float(np.abs(rows.sum(axis=-1) - 1).max())
    if not worst <= PROBABILITY_TOLERANCE:  # NaN is refused too
        raise InvalidInputError(
            f"every row of {name} must be probabilities that sum to 1, one is off by {worst:.3g}"
        )

"""Finite classes of functions as float64 tables of values [function, input]."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.theory.requirements import require_positive

Floats: TypeAlias = npt.NDArray[np.float64]
# Sums of squares of larger numbers overflow.
LARGEST_VALUE = 1e100
# Types accepted as a table of values.
Table: TypeAlias = Tensor | Floats | list[list[float]] | list[float]


def finite_table(values: Table, *axes: str) -> Floats:
    """`values` as float64 with the named axes; refuses other shapes, empty classes and NaN."""
    named = f"[{', '.join(axes)}]"
    try:
        table = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
        if np.iscomplexobj(table):
            raise TypeError("complex numbers")
        table = table.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"values {named} must be real numbers: {error}") from error
    if table.size == 0:
        raise InvalidInputError(
            f"values {named} are empty: there must be at least one {' and one '.join(axes)}, "
            f"got shape {list(table.shape)}"
        )
    if table.ndim != len(axes):
        raise InvalidInputError(f"values must be a table {named}, got shape {list(table.shape)}")
    if not np.isfinite(table).all():
        raise InvalidInputError(f"values {named} must be finite, got NaN or infinity")
    if float(np.abs(table).max()) > LARGEST_VALUE:
        raise InvalidInputError(
            f"values {named} reach {np.abs(table).max():.3g}, whose squares cannot be summed; "
            "rescale them together with the scale"
        )
    return table


def values_and_scale(values: Table, scale: float) -> Floats:
    """The table [function, input] of a class; refuses a scale that is not positive."""
    require_positive(scale=scale)
    return finite_table(values, "function", "input")

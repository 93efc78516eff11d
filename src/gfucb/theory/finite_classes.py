"""Finite classes as the theory sees them: a float64 table of values [function, input]."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

from gfucb.errors import InvalidInputError
from gfucb.theory.requirements import require_positive

Floats: TypeAlias = npt.NDArray[np.float64]
# What callers may pass for a table of values.
Table: TypeAlias = Tensor | Floats | list[list[float]]


def finite_table(values: Table, *axes: str) -> Floats:
    """`values` as float64 with the named axes; refuses other shapes, empty classes and NaN."""
    table = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    table = table.astype(np.float64)
    named = f"[{', '.join(axes)}]"
    if table.ndim != len(axes):
        raise InvalidInputError(f"a class is a table {named}, got shape {list(table.shape)}")
    if 0 in table.shape:
        raise InvalidInputError(
            f"a class needs at least one {', one '.join(axes)}, got shape {list(table.shape)}"
        )
    if not np.isfinite(table).all():
        raise InvalidInputError(f"values {named} must be finite, got NaN or infinity")
    return table


def values_and_scale(values: Table, scale: float) -> Floats:
    """The table [function, input] of a class to be looked at on a positive scale."""
    require_positive(scale=scale)
    return finite_table(values, "function", "input")

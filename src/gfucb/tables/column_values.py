"""What all kinds of columns use: numbers and texts of a column, and messages that name it."""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.arrays import LARGEST_INPUT
from gfucb.tables.raw_columns import RawColumn

Array = NDArray[np.float64]

# A spread below this share of the largest magnitude is rounding.
CONSTANT_SPREAD = 1e-12
# What to do about values of another kind than a schema states.
OTHER_KIND = "make a schema in which the column is of another kind"
# Two digits or one after the last comma, as in 1.256,33 €; in 1,256 it divides thousands.
DECIMAL_COMMA = re.compile(r",\d{1,2}\D*$")


def numbers_of(
    column: RawColumn, expected: str, values: str = "numbers", cure: str = OTHER_KIND
) -> Array:
    """The values of a column as float64 [row] of at most 1e15; missing ones are NaN.

    Messages say that the column is of the kind `expected` and must hold `values`, and the `cure`.
    """
    parsed = column.parsed()
    if parsed.kind not in ("number", "boolean", "empty"):
        texts = column.texts() if column.kind == "text" else []
        rows = [row for row, text in enumerate(texts) if text is not None and not _is_number(text)]
        present = np.flatnonzero(~column.missing)
        refuse(column, expected, rows[0] if rows else int(present[0]), values, cure)
    numbers = np.where(column.missing, np.nan, parsed.values.astype(np.float64))
    wrong = np.flatnonzero(~column.missing & ~(np.abs(numbers) <= LARGEST_INPUT))
    if len(wrong):
        refuse(column, expected, int(wrong[0]), f"numbers of at most {LARGEST_INPUT:g}", cure)
    return numbers


def rewards_of(column: RawColumn) -> Array:
    """The rewards [row], NaN where they are missing; refuse text such as "$256.33"."""
    cure = "convert the column to numbers before"
    if column.parsed().kind == "text":
        texts = [text for text in column.texts() if text is not None]
        cure += f", for example {_as_numbers(f'table[{column.name!r}]', texts)}.astype(float)"
    return numbers_of(column, "reward", cure=cure)


def _as_numbers(table: str, texts: list[str]) -> str:
    """How pandas reads amounts, and names of two results."""
    if any(DECIMAL_COMMA.search(text) for text in texts):
        return f"{table}.str.replace('[^0-9,-]', '', regex=True).str.replace(',', '.')"
    if any(character.isdigit() for text in texts for character in text):
        return f"{table}.str.replace('[^0-9.-]', '', regex=True)"
    return f"({table} == {texts[0]!r:.40})"


def refuse(
    column: RawColumn, kind: str, row: int, expected: str, cure: str = OTHER_KIND
) -> NoReturn:
    """Say what a column holds in a row, what was expected, and what to do."""
    shown = f"{column.values[row]!s:.40}" if len(column) else "no rows"
    raise InvalidInputError(
        f"the column {column.name!r} is a {kind} and must hold {expected}, got {column.kind} "
        f"({shown}) in row {row}; correct the value, or {cure}"
    )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def texts_of(column: RawColumn) -> list[str | None]:
    """The values of a column as text, None where they are missing."""
    if column.kind == "vector":
        refuse(column, "category", 0, "single values")
    return column.texts()


def mean_and_spread(values: Array) -> tuple[float, float]:
    """Mean and standard deviation, whatever the order of the values; 1 for constant values."""
    if len(values) == 0:
        return 0.0, 1.0
    center = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((values - center) ** 2) / len(values))
    is_constant = spread <= CONSTANT_SPREAD * float(np.abs(values).max())
    return center, 1.0 if is_constant else spread


def validate_missing(missing: Any) -> None:
    """Refuse a field `missing` that is no boolean and not None."""
    if missing is not None and not isinstance(missing, bool):
        raise InvalidInputError(f"missing must be True, False or None, got {missing!r}")


def fitted_missing(missing: bool | None, column: RawColumn) -> bool:
    """Whether a column needs a feature for missing values, if the user does not say."""
    return bool(column.missing.any()) if missing is None else missing

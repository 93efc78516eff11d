"""One column of a table as an array of one kind, with its missing values."""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError

Kind: TypeAlias = Literal["number", "boolean", "text", "date", "vector", "empty"]
Label: TypeAlias = str | int | float | bool
"""A name of a task, an action or an item."""

# Texts that are booleans, as other programs write them.
BOOLEAN_TEXTS = {"true": True, "false": False}
DATE_TYPE = "datetime64[us]"
# Larger integers, such as ids of 64 bits, are rounded as floats: two of them may become one.
LARGEST_EXACT = 2**53


@dataclass(frozen=True, eq=False)
class RawColumn:
    """The values of a column, all of one kind.

    Attributes:
        name: of the column, for messages.
        kind: of the values; "empty" if all of them are missing.
        values: [row], where missing any value; of vectors [row, component].
        missing: which values are missing, [row].
        integers: integers that `values` have rounded, by row: as names they are exact.
        is_category: whether its data frame says that the values are categories, also if numbers.
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    missing: NDArray[np.bool_]
    integers: Mapping[int, int] = field(default_factory=dict)
    is_category: bool = False

    def __len__(self) -> int:
        return len(self.missing)

    @property
    def present(self) -> NDArray[Any]:
        """The values that are not missing."""
        return self.values[~self.missing]

    def labels(self) -> list[Label | None]:
        """The values as names; numbers without a fraction are integers, missing ones None."""
        values = self.values.astype("datetime64[s]") if self.kind == "date" else self.values
        values = values.astype(str) if self.kind == "date" else values
        found = [
            None if is_missing else _label(value)
            for value, is_missing in zip(values.tolist(), self.missing.tolist(), strict=True)
        ]
        for row, integer in self.integers.items():
            found[row] = integer
        return found

    def texts(self) -> list[str | None]:
        """The labels as text: 3, 3.0 and "3" are one category, true and "True" another."""
        return [None if label is None else text_of(label) for label in self.labels()]

    def parsed(self) -> RawColumn:
        """Text as numbers, booleans or ISO dates, if every value is one; otherwise the same."""
        if self.kind != "text":
            return self
        texts = self.present.tolist()
        readers: tuple[Callable[[str], Any], ...] = (_read_boolean, _read_number, _read_date)
        for read in readers:
            try:
                found = [read(text) for text in texts]
            except ValueError:
                continue
            values: list[Any] = [None] * len(self)
            for row, value in zip(np.flatnonzero(~self.missing), found, strict=True):
                values[row] = value
            return column_of_values(self.name, values)
        return self


def text_of(label: Label) -> str:
    """The text that identifies a name, whatever type another program has given it."""
    text = str(label)
    is_true = BOOLEAN_TEXTS.get(text.lower())
    return text if is_true is None else str(is_true)


def column_of_array(name: str, array: NDArray[Any]) -> RawColumn:
    """The column of an array [row]; arrays of objects are read value by value."""
    if array.ndim != 1:
        raise InvalidInputError(
            f"the column {name!r} must have one value for each row, got the shape "
            f"{list(array.shape)}"
        )
    kind = array.dtype.kind
    if kind == "b":
        return RawColumn(name, "boolean", array.copy(), np.zeros(len(array), dtype=bool))
    if kind in "iuf":
        found = _of_kind(name, "number", array.astype(np.float64), np.isnan(array))
        is_rounded = kind != "f" and bool((np.abs(found.values) >= LARGEST_EXACT).any())
        return replace(found, integers=_large(array.tolist())) if is_rounded else found
    if kind == "M":
        return _of_kind(name, "date", array.astype(DATE_TYPE), np.isnat(array))
    if kind == "m":
        missing = np.isnat(array)
        seconds = np.where(missing, np.nan, array / np.timedelta64(1, "s"))
        return _of_kind(name, "number", seconds, missing)
    return column_of_values(name, array.tolist())


def column_of_values(name: str, values: Sequence[Any]) -> RawColumn:
    """The column of Python values, which must be of one kind; numbers and booleans may mix."""
    found = [_classify(name, row, value) for row, value in enumerate(values)]
    missing = np.array([kind is None for kind, _ in found], dtype=bool)
    rows_by_kind = {kind: row for row, (kind, _) in reversed(list(enumerate(found)))}
    kinds: set[Kind] = {kind for kind in rows_by_kind if kind is not None}
    if kinds == {"number", "boolean"}:
        kinds = {"number"}
    if len(kinds) > 1:
        shown = " and ".join(
            f"{kind} (row {row}: {values[row]!r:.40})"
            for kind, row in sorted(rows_by_kind.items(), key=lambda pair: pair[1])
            if kind is not None
        )
        raise InvalidInputError(
            f"the column {name!r} mixes {shown}; convert it to one type, "
            "for example all of it to text"
        )
    kind: Kind = kinds.pop() if kinds else "empty"
    filled = _filled(name, kind, [value for _, value in found])
    column = _of_kind(name, kind, filled, missing)
    return replace(column, integers=_large(values)) if kind == "number" else column


def _large(values: Sequence[Any]) -> dict[int, int]:
    """The integers among numbers that floats may round, by row."""
    integers = {row: int(value) for row, value in enumerate(values) if _is_integer(value)}
    return {row: value for row, value in integers.items() if abs(value) >= LARGEST_EXACT}


def _is_integer(value: Any) -> bool:
    """Whether a value is an integer; databases also return ids as decimals."""
    if isinstance(value, decimal.Decimal):
        # Not the ratio of all decimals: that of one with a large exponent fills the memory.
        return LARGEST_EXACT <= abs(float(value)) < math.inf and value.as_integer_ratio()[1] == 1
    return isinstance(value, numbers.Integral) and not isinstance(value, np.timedelta64)


def _filled(name: str, kind: Kind, values: list[Any]) -> NDArray[Any]:
    """Values [row] as an array of their kind, with some value where they are missing."""
    fill: dict[str, Any] = {"number": math.nan, "boolean": False, "text": "", "empty": math.nan}
    if kind == "date":
        return np.array([np.datetime64("NaT") if v is None else v for v in values], DATE_TYPE)
    if kind == "vector":
        sizes = {len(value) for value in values if value is not None}
        if len(sizes) > 1:
            raise InvalidInputError(
                f"the vectors of the column {name!r} must have one length, got {sorted(sizes)}"
            )
        size = sizes.pop()
        return np.stack([np.zeros(size) if value is None else value for value in values])
    types: dict[str, Any] = {"boolean": np.bool_, "text": object}
    filled = [fill[kind] if value is None else value for value in values]
    return np.array(filled, dtype=types.get(kind, np.float64))


def _of_kind(name: str, kind: Kind, values: NDArray[Any], missing: NDArray[np.bool_]) -> RawColumn:
    return RawColumn(name, "empty" if missing.all() else kind, values, missing)


def _classify(name: str, row: int, value: Any) -> tuple[Kind | None, Any]:
    """The kind of a value, and the value as that kind; None for missing values."""
    if hasattr(value, "detach"):  # a torch tensor
        value = value.detach().cpu().numpy()
    if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0:
        kind = np.asarray(value).dtype.kind
        if kind in "Mm" and np.isnat(value):
            return None, None
        if kind == "M":
            return "date", np.asarray(value).astype(DATE_TYPE)
        value = np.asarray(value) / np.timedelta64(1, "s") if kind == "m" else value
        value = value.item()
    if _is_missing(value):
        return None, None
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, numbers.Real | decimal.Decimal):
        try:
            number = float(value)
        except (OverflowError, ValueError):
            raise InvalidInputError(
                f"the column {name!r} holds a number that is no float in row {row}: {value!r:.40}"
            ) from None
        return (None, None) if math.isnan(number) else ("number", number)
    if isinstance(value, str):
        return "text", value.strip()
    if isinstance(value, datetime.datetime):
        return "date", value.replace(tzinfo=None)  # parts of the local time
    if isinstance(value, datetime.date):
        return "date", datetime.datetime(value.year, value.month, value.day)
    if isinstance(value, datetime.timedelta):
        return "number", value.total_seconds()
    if isinstance(value, list | tuple | np.ndarray):
        return "vector", _vector(name, row, value)
    raise InvalidInputError(
        f"the column {name!r} holds a value of the type {type(value).__name__} in row {row}; "
        "convert it to numbers, text, booleans, dates or vectors, or leave the column out"
    )


def _vector(name: str, row: int, value: Any) -> NDArray[np.float64]:
    try:
        vector = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.zeros(())
    if vector.ndim != 1 or len(vector) == 0 or not np.isfinite(vector).all():
        raise InvalidInputError(
            f"the column {name!r} holds a list in row {row} that is no vector of finite numbers"
        )
    return vector


def _is_missing(value: Any) -> bool:
    if value is None or value is np.ma.masked or (isinstance(value, str) and not value.strip()):
        return True
    if isinstance(value, float):
        return math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType")  # of pandas


def _label(value: Any) -> Label:
    is_integer = isinstance(value, float) and value.is_integer()
    return int(value) if is_integer else value


def _read_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or re.match(r"[+-]?0\d", text):  # codes such as 007 stay text
        raise ValueError(text)
    return number


def _read_date(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _read_boolean(text: str) -> bool:
    found = BOOLEAN_TEXTS.get(text.lower())
    if found is None:
        raise ValueError(text)
    return found

"""Names of tasks and actions: what is accepted, and how it is stored exactly."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias, cast

import numpy as np
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.serving.name_types import NameType, name_type_of, name_type_of_kind

Name: TypeAlias = Hashable
"""A name: text, a number, a date, a UUID, None, a tuple or a frozen set of names, or an object of a
registered type, see `register_name_type`."""

# Longer names are data, not names.
LONGEST_NAME = 1000


def encode_name(name: Any, what: str = "task") -> str:
    """The name as JSON. Equal names have equal texts; 1, "1" and True are different names.

    >>> encode_name(("north", 7))
    '["north", 7]'
    >>> import datetime
    >>> encode_name(datetime.date(2026, 3, 1))
    '{"date": "2026-03-01"}'
    """
    try:
        text = json.dumps(_plain(name, what))
    except InvalidInputError:
        raise
    except (ValueError, RecursionError) as error:  # surrogates, huge integers, deep tuples
        raise InvalidInputError(
            f"the name of {_one(what)} cannot be stored, or is too long: {error}"
        ) from None
    if len(text) > LONGEST_NAME:
        raise InvalidInputError(
            f"the name of {_one(what)} must have at most {LONGEST_NAME} characters as JSON, "
            f"got {len(text)}"
        )
    return text


def decode_name(text: str) -> Name:
    """The name that `encode_name` encoded, or one that is equal to it."""
    found: Name = _decoded(json.loads(text))
    return found


def _plain(name: Any, what: str) -> Any:
    """The name in the types of JSON: tuples become lists, and other types {kind: value}."""
    if isinstance(name, np.generic):
        if name != name:  # NaN and NaT; as an item NaT would be None
            raise InvalidInputError(f"the name of {_one(what)} is {name}: a name is missing")
        # Moments of numpy have units; nanoseconds would become an integer.
        name = (name.astype("datetime64[us]") if isinstance(name, np.datetime64) else name).item()
    if name is None or isinstance(name, bool):
        return name
    if isinstance(name, int | float | Decimal):
        return _plain_number(name, what)
    if isinstance(name, str):
        name.encode()  # half a character, a surrogate, could not be written to a file
        return str.__str__(name)
    if isinstance(name, tuple):
        return [_plain(part, what) for part in name]
    found = name_type_of(name)
    if type(name).__name__ in ("NAType", "NaTType"):  # of pandas, which need not be installed
        raise InvalidInputError(f"the name of {_one(what)} is {name}: a name is missing")
    if found is None or name != name:
        raise InvalidInputError(
            f"the name of {_one(what)} must be text, a number, a date, a UUID, a tuple of these, "
            f"or an object of a registered type, got {name!r} of type {type(name).__name__}; "
            "convert it, for example with str(), or see gfucb.serving.register_name_type"
        )
    value = _plain(found.encode(name), what)
    return {found.kind: sorted(value, key=json.dumps) if found.type is frozenset else value}


def _one(what: str) -> str:
    return f"an {what}" if what[0] in "aeio" else f"a {what}"


def _plain_number(number: int | float | Decimal, what: str) -> Any:
    """Equal numbers are one name: 3.0 is 3, as in columns of integers with gaps."""
    if number.is_nan() if isinstance(number, Decimal) else number != number:
        raise InvalidInputError(f"the name of {_one(what)} is {number}: a name is missing")
    if isinstance(number, Decimal) and number.is_finite():
        decimal = cast(NameType, name_type_of(number))
        text = decimal.encode(number)  # first: it refuses numbers of too many digits
        if number.as_integer_ratio()[1] == 1:
            return int(number)
        return float(number) if Decimal(float(number)) == number else {decimal.kind: text}
    is_whole = isinstance(number, int) or float(number).is_integer()
    return int(number) if is_whole else float(number)


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(part) for part in value)
    if isinstance(value, dict):
        ((kind, content),) = value.items()
        return name_type_of_kind(kind).decode(_decoded(content))
    return value


def name_list(names: Any, what: str = "task") -> list[Any]:
    """A list, array or column of names as a list. One name alone is refused, a tuple too."""
    if isinstance(names, Tensor | np.ndarray):
        if names.ndim != 1:
            raise InvalidInputError(
                f"{what}s must be a list of names, one for each row, got an array of "
                f"shape {list(names.shape)}"
            )
        # Moments of numpy are kept as they are: as a list they would be integers.
        return list(
            names if isinstance(names, np.ndarray) and names.dtype.kind == "M" else names.tolist()
        )
    if isinstance(names, str | bytes | tuple | int | Mapping):
        raise InvalidInputError(
            f"{what}s must be a list of names, one for each row, got {names!r:.80}; "
            + (
                f"a tuple is one name: pass list({what}s), or a list with the tuple"
                if isinstance(names, tuple)
                else "for one row pass a list with one name"
            )
        )
    if isinstance(names, set | frozenset):
        raise InvalidInputError(f"{what}s must be a list of names: a set has no order")
    try:
        return list(names)
    except TypeError:
        raise InvalidInputError(f"{what}s must be a list of names, got {names!r}") from None


class NameTable:
    """Encoded names and their numbers, in the order they were added. Numbers are never reused."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, text: str) -> bool:
        return text in self._numbers

    def texts(self) -> list[str]:
        """All encoded names, by number."""
        return list(self._numbers)

    def add(self, texts: Iterable[str]) -> None:
        """Give the next numbers to names that have none."""
        for text in texts:
            self._numbers.setdefault(text, len(self._numbers))

    def numbers(self, texts: Iterable[str], new: Sequence[str]) -> list[int]:
        """The number of each name, where those in `new` would get the next numbers."""
        added = {text: len(self) + index for index, text in enumerate(new)}
        return [added[text] if text in added else self._numbers[text] for text in texts]

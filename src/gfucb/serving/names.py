"""Names of tasks and actions: what is accepted, and how it is stored exactly."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor

from gfucb.core.errors import InvalidInputError

Name: TypeAlias = str | int | bool | tuple["Name", ...]
"""A name that is stored exactly: text, an integer, True, False, or a tuple of names."""

# Longer names are data, not names.
LONGEST_NAME = 1000


def encode_name(name: Any, what: str = "task") -> str:
    """The name as JSON. Names that are different objects are different texts: 1, "1" and True.

    >>> encode_name(("north", 7))
    '["north", 7]'
    """
    try:
        text = json.dumps(_plain(name, what))
    except InvalidInputError:
        raise
    except (ValueError, RecursionError) as error:  # integers of thousands of digits, deep tuples
        raise InvalidInputError(f"the name of a {what} is too long to be stored: {error}") from None
    if len(text) > LONGEST_NAME:
        raise InvalidInputError(
            f"the name of a {what} must have at most {LONGEST_NAME} characters as JSON, "
            f"got {len(text)}"
        )
    return text


def decode_name(text: str) -> Name:
    """The name that `encode_name` encoded."""
    return _tuples(json.loads(text))


def _plain(name: Any, what: str) -> Any:
    """The name in the types of JSON; tuples become lists."""
    if isinstance(name, bool | np.bool_):
        return bool(name)
    if isinstance(name, int | np.integer):
        return int(name)
    if isinstance(name, str):
        return str.__str__(name)
    if isinstance(name, tuple):
        return [_plain(part, what) for part in name]
    raise InvalidInputError(
        f"the name of a {what} must be text, an integer, a boolean or a tuple of these, "
        f"got {name!r} of type {type(name).__name__}; convert it, for example with str()"
    )


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value


def name_list(names: Any, what: str = "task") -> list[Any]:
    """A list, array or column of names as a list. One name alone is refused, a tuple too."""
    if isinstance(names, Tensor | np.ndarray):
        if names.ndim != 1:
            raise InvalidInputError(
                f"{what}s must be a list of names, one for each row, got an array of "
                f"shape {list(names.shape)}"
            )
        return list(names.tolist())
    if isinstance(names, str | bytes | tuple | int | Mapping):
        raise InvalidInputError(
            f"{what}s must be a list of names, one for each row, got {names!r}; "
            "for one row pass a list with one name"
        )
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

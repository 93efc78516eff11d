"""The errors this library raises on purpose; each message says what was expected and what came."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

Entry = TypeVar("Entry")


class GFUCBError(Exception):
    """Any error this library raises on purpose."""


class InvalidInputError(GFUCBError, ValueError):
    """A value at the door is unusable; nothing was changed."""


class UnknownNameError(GFUCBError, KeyError):
    """A preset, agent or option is not known; the message lists the known ones."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument, which would quote our sentence.
        return str(self.args[0])


class DataFileError(GFUCBError, OSError):
    """A data file is missing, torn or not what it claims to be."""


class SavedStateError(GFUCBError, OSError):
    """A saved agent or checkpoint is missing, torn or belongs to something else."""


class RunDirectoryError(GFUCBError, OSError):
    """A run directory is in the way, or does not hold what was asked for."""


class TooManyTuplesError(GFUCBError, ValueError):
    """Enumeration was asked for more action tuples than it accepts."""


def lookup(table: Mapping[str, Entry], name: str, what: str) -> Entry:
    """Return `table[name]`, or raise an error that lists the known names."""
    if name not in table:
        known = ", ".join(sorted(table))
        raise UnknownNameError(f"unknown {what} {name!r}; the known ones are: {known}")
    return table[name]


def ordered_pair(given: Any, name: str) -> tuple[float, float]:
    """A pair low < high of finite numbers, or an error that says what came instead."""
    try:
        low, high = (float(value) for value in given)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} must be (low, high), got {given!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInputError(
            f"{name} must be (low, high) with low < high, both finite, got ({low:g}, {high:g})"
        )
    return low, high

"""The errors of this library. Each message says what was expected, what was given, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

Value = TypeVar("Value")
# Names at least this alike, by `difflib`, may be misspellings of each other.
SIMILAR = 0.7


class GFUCBError(Exception):
    """Any error this library raises on purpose."""


class GFUCBWarning(UserWarning):
    """Any warning this library gives: something works, but probably not as intended."""


class InvalidInputError(GFUCBError, ValueError):
    """An argument cannot be used; nothing was changed."""


class UnknownNameError(GFUCBError, KeyError):
    """A preset, agent or option is not known; the message lists those that are."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument, which would quote our sentence.
        return str(self.args[0])


class DataFileError(GFUCBError, OSError):
    """A data file is missing, damaged or of another format."""


class SavedStateError(GFUCBError, OSError):
    """A saved agent is missing, damaged, or was built with other settings."""


class DecisionLogError(GFUCBError, OSError):
    """A decision log is damaged, in use by another process, or belongs to another agent."""


class RefitError(GFUCBError, RuntimeError):
    """A fit in the background has failed; the error that made it fail is the cause."""


class RunDirectoryError(GFUCBError, OSError):
    """A run directory exists already, is in use, or does not hold the run that was requested."""


class FailedJobsError(GFUCBError, RuntimeError):
    """Some jobs of a sweep failed; the others are finished, and the message names an error."""


class NotEnoughMemoryError(GFUCBError, MemoryError):
    """The tensors of an agent do not fit into memory; the message says what to do."""


class TooManyTuplesError(GFUCBError, ValueError):
    """There are more action tuples than enumeration accepts."""


def lookup(table: Mapping[str, Value], name: str, what: str) -> Value:
    """Return `table[name]`, or raise an error that lists the known names; `what` they name."""
    if name not in table:
        known = ", ".join(sorted(table))
        close = get_close_matches(str(name), table, n=1, cutoff=SIMILAR)
        meant = f", perhaps {close[0]!r}" if close else ""
        raise UnknownNameError(f"unknown {what} {name!r}{meant}; the known ones are: {known}")
    return table[name]

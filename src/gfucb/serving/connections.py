"""Connections to SQLite files, and the lock of the one process that writes."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from gfucb.core.errors import DecisionLogError

MEMORY = ":memory:"


class Connection(sqlite3.Connection):
    """A connection that is closed with its last reference, without a warning.

    What a log has written is durable when the call returns, so a log that nobody closed has lost
    nothing; from Python 3.13 on sqlite3 warns of it all the same.
    """

    def __del__(self) -> None:
        try:
            self.close()
        except sqlite3.ProgrammingError:  # it could not be opened
            return


def connect(path: Path | None, *, read_only: bool) -> sqlite3.Connection:
    """A connection that threads may share under a lock; transactions are begun explicitly."""
    address = MEMORY if path is None else f"{path.as_uri()}{'?mode=ro' * read_only}"
    try:
        return sqlite3.connect(
            address,
            isolation_level=None,
            check_same_thread=False,
            factory=Connection,
            uri=path is not None,
        )
    except sqlite3.Error as error:
        raise DecisionLogError(f"{path} cannot be opened: {error}") from error


def exclusive(path: Path) -> sqlite3.Connection:
    """Hold a lock on PATH.lock until the connection is closed or the process ends.

    SQLite's own locks work on all systems, and the system releases them when a process is killed.
    """
    try:
        lock = sqlite3.connect(
            f"{path}.lock",
            timeout=0.0,
            isolation_level=None,
            check_same_thread=False,
            factory=Connection,
        )
    except sqlite3.Error as error:
        raise DecisionLogError(f"{path}.lock cannot be opened: {error}") from error
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        lock.close()
        raise DecisionLogError(
            f"{path} is in use by another agent; one agent writes to a log ({error}). "
            "Pass read_only=True to read it"
        ) from error
    return lock


class SameFile:
    """Whether the path of a log is still that of the file that was opened."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._identity = None if path is None else _identity(path)

    def require(self) -> None:
        """Refuse to write to a file that nobody would find at its path."""
        if self._path is not None and _identity(self._path) != self._identity:
            raise DecisionLogError(
                f"{self._path} was moved, deleted or replaced while it was in use; put the file "
                "back, with its -wal file, or build the agent again"
            )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def time_of(clock: Callable[[], float]) -> float:
    """The time of now, by this clock."""
    now = clock()
    if not isinstance(now, float | int) or not math.isfinite(now):
        raise DecisionLogError(f"the clock of a log must return seconds since 1970, got {now!r}")
    return now

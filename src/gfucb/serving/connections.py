"""Connections to SQLite files, and the lock of the one process that writes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from gfucb.core.errors import DecisionLogError
from gfucb.core.sqlite_files import Connection, exclusive

MEMORY = ":memory:"
# The last second of the year 9999: later times cannot be shown.
LATEST_TIME = 253402300799.0


def connect(path: Path | None, *, read_only: bool) -> sqlite3.Connection:
    """A connection that threads may share under a lock; transactions are begun explicitly."""
    address = MEMORY if path is None else path.as_uri() + _reading(path) * read_only
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


def _reading(path: Path) -> str:
    """How SQLite reads a log: one that is closed, from directories that are not writable, too."""
    is_closed = not path.with_name(f"{path.name}-wal").exists()
    is_immutable = is_closed and not os.access(path.parent, os.W_OK)
    return "?mode=ro" + "&immutable=1" * is_immutable


def exclusive_log(path: Path) -> sqlite3.Connection:
    """Hold the lock PATH.lock of a log, see `exclusive`."""
    try:
        return exclusive(path.with_name(f"{path.name}.lock"))
    except BlockingIOError as error:
        raise DecisionLogError(
            f"{path} is in use by another agent, perhaps of this process; one agent writes to a "
            f"log ({error}). Call its close() first, and that of a DecisionLog which the "
            "caller has opened, or pass read_only=True to read the log"
        ) from error
    except OSError as error:
        cure = "" if os.access(path.parent, os.W_OK) else f"; {path.parent} must be writable"
        raise DecisionLogError(f"{error}{cure}") from error


def resolved(path: str | os.PathLike[str] | None) -> Path | None:
    """The file of a log without links, in whatever directory; None for a log in memory.

    A link to a log has its lock and its checkpoint. As for SQLite, ":memory:" is no file.
    """
    if path is None or path == MEMORY:
        return None
    try:
        found = Path(path).resolve()
        is_directory = found.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # zero bytes, loops of links
        raise DecisionLogError(f"a decision log cannot be at {path!r}: {error}") from error
    if is_directory:
        raise DecisionLogError(f"{found} is a directory; pass the path of a file")
    return found


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
    if not isinstance(now, float | int) or not 0 <= now <= LATEST_TIME:
        raise DecisionLogError(f"the clock of a log must return seconds since 1970, got {now!r}")
    return float(now)  # stored as a float: the checksum of an integer would not be that of the row

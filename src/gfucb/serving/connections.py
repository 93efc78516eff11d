"""Connections to SQLite files, and the lock of the one process that writes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from gfucb.core.errors import DecisionLogError

MEMORY = ":memory:"


def connect(path: Path | None, *, read_only: bool) -> sqlite3.Connection:
    """A connection that threads may share under a lock; transactions are begun explicitly."""
    address = MEMORY if path is None else f"{path.resolve().as_uri()}{'?mode=ro' * read_only}"
    try:
        return sqlite3.connect(
            address, isolation_level=None, check_same_thread=False, uri=path is not None
        )
    except sqlite3.Error as error:
        raise DecisionLogError(f"{path} cannot be opened: {error}") from error


def exclusive(path: Path) -> sqlite3.Connection:
    """Hold a lock on PATH.lock until the connection is closed or the process ends.

    SQLite's own locks work on all systems, and the system releases them when a process is killed.
    """
    lock = sqlite3.connect(
        f"{path}.lock", isolation_level=None, check_same_thread=False, timeout=0.0
    )
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        lock.close()
        raise DecisionLogError(
            f"{path} is in use by another agent; one agent writes to a log ({error}). "
            "Pass read_only=True to read it"
        ) from error
    return lock

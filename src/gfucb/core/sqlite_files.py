"""Connections to SQLite files that close themselves, and locks that end with their process."""

from __future__ import annotations

import sqlite3
from pathlib import Path


class Connection(sqlite3.Connection):
    """A connection that is closed with its last reference, without a warning.

    What was written is durable when a call returns, so a file that nobody closed has lost nothing;
    from Python 3.13 on sqlite3 warns of it all the same.
    """

    def __del__(self) -> None:
        try:
            self.close()
        except sqlite3.ProgrammingError:  # it could not be opened
            return


def exclusive(path: Path) -> sqlite3.Connection:
    """Hold the lock at `path` until the connection is closed or the process ends, however it does.

    `BlockingIOError` if another one holds it, `OSError` if there can be no such file. SQLite's own
    locks work on all systems, and the system releases them when a process is killed.
    """
    try:
        lock = sqlite3.connect(
            str(path),
            timeout=0.0,
            isolation_level=None,
            check_same_thread=False,
            factory=Connection,
        )
    except sqlite3.Error as error:
        raise OSError(f"{path} cannot be opened: {error}") from error
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        lock.close()
        raise BlockingIOError(f"{path} is locked: {error}") from error
    return lock

"""Locks on files that end with the process that holds them."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def exclusive(path: Path) -> sqlite3.Connection:
    """Hold the lock at `path` until the connection is closed or the process ends, however it does.

    `BlockingIOError` if another one holds it, `OSError` if there can be no such file. SQLite's own
    locks work on all systems, and the system releases them when a process is killed.
    """
    try:
        lock = sqlite3.connect(str(path), isolation_level=None, check_same_thread=False, timeout=0)
    except sqlite3.Error as error:
        raise OSError(f"{path} cannot be opened: {error}") from error
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        lock.close()
        raise BlockingIOError(f"{path} is locked: {error}") from error
    return lock

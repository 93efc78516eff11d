"""Directories of data files, and where this process finds those of another machine.

A job names the data directory of the machine that started it. A worker on another machine gets the
files, writes them to a directory of its own, and reads that one instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

DATA_DIR_VARIABLE = "GFUCB_DATA_DIR"

_find_here: dict[str, Callable[[], Path]] = {}


def data_directory(given: str | os.PathLike[str] | None) -> Path | None:
    """The directory to read: `given`, or the one that GFUCB_DATA_DIR names, or its copy here."""
    name = os.fspath(given) if given else os.environ.get(DATA_DIR_VARIABLE)
    if not name:
        return None
    return _find_here[name]() if name in _find_here else Path(name)


@contextmanager
def copied_directory(name: str, copy: Callable[[], Path]) -> Iterator[None]:
    """Read the directory that `copy` returns where `name` is given, or nothing.

    `copy` is called at the first use, at most once.
    """
    before = os.environ.get(DATA_DIR_VARIABLE)
    os.environ[DATA_DIR_VARIABLE] = name
    _find_here[name] = cache(copy)
    try:
        yield
    finally:
        del _find_here[name]
        if before is None:
            del os.environ[DATA_DIR_VARIABLE]
        else:
            os.environ[DATA_DIR_VARIABLE] = before

"""Directories of data files, and where this process finds those of another machine.

A job names the data directory of the machine that started it. A worker on another machine gets the
files, writes them to a directory of its own, and reads that one instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DATA_DIR_VARIABLE = "GFUCB_DATA_DIR"

_directory_here: dict[str, Path] = {}


def data_directory(given: str | os.PathLike[str] | None) -> Path | None:
    """The directory to read: `given`, or the one that GFUCB_DATA_DIR names, or its copy here."""
    name = os.fspath(given) if given else os.environ.get(DATA_DIR_VARIABLE)
    return _directory_here.get(name, Path(name)) if name else None


@contextmanager
def copied_directory(name: str, copy: Path) -> Iterator[None]:
    """Read `copy` where `name` is given, or nothing."""
    before = os.environ.get(DATA_DIR_VARIABLE)
    os.environ[DATA_DIR_VARIABLE] = os.fspath(copy)
    _directory_here[name] = copy
    try:
        yield
    finally:
        del _directory_here[name]
        if before is None:
            del os.environ[DATA_DIR_VARIABLE]
        else:
            os.environ[DATA_DIR_VARIABLE] = before

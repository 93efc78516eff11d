"""Atomic replacement of files: a reader sees the old content or the new, never a part."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path


def atomic_write(path: str | os.PathLike[str], write: Callable[[Path], object]) -> None:
    """Replace `path` by what `write` writes to a temporary file beside it.

    The temporary name is unique, so that two writers of one path do not mix their bytes: the one
    that ends last wins. File and directory are synced to the disk, so that the new content
    survives a power failure once this function has returned. If `write` fails, `path` keeps its
    old content. A path that is no regular file, such as /dev/stdout, is written directly.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        write(target)
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        write(temporary)
        _sync(temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # other systems cannot open a directory
        _sync(target.parent)


def is_temporary(path: Path) -> bool:
    """Whether `atomic_write` named this file: what a killed process may have left."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def remove_leftovers(path: Path) -> None:
    """Remove what killed writers of `path` have left; no other process may be writing it now."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}\.tmp")
    for name in os.listdir(path.parent):
        if pattern.fullmatch(name):
            path.with_name(name).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    # Windows syncs only what is open for writing; a directory cannot be opened so.
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

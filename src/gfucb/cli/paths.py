"""Checks of paths that commands write to."""

from __future__ import annotations

from pathlib import Path

from gfucb.core.errors import RunDirectoryError


def require_parent(file: Path | None) -> None:
    """Refuse a file whose directory does not exist, before any work is done."""
    if file is not None and not file.parent.is_dir():
        raise RunDirectoryError(f"there is no directory {file.parent} to write {file.name} into")

"""Where results may be written."""

from __future__ import annotations

from pathlib import Path

from gfucb.core.errors import RunDirectoryError


def require_place(file: Path | None) -> None:
    """Refuse a file that could not be written, before the work is done."""
    if file is not None and not file.parent.is_dir():
        raise RunDirectoryError(f"there is no directory {file.parent} to write {file.name} into")

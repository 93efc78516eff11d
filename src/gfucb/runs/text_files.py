"""Text, JSON and CSV files, each written atomically."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gfucb.core.errors import RunDirectoryError
from gfucb.core.files import atomic_write


def write_text(path: Path, text: str) -> None:
    """Replace a file by `text`."""
    atomic_write(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Replace a file by `value` as indented JSON."""
    write_text(path, json_text(value))


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise RunDirectoryError(f"cannot read {path}: {error}") from error


def json_text(value: Any) -> str:
    """A value as indented JSON."""
    return json.dumps(value, indent=2) + "\n"


def as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """The value that is read back after writing this one: tuples become lists."""
    return dict(json.loads(json.dumps(value)))


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Rows as CSV, with `columns` and those of all rows; a value that a row lacks is empty."""
    text = io.StringIO()
    columns = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def parse_csv(text: str) -> list[dict[str, str]]:
    """The rows of a CSV text, values as text."""
    return list(csv.DictReader(io.StringIO(text)))


def with_numbers(row: Mapping[str, str]) -> dict[str, float | str]:
    """A row of a CSV file with numbers instead of text where it has some, without empty values."""
    found: dict[str, float | str] = {}
    for name, text in row.items():
        if text:
            try:
                found[name] = int(text) if text.isdecimal() else float(text)
            except ValueError:
                found[name] = text
    return found


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, values as text; none if there is no file."""
    return parse_csv(path.read_text(encoding="utf-8")) if path.exists() else []

"""Rows appended to a CSV file, one at a time."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from gfucb.core.closing import ClosedAtExit
from gfucb.core.errors import RunDirectoryError
from gfucb.core.records import Row
from gfucb.runs.text_files import csv_text, read_csv, write_text


class RowWriter(ClosedAtExit):
    """Appends rows to a CSV file; every row is readable as soon as it is written.

    A row with a new column rewrites the file, and earlier rows are empty there. So the result
    does not depend on how many rows were written at a time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns = list(rows[0]) if (rows := read_csv(path)) else []
        self._open()

    def write(self, row: Row) -> None:
        """Append a row."""
        if not row.keys() <= set(self._columns):
            self._add_columns(row)
        self._writer.writerow(row)
        self._file.flush()

    def sync(self) -> None:
        """Make sure that the rows survive a power failure."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _open(self) -> None:
        self._file = self.path.open("a", newline="")
        self._writer = csv.DictWriter(self._file, self._columns, lineterminator="\n", restval="")

    def _add_columns(self, row: Row) -> None:
        self._file.close()
        rows = read_csv(self.path)
        self._columns = list(dict.fromkeys([*self._columns, *row]))
        write_text(self.path, csv_text(rows, self._columns))
        self._open()

    @staticmethod
    def truncate(path: Path, num_rows: int) -> None:
        """Keep the first rows of a file."""
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        remaining = lines[: num_rows + 1]
        if len(remaining) < num_rows + 1 or not remaining[-1].endswith("\n"):
            raise RunDirectoryError(
                f"{path} has {max(0, len(remaining) - 1)} rows but the checkpoint beside it was "
                f"saved after {num_rows}; remove the directory to start the run over"
            )
        write_text(path, "".join(remaining))

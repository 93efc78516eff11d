"""Logs in files, for `gfucb evaluate`: CSV and Parquet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from gfucb.core.errors import DataFileError, InvalidInputError
from gfucb.evaluation import LogColumns, NamedLog, log_of_table

# From a file and the columns of a table to a log.
LogReader = Callable[[Path, LogColumns], NamedLog]


def read_log(path: Path, columns: LogColumns) -> NamedLog:
    """Read the log at `path`; the ending of its name says which kind it is."""
    if not path.is_file():
        raise DataFileError(f"there is no log at {path}")
    reader = next((read for ending, read in READERS.items() if path.name.endswith(ending)), None)
    if reader is None:
        raise DataFileError(
            f"{path} is no known kind of log; the name must end with one of {', '.join(READERS)}"
        )
    try:
        return reader(path, columns)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error} (rows are counted from 0)") from error


def _read_csv(path: Path, columns: LogColumns) -> NamedLog:
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError) as error:  # parsing errors are ValueErrors
        raise DataFileError(f"{path} cannot be read as CSV: {error}") from error
    return log_of_table(table, columns)


def _read_parquet(path: Path, columns: LogColumns) -> NamedLog:
    try:
        table = pd.read_parquet(path)
    except ImportError as error:
        raise DataFileError(f"to read {path}, install pyarrow: pip install pyarrow") from error
    except (ValueError, OSError) as error:
        raise DataFileError(f"{path} cannot be read as Parquet: {error}") from error
    return log_of_table(table, columns)


READERS: Mapping[str, LogReader] = {
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
    ".parquet": _read_parquet,
}

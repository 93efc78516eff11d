"""Logs in files, for `gfucb evaluate`: CSV, Parquet and decision logs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from gfucb.core.errors import DataFileError, InvalidInputError
from gfucb.evaluation import LogColumns, NamedLog, log_of_decisions, log_of_table
from gfucb.serving import DecisionLog
from gfucb.tables import Schema
from gfucb.tables.frames import read_csv

# From a file and the columns of a table to a log.
LogReader = Callable[[Path, LogColumns], NamedLog]
# The first bytes of every SQLite file, whatever its name.
SQLITE = b"SQLite format 3\0"


def read_log(
    path: Path,
    columns: LogColumns | None = None,
    *,
    missing_reward: float | None = None,
    schema: Schema | None = None,
) -> NamedLog:
    """Read the log at `path`: a `gfucb.DecisionLog`, or a table by the ending of its name.

    `columns` are those of a table; for the others see `log_of_decisions`.
    """
    if not path.is_file():
        raise DataFileError(f"there is no log at {path}")
    with path.open("rb") as file:
        is_decision_log = file.read(len(SQLITE)) == SQLITE
    if is_decision_log:
        with DecisionLog(path, read_only=True) as store:
            return log_of_decisions(store, missing_reward=missing_reward, schema=schema)
    reader = next((read for ending, read in READERS.items() if path.name.endswith(ending)), None)
    if reader is None:
        raise DataFileError(
            f"{path} is no known kind of log: it is no gfucb.DecisionLog, and its name does not "
            f"end with {', '.join(READERS)}"
        )
    given = {"missing_reward": missing_reward, "schema": schema}
    unused = [name for name, value in given.items() if value is not None]
    if unused:
        raise InvalidInputError(f"{path} is a table: {' and '.join(unused)} are of decision logs")
    try:
        return reader(path, LogColumns() if columns is None else columns)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error} (rows are counted from 0)") from error


def _read_csv(path: Path, columns: LogColumns) -> NamedLog:
    # Not by pandas, to which actions named None or NA are missing.
    return log_of_table(read_csv(path), columns)


def _read_parquet(path: Path, columns: LogColumns) -> NamedLog:
    try:
        complete = _complete_log(path)
        table = _parquet_table(path) if complete is None else None
    except ImportError as error:
        raise DataFileError(
            f"to read {path}, install pyarrow or polars: pip install pyarrow"
        ) from error
    except InvalidInputError:
        raise
    except Exception as error:  # both libraries have errors of their own
        raise DataFileError(f"{path} cannot be read as Parquet: {error}") from error
    return log_of_table(table, columns) if complete is None else complete


def _complete_log(path: Path) -> NamedLog | None:
    """The log, if the file is one of `gfucb.evaluation.arrow_logs`, which needs pyarrow."""
    if importlib.util.find_spec("pyarrow") is None:
        return None
    from gfucb.evaluation.arrow_logs import parquet_log

    return parquet_log(path)


def _parquet_table(path: Path) -> Any:
    """The table by pandas, which needs pyarrow, or else by polars."""
    try:
        return pd.read_parquet(path)
    except ImportError:
        import polars

        return polars.read_parquet(path)


READERS: Mapping[str, LogReader] = {
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
    ".parquet": _read_parquet,
}

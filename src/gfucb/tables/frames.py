"""Tables of many types as named columns: data frames, dicts of columns, lists of rows, arrays."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from gfucb.core.errors import DataFileError, InvalidInputError
from gfucb.tables.raw_columns import RawColumn, column_of_array, column_of_values

TableLike: TypeAlias = Any
"""A data frame (pandas, polars, pyarrow and others that narwhals knows), a dict of columns, a dict
of single values (one row), a list of dicts (rows), an array [row, column], or the path of a CSV
file, also with gzip, whose first line has the names; its empty cells are missing values, and in
columns of numbers, dates or booleans also NA, NaN, null and the like."""

EXPECTED = (
    "a data frame, a dict of columns, a list of dicts (one for each row), an array [row, column] "
    "or the path of a CSV file"
)
# Words for missing values in CSV files, as other programs write them.
GAPS = {"NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>"}
OTHER_SEPARATORS = ";\t|"
# Columns that a message lists.
SHOWN_NAMES = 12


@dataclass(frozen=True, eq=False)
class RawTable:
    """Named columns that are read when they are needed: columns without a use may hold anything.

    Attributes:
        num_rows: how many rows there are.
        readers: for every column a function that reads it.
        index: the names of the levels of the index of a data frame, which are no columns.
    """

    num_rows: int
    readers: Mapping[str, Callable[[], RawColumn]]
    index: tuple[Any, ...] = ()

    @property
    def names(self) -> list[str]:
        """Of all columns."""
        return list(self.readers)

    def without(self, name: str) -> str:
        """The message that a column is not there."""
        shown = ", ".join(repr(known) for known in self.names[:SHOWN_NAMES])
        more = ", ..." if len(self.names) > SHOWN_NAMES else ""
        text = "" if isinstance(name, str) else " (names of columns are text)"
        return f"the table has no column {name!r}{text}; it has {shown or 'no columns'}{more}"

    def column(self, name: str) -> RawColumn:
        """Read a column, or say which columns there are."""
        if name not in self.readers:
            cure = "; it is the index: call table.reset_index()" if name in self.index else ""
            raise InvalidInputError(self.without(name) + cure)
        found = self.readers[name]()
        if len(found) != self.num_rows:
            raise InvalidInputError(
                f"the column {name!r} has {len(found)} values, but the table has "
                f"{self.num_rows} rows; all columns need the same length"
            )
        return found


def read_table(table: TableLike, name: str = "table") -> RawTable:
    """The columns of a table of any supported type."""
    if isinstance(table, RawTable):
        return table
    if isinstance(table, str | os.PathLike):
        return _from_rows(read_csv(table), name)
    if isinstance(table, Mapping):
        return _from_columns(table, name)
    if hasattr(table, "toarray"):  # scipy's sparse matrices
        table = table.toarray()
    if hasattr(table, "detach"):
        table = table.detach().cpu().numpy()
    if isinstance(table, np.ndarray):
        return _from_array(table, name)
    if isinstance(table, list | tuple):
        return _from_rows(table, name)
    return _from_frame(table, name)


def read_csv(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a CSV file: text, and None for missing values."""
    try:
        opened = gzip.open if os.fspath(path).endswith(".gz") else open
        with opened(path, "rt", newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            names = _text_names(reader.fieldnames or (), f"the file {path}")
            rows: list[dict[str, Any]] = list(reader)
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"{path} is no CSV file in UTF-8 ({error}); pass a data frame: pandas.read_csv(..., "
            "encoding='latin-1'), or read_excel or read_parquet for files of other formats"
        ) from error
    except (OSError, csv.Error, EOFError, zlib.error) as error:
        raise DataFileError(f"{path} cannot be read as CSV: {error}") from error
    if not rows:
        raise DataFileError(f"{path} has no rows")
    if len(names) == 1 and (found := [mark for mark in OTHER_SEPARATORS if mark in names[0]]):
        raise DataFileError(
            f"{path} has one column, {names[0]!r:.60}: it seems to be separated by {found[0]!r}; "
            f"pass pandas.read_csv({os.fspath(path)!r}, sep={found[0]!r})"
        )
    longer = [number for number, row in enumerate(rows, start=2) if None in row]
    if longer:
        raise DataFileError(f"line {longer[0]} of {path} has more values than there are columns")
    for name in names:
        _read_gaps(rows, name)
    return rows


def _read_gaps(rows: list[dict[str, Any]], name: str) -> None:
    """Let words such as NA be missing values, in columns whose other values are no text.

    In columns of text they may be names: of countries, or of no promotion.
    """
    texts = [row[name] and row[name].strip() for row in rows]
    if not GAPS.intersection(texts):
        return
    others = [None if text in GAPS else text for text in texts]
    if column_of_values(name, others).parsed().kind != "text":
        for row, value in zip(rows, others, strict=True):
            row[name] = value


def _from_columns(table: Mapping[Any, Any], name: str) -> RawTable:
    names = _text_names(table, name)
    values = list(table.values())
    if values and all(_is_single(value) for value in values):
        values = [[value] for value in values]  # one row
    for column, value in zip(names, values, strict=True):
        if _is_single(value):
            raise InvalidInputError(
                f"the column {column!r} of {name} must be a list or an array like the others, "
                f"got the single value {value!r:.40}"
            )
    readers = {column: _reader(column, value) for column, value in zip(names, values, strict=True)}
    return RawTable(len(values[0]) if values else 0, readers)


def _from_array(table: Any, name: str) -> RawTable:
    if table.dtype.names is not None and table.ndim == 1:  # a structured array
        return _from_columns({column: table[column] for column in table.dtype.names}, name)
    if table.ndim != 2:
        raise InvalidInputError(f"{name} must be {EXPECTED}, got the shape {list(table.shape)}")
    columns = {str(index): table[:, index] for index in range(table.shape[1])}
    readers = {column: _reader(column, values) for column, values in columns.items()}
    return RawTable(len(table), readers)


def _from_rows(table: Sequence[Any], name: str) -> RawTable:
    if not all(isinstance(row, Mapping) for row in table):
        wrong = next(row for row in table if not isinstance(row, Mapping))
        raise InvalidInputError(
            f"{name} must be {EXPECTED}, got a list that holds {type(wrong).__name__}"
        )
    names = list(dict.fromkeys(column for row in table for column in row))
    columns = {column: [row.get(column) for row in table] for column in names}
    texts = _text_names(columns, name)
    readers = {
        text: _reader(text, values) for text, values in zip(texts, columns.values(), strict=True)
    }
    return RawTable(len(table), readers)


def _from_frame(table: Any, name: str) -> RawTable:
    try:
        import narwhals
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "data frames need narwhals: pip install 'gfucb[tables]'; "
            "dicts of columns, lists of dicts and arrays work without it",
            name=error.name,
        ) from error
    try:
        frame = narwhals.from_native(_native(table), eager_only=True)
    except (TypeError, ValueError) as error:  # narwhals refuses repeated names by a ValueError
        if hasattr(table, "collect"):
            cure = "; call .collect() first"
        elif hasattr(table, "to_frame"):
            cure = "; a single row of a data frame is frame.iloc[[0]] or frame[0]"
        else:
            _text_names(getattr(table, "columns", ()), name)
            cure = " ({})".format(str(error).replace("\n", " "))
        raise InvalidInputError(
            f"{name} must be {EXPECTED}, got {type(table).__name__}{cure}"
        ) from error
    texts = _text_names(frame.columns, name)
    readers = {text: _frame_reader(text, frame, position) for position, text in enumerate(texts)}
    levels = getattr(getattr(table, "index", None), "names", None) or ()
    return RawTable(len(frame), readers, tuple(levels))


def _native(table: Any) -> Any:
    """Tables of unknown libraries that export Arrow, as frames of polars if it is installed."""
    import narwhals

    is_known = narwhals.from_native(table, pass_through=True, allow_series=True) is not table
    if is_known or not hasattr(table, "__arrow_c_stream__"):
        return table
    try:
        import polars
    except ModuleNotFoundError:
        return table
    return polars.DataFrame(table)


def _frame_reader(name: str, frame: Any, position: int) -> Callable[[], RawColumn]:
    def read() -> RawColumn:
        series = frame[:, position]
        missing = series.is_null().to_numpy().astype(bool)
        if series.dtype.is_numeric() and not series.dtype.is_decimal() and not missing.any():
            return column_of_array(name, np.asarray(series.to_numpy()))
        values = series.to_list()
        column = column_of_values(
            name,
            [None if gap else value for value, gap in zip(values, missing.tolist(), strict=True)],
        )
        return replace(column, is_category=_is_categorical(series))

    return read


def _is_categorical(series: Any) -> bool:
    import narwhals

    return isinstance(series.dtype, narwhals.Categorical | narwhals.Enum)


def _reader(name: str, values: Any) -> Callable[[], RawColumn]:
    def read() -> RawColumn:
        given = values.detach().cpu().numpy() if hasattr(values, "detach") else values
        if not isinstance(given, list | tuple):
            given = np.ma.asanyarray(given) if np.ma.isMaskedArray(given) else np.asarray(given)
        if isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype.kind in "iufb":
            given = list(given)  # a vector for each row
        if isinstance(given, np.ndarray) and not np.ma.isMaskedArray(given):
            return column_of_array(name, given)
        return column_of_values(name, list(given))

    return read


def _text_names(names: Iterable[Any], name: str) -> list[str]:
    """Names of columns as text, which must differ; the columns of arrays are "0", "1", ..."""
    names = list(names)
    tuples = [column for column in names if isinstance(column, tuple)]
    if tuples:
        raise InvalidInputError(
            f"the columns of {name} need names of one level, got {tuples[0]!r}; join the levels, "
            "for example by table.columns = ['_'.join(levels) for levels in table.columns]"
        )
    texts = [str(column) for column in names]
    repeated = [text for text, count in Counter(texts).items() if count > 1]
    if repeated:
        raise InvalidInputError(
            f"the columns of {name} need different names, got {repeated[0]!r} more than once; "
            "rename one of them"
        )
    return texts


def _is_single(value: Any) -> bool:
    """Whether the value of a dict is one value and no column of values."""
    if isinstance(value, str | bytes):
        return True
    try:
        len(value)
    except TypeError:  # also raised by arrays and tensors without axes
        return True
    return False

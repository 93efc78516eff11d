"""Which kind a column of a table is, and columns that need a word of the user first."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence

import numpy as np

from gfucb.core.errors import InvalidInputError
from gfucb.tables.column_kinds import Boolean, Category, ColumnKind, Number
from gfucb.tables.date_kind import Date
from gfucb.tables.raw_columns import RawColumn
from gfucb.tables.vector_kinds import Vector

# Texts in more rows than this that differ in more than half of the rows are ids or free text.
MOST_TEXTS = 20
# What pandas calls a column without a name.
NAMELESS = re.compile(r"|Unnamed: \d+")
# Texts that mean a date or a number to a reader, and not to a program.
DATE_TEXT = re.compile(r"(\d{1,2}([./-])\d{1,2}\2(\d{4}|\d{2})|\d{4}[./]\d{1,2}[./]\d{1,2})( .*)?")
NUMBER_TEXT = re.compile(
    r"\(?[-+\u2212]?[€$£]?\s?\d{1,3}([,.' \u00a0\u2009\u202f]?\d{3})*([.,]\d+)?\s?[€$£%]?\)?"
)
NO_PLAIN_NUMBER = re.compile(r"[^\d.+-]")
# Numbers that `pandas.read_csv` reads with arguments for their marks.
THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})*(\.\d+)?")
DECIMAL_COMMA = re.compile(r"[-+]?\d{1,3}(\.?\d{3})*(,\d+)?")
# Days as numbers, from 1900 to 2099.
FIRST_DAY, LAST_DAY = 19000101, 20991231


def inferred_kind(column: RawColumn) -> ColumnKind:
    """The kind of column that fits the values; text is parsed as `pandas.read_csv` would."""
    name = column.name
    if NAMELESS.fullmatch(name):
        raise InvalidInputError(
            f"the column {name!r} has no name, as the index that pandas writes to files; leave it "
            f"out by ignore=[{name!r}], or give it a name"
        )
    parsed = column.parsed()
    if parsed.kind == "empty":
        raise InvalidInputError(
            f"the column {name!r} has no values; leave it out: ignore=[{name!r}]"
        )
    if parsed.kind == "text":
        _require_category(parsed)
        return Category()
    if parsed.kind == "number":
        if column.is_category:  # codes: their order and their distances mean nothing
            return Category()
        _require_no_dates(parsed)
    found: dict[str, ColumnKind] = {
        "number": Number(),
        "boolean": Boolean(),
        "date": Date(),
        "vector": Vector(),
    }
    return found[parsed.kind]


def _require_no_dates(column: RawColumn) -> None:
    """Refuse numbers if all are days such as 20261231, and not all the same day."""
    numbers, name = column.present, column.name
    if not ((numbers >= FIRST_DAY) & (numbers <= LAST_DAY)).all():
        return
    numbers = np.unique(numbers)
    if len(numbers) > 1 and all(_is_day(number) for number in numbers.tolist()):
        raise InvalidInputError(
            f"the column {name!r} holds dates that are written as numbers, such as "
            f"{int(numbers[0])}; convert them, for example by pandas.to_datetime(..., "
            f"format='%Y%m%d'), or state its kind: columns={{{name!r}: Number()}}"
        )


def _is_day(number: float) -> bool:
    try:
        datetime.date.fromisoformat(str(int(number)))
    except ValueError:
        return False
    return number.is_integer()


def _require_category(column: RawColumn) -> None:
    """Refuse text that is a date, a number, an id or free text."""
    name, texts = column.name, sorted({text.strip() for text in column.present.tolist()})
    stated = f"or state its kind: columns={{{name!r}: Category()}}"
    if all(DATE_TEXT.fullmatch(text) for text in texts):
        raise InvalidInputError(
            f"the column {name!r} holds dates that are not written as 2026-12-31, such as "
            f"{texts[0]!r}; convert them, for example by pandas.to_datetime, {stated}"
        )
    if all(NUMBER_TEXT.fullmatch(text) for text in texts) and _any_match(NO_PLAIN_NUMBER, texts):
        shown = next(text for text in texts if NO_PLAIN_NUMBER.search(text))
        raise InvalidInputError(
            f"the column {name!r} holds numbers that are not written as 1234.5, such as "
            f"{shown!r}; convert them{_reading_of(texts)}, {stated}"
        )
    if len(texts) > MOST_TEXTS and len(texts) > len(column) / 2:
        raise InvalidInputError(
            f"the column {name!r} has {len(texts)} different texts in {len(column)} rows, as ids "
            f"or free text have; leave it out by ignore=[{name!r}], or state its kind, such as "
            f"columns={{{name!r}: Hashed(16)}}"
        )


def _reading_of(texts: Sequence[str]) -> str:
    """The call that reads numbers with commas; nothing if there are other marks."""
    if all(THOUSANDS.fullmatch(text) for text in texts):
        words = "thousands=','"
    elif all(DECIMAL_COMMA.fullmatch(text) for text in texts):
        words = "decimal=','" + ", thousands='.'" * any("." in text for text in texts)
    else:
        return ""
    return f", for example by pandas.read_csv(..., {words})"


def _any_match(pattern: re.Pattern[str], texts: Iterable[str]) -> bool:
    return any(pattern.search(text) for text in texts)

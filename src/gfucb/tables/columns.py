"""The columns of a table as one matrix of numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.arrays import LARGEST_INPUT
from gfucb.tables.column_kinds import Boolean, Category, ColumnKind, Number
from gfucb.tables.date_kind import Date
from gfucb.tables.frames import RawTable, TableLike, read_table
from gfucb.tables.raw_columns import RawColumn
from gfucb.tables.vector_kinds import Embedding, Hashed, Vector

KINDS: Mapping[str, type[Any]] = {
    kind.kind: kind for kind in (Number, Boolean, Category, Date, Hashed, Embedding, Vector)
}
MISSING = " missing"
# Text with more different values than this, and more than half as many as rows, is no category.
MOST_TEXTS = 20


@runtime_checkable
class Encoder(Protocol):
    """Encodes the rows of a table as numbers: `Columns`, or `Transformed` for scikit-learn."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Of the encoded columns."""

    def encode(self, table: TableLike) -> Tensor:
        """A table as float64 [row, feature]."""


@dataclass(frozen=True)
class Columns:
    """Named columns and the kind of each.

    Features are ordered by the names of columns, numbers last: an agent that learns a log takes
    one-hot columns at the end for the action (`TableLayout.of_samples`).
    """

    kinds: Mapping[str, ColumnKind]
    kind: ClassVar[str] = "columns"

    def __post_init__(self) -> None:
        for name, kind in validate_kinds(self.kinds).items():
            if any(getattr(kind, field.name) is None for field in fields(kind)):  # type: ignore[arg-type]
                raise InvalidInputError(
                    f"all fields of the column {name!r} must be stated, got {kind}; Columns.of "
                    "estimates them from a table"
                )
        ordered = sorted(self.kinds, key=lambda name: (self.kinds[name].kind == Number.kind, name))
        object.__setattr__(self, "kinds", {name: self.kinds[name] for name in ordered})

    @classmethod
    def of(
        cls,
        table: TableLike,
        kinds: Mapping[str, ColumnKind] | None = None,
        ignore: Collection[str] = (),
    ) -> Columns:
        """All columns of a table but those to ignore; kinds that are not stated are inferred."""
        raw, stated = read_table(table), validate_kinds(kinds or {})
        for name in stated:
            raw.column(name)
        names = [name for name in raw.names if name not in ignore]
        found = {name: raw.column(name) for name in names}
        return cls(
            {
                name: (stated.get(name) or inferred_kind(column)).fitted(column)
                for name, column in found.items()
            }
        )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Such as "age", "age missing", "city=Rome", "city unknown"."""
        return tuple(
            name + part
            for name, kind in self.kinds.items()
            for part in (*kind.feature_names(), *([MISSING] if kind.missing else []))
        )

    def encode(self, table: TableLike) -> Tensor:
        """A table as float64 [row, feature]; it may have more columns, in any order."""
        raw = read_table(table)
        parts = [np.zeros((raw.num_rows, 0))]
        parts += [self._encode_column(raw, name) for name in self.kinds]
        return torch.from_numpy(np.concatenate(parts, axis=1))

    def _encode_column(self, raw: RawTable, name: str) -> Any:
        kind, column = self.kinds[name], raw.column(name)
        encoded = kind.encode(column)
        if encoded.size and not np.abs(encoded).max() <= LARGEST_INPUT:
            raise InvalidInputError(
                f"the column {name!r} has values above {LARGEST_INPUT:g} after standardisation "
                f"by {kind}; state another scale, or correct the values"
            )
        if not kind.missing:
            return encoded
        return np.concatenate([encoded, column.missing[:, None]], axis=1)


def validate_kinds(kinds: Any) -> dict[str, ColumnKind]:
    """Kinds of columns by name, or a message that lists the kinds there are."""
    known = ", ".join(kind.__name__ for kind in KINDS.values())
    if not isinstance(kinds, Mapping):
        raise InvalidInputError(f"columns must be a dict from names to kinds: {known}")
    for name, kind in kinds.items():
        if not isinstance(name, str) or type(kind) not in KINDS.values():
            raise InvalidInputError(
                f"columns must be named by text and have one of the kinds {known}, "
                f"got {name!r}: {kind!r:.80}"
            )
    return dict(kinds)


def inferred_kind(column: RawColumn) -> ColumnKind:
    """The kind of column that fits the values; text is parsed as `pandas.read_csv` would."""
    parsed = column.parsed()
    if parsed.kind == "empty":
        raise InvalidInputError(
            f"the column {column.name!r} has no values; leave it out: ignore=[{column.name!r}]"
        )
    if parsed.kind == "text":
        _require_category(parsed)
        return Category()
    found: dict[str, ColumnKind] = {
        "number": Number(),
        "boolean": Boolean(),
        "date": Date(),
        "vector": Vector(),
    }
    return found[parsed.kind]


def _require_category(column: RawColumn) -> None:
    """Refuse text that is an id or free text: nearly every row has a text of its own."""
    different = len(set(column.present.tolist()))
    if different > MOST_TEXTS and different > len(column) / 2:
        name = column.name
        raise InvalidInputError(
            f"the column {name!r} has {different} different texts in {len(column)} rows, as ids "
            f"or free text have; leave it out by ignore=[{name!r}], or state its kind, such as "
            f"columns={{{name!r}: Hashed(16)}}"
        )

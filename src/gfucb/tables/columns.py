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
from gfucb.tables.inference import inferred_kind
from gfucb.tables.vector_kinds import Embedding, Hashed, Vector

KINDS: Mapping[str, type[Any]] = {
    kind.kind: kind for kind in (Number, Boolean, Category, Date, Hashed, Embedding, Vector)
}
MISSING = " missing"


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
        if raw.num_rows == 0 and any(name not in stated for name in names):
            raise InvalidInputError("the table has no rows that show the kinds of its columns")
        found: dict[str, ColumnKind] = {}
        refusals = []
        for name in names:
            try:
                column = raw.column(name)
                found[name] = (stated.get(name) or inferred_kind(column)).fitted(column)
            except InvalidInputError as error:
                refusals.append(error)
        if len(refusals) > 1:  # all at once: tables that need work need it in several columns
            lines = "".join(f"\n- {refusal}" for refusal in refusals)
            raise InvalidInputError(f"{len(refusals)} columns cannot be used:{lines}")
        if refusals:
            raise refusals[0]
        return cls(found)

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
        if name not in raw.names:
            raise InvalidInputError(
                f"{raw.without(name)}; add it, with None where it is not known, or make a schema "
                f"without it: ignore=[{name!r}]"
            )
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

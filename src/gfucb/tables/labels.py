"""Names of tasks, actions and items, and their numbers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.tables.frames import RawTable
from gfucb.tables.raw_columns import Label, RawColumn, column_of_values, text_of

# Names that a message lists.
SHOWN_NAMES = 8


@dataclass(frozen=True)
class Labels:
    """The known names in a column; the number of a name is its position.

    3, 3.0 and "3" are one name, because other programs may have changed the type of a column.
    Values have no spaces around them; names may, if the schema is of an earlier version.

    Attributes:
        column: where the names are found.
        names: all known ones.
    """

    column: str
    names: tuple[Label, ...]
    numbers: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise InvalidInputError(f"a column must be named by text, got {self.column!r}")
        if not isinstance(self.names, list | tuple):
            raise InvalidInputError(
                f"the names for the column {self.column!r} must be a list, got {self.names!r:.60}"
            )
        object.__setattr__(self, "names", tuple(self.names))
        for name in self.names:
            is_name = isinstance(name, str | int | float | bool) and name != ""
            if not is_name or (isinstance(name, float) and not math.isfinite(name)):
                raise InvalidInputError(
                    f"names in the column {self.column!r} must be text, numbers or booleans, "
                    f"got {name!r:.60}"
                )
        exact = {text_of(name): number for number, name in enumerate(self.names)}
        if len(exact) < len(self.names) or not exact:
            raise InvalidInputError(
                f"the names in the column {self.column!r} must differ, and there must be at least "
                f"one, got {shown_names(self.names) or 'none'}"
            )
        stripped = {text.strip(): number for text, number in exact.items()}
        object.__setattr__(self, "numbers", stripped | exact)

    @classmethod
    def of(cls, column: RawColumn) -> Labels:
        """The names in a column, sorted."""
        found = list(dict.fromkeys(complete_labels(column)))
        if not found:
            raise InvalidInputError(
                f"the column {column.name!r} has no rows, hence no names; pass a table with rows, "
                "or all names as actions= or tasks="
            )
        return cls(column.name, tuple(sorted(found)))

    @classmethod
    def listed(cls, column: str, names: Iterable[Any]) -> Labels:
        """Names in the order of a list."""
        return cls(column, tuple(_complete_list(column, names)))

    def __len__(self) -> int:
        return len(self.names)

    def extended(self, names: Iterable[Any]) -> Labels:
        """With further names at the end; those before keep their numbers.

        They may be of another type: that of 5 and "5" is one name, whatever the others are.
        """
        return Labels(self.column, (*self.names, *_complete_list(self.column, names)))

    def starting_with(self, column: RawColumn) -> Labels:
        """The names that occur in a column first, otherwise in the same order.

        An agent that learns this column as a log then recognises the one-hot actions: it takes
        columns of zeros before the first name that occurs for context (`TableLayout.of_samples`).
        """
        found = set(column.texts())
        return Labels(self.column, tuple(sorted(self.names, key=lambda n: text_of(n) not in found)))

    def unknown_in(self, table: RawTable) -> list[Label]:
        """The names in the column of these labels that are not among them, each once."""
        found = {text_of(label): label for label in complete_labels(table.column(self.column))}
        return [label for text, label in found.items() if text not in self.numbers]

    def numbers_in(self, table: RawTable, cure: str) -> Tensor:
        """The number of the name in each row, [row]; `cure` says what to do with unknown ones."""
        texts = [text_of(label) for label in complete_labels(table.column(self.column))]
        for row, text in enumerate(texts):
            if text not in self.numbers:
                raise InvalidInputError(
                    f"the schema does not know {text!r} in the column {self.column!r} (row {row}); "
                    f"it knows {shown_names(self.names)}; {cure}"
                )
        return torch.tensor([self.numbers[text] for text in texts], dtype=torch.int64)


def item_ids(column: RawColumn) -> Tensor:
    """An integer for each name in a column, [row], from a hash: new names need no registration."""
    return torch.tensor([item_id(label) for label in complete_labels(column)], dtype=torch.int64)


def item_id(name: Label) -> int:
    """A non-negative integer of 63 bits that identifies a name."""
    text = text_of(name).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def complete_labels(column: RawColumn) -> list[Label]:
    """The names in a column, none of which may be missing."""
    if column.kind == "vector":
        raise InvalidInputError(f"the column {column.name!r} must hold names, got vectors")
    labels = column.labels()
    if None in labels:
        raise InvalidInputError(
            f"the column {column.name!r} must hold a name in every row, but row "
            f"{labels.index(None)} is missing; leave such rows out"
        )
    return [label for label in labels if label is not None]


def _complete_list(column: str, names: Any) -> list[Label]:
    """The names in a list; those in a set are sorted, because every process has another order."""
    if isinstance(names, str | bytes | Mapping) or not isinstance(names, Iterable):
        raise InvalidInputError(
            f"the names for the column {column!r} must be a list, got {names!r:.60}"
        )
    is_set = isinstance(names, set | frozenset)
    given = sorted(names, key=lambda name: (str(type(name)), name)) if is_set else list(names)
    return complete_labels(column_of_values(column, given))


def shown_names(names: Sequence[Label]) -> str:
    """The first names, for messages."""
    shown = ", ".join(repr(name) for name in names[:SHOWN_NAMES])
    return shown + (f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else "")

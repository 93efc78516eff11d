"""Rows of a table that belong together, as one axis with padding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.tables.labels import complete_labels
from gfucb.tables.raw_columns import Label, RawColumn


@dataclass(frozen=True, eq=False)
class Groups:
    """The rows of each group, in the order in which groups and rows appear.

    Attributes:
        names: of the groups.
        rows: of each group, [row].
    """

    names: tuple[Label, ...]
    rows: tuple[Tensor, ...]

    @classmethod
    def of(cls, column: RawColumn) -> Groups:
        """Rows with one value in the column."""
        found: dict[Label, list[int]] = {}
        for row, name in enumerate(complete_labels(column)):
            found.setdefault(name, []).append(row)
        if not found:
            raise InvalidInputError(f"the column {column.name!r} has no rows, hence no groups")
        return cls(tuple(found), tuple(torch.tensor(rows) for rows in found.values()))

    @property
    def available(self) -> Tensor | None:
        """Which candidates are no padding, [group, candidate]; None if all groups are as large."""
        sizes = torch.tensor([len(rows) for rows in self.rows])
        if bool((sizes == sizes[0]).all()):
            return None
        return torch.arange(int(sizes.max())) < sizes[:, None]

    def padded(self, values: Tensor) -> Tensor:
        """Values [row, ...] by group, [group, candidate, ...], with zeros at the end."""
        size = max(len(rows) for rows in self.rows)
        found = values.new_zeros(len(self.rows), size, *values.shape[1:])
        for group, rows in enumerate(self.rows):
            found[group, : len(rows)] = values[rows]
        return found

    def common(self, values: Tensor, column: str) -> Tensor:
        """The one value that the rows of each group have, [row] -> [group]."""
        for name, rows in zip(self.names, self.rows, strict=True):
            if len(values[rows].unique()) > 1:
                raise InvalidInputError(
                    f"the rows of the group {name!r} must have one value in the column "
                    f"{column!r}, but they have several"
                )
        return values[torch.stack([rows[0] for rows in self.rows])]

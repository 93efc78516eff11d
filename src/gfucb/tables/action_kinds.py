"""What can be chosen in a row: named actions, actions with features, rows of the table, items."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from gfucb.core.discrete_actions import with_actions
from gfucb.core.errors import GFUCBWarning, InvalidInputError
from gfucb.tables.columns import Columns
from gfucb.tables.frames import RawTable, TableLike, read_table
from gfucb.tables.groups import Groups
from gfucb.tables.labels import Labels, complete_labels, item_id, item_ids
from gfucb.tables.raw_columns import Label, RawColumn

UNKNOWN_ACTION = "correct the name, or make a new schema and agent with this action"
# So many different numbers with decimals are probably amounts, such as prices.
FEWEST_AMOUNTS = 5


@dataclass(frozen=True, eq=False)
class ActionInputs:
    """Candidates of all rows, and their names.

    Attributes:
        candidates: [row, action, *input].
        available: [row, action], or None if all are.
        names: of the actions of each row.
        groups: the rows of the table that each row of candidates is made of; None if it is one.
    """

    candidates: Tensor
    available: Tensor | None
    names: Sequence[Sequence[Label]]
    groups: Groups | None = None


class ActionKind(Protocol):
    """Makes candidates of the encoded context [row, column] and the table."""

    kind: ClassVar[str]

    def candidates(self, table: RawTable, context: Tensor) -> ActionInputs:
        """What can be chosen."""

    def inputs(self, table: RawTable, context: Tensor) -> Tensor:
        """The inputs of what was chosen in each row of a log, [row, *input]."""


@dataclass(frozen=True)
class NamedActions:
    """The same few actions in every row, one-hot after the context."""

    labels: Labels
    kind: ClassVar[str] = "named"

    @classmethod
    def of(cls, column: RawColumn) -> NamedActions:
        """The names in a column; a warning says what to do with amounts."""
        labels = Labels.of(column)
        if len(labels) >= FEWEST_AMOUNTS and _have_decimals(labels.names):
            name, first = labels.column, labels.names[0]
            warnings.warn(
                f"the column {name!r} holds {len(labels)} different numbers. Each is an action of "
                "its own, which learns nothing from the rewards of close ones. If they are "
                f"amounts, state a feature: actions=[{{{name!r}: {first!r}, 'amount': {first!r}}}, "
                "...], one for each",
                GFUCBWarning,
                stacklevel=4,
            )
        return cls(labels)

    def candidates(self, table: RawTable, context: Tensor) -> ActionInputs:
        """Context and one-hot action, [row, action, column]."""
        found = with_actions(context, len(self.labels))
        return ActionInputs(found, None, [self.labels.names] * len(context))

    def inputs(self, table: RawTable, context: Tensor) -> Tensor:
        """Context and the one-hot action of each row."""
        numbers = self.labels.numbers_in(table, UNKNOWN_ACTION)
        actions = torch.eye(len(self.labels), dtype=context.dtype)
        return torch.cat([context, actions[numbers]], dim=1)


@dataclass(frozen=True)
class DescribedActions:
    """Actions that have features of their own, the same ones in every row.

    An input is the context, the features of the action and, if `crossed`, all products of both.

    Attributes:
        labels: the names of the actions.
        columns: how a table of actions is encoded.
        vectors: the features of all actions, [action, feature].
        crossed: whether inputs have products of context and features.
    """

    labels: Labels
    columns: Columns
    vectors: tuple[tuple[float, ...], ...]
    crossed: bool
    kind: ClassVar[str] = "described"

    def __post_init__(self) -> None:
        object.__setattr__(self, "vectors", tuple(tuple(vector) for vector in self.vectors))
        width = len(self.columns.feature_names)
        if len(self.vectors) != len(self.labels) or any(len(v) != width for v in self.vectors):
            raise InvalidInputError(
                f"there must be {width} features for each of the {len(self.labels)} actions"
            )
        if not all(torch.tensor(vector).isfinite().all() for vector in self.vectors):
            raise InvalidInputError("the features of actions must be finite numbers")
        if not isinstance(self.crossed, bool):
            raise InvalidInputError(f"crossed must be True or False, got {self.crossed!r}")

    @classmethod
    def of(
        cls, table: TableLike, column: str, columns: Columns | None, crossed: bool
    ) -> DescribedActions:
        """The actions of a table with one row for each; `columns` are inferred if None."""
        raw = read_table(table, "actions")
        labels = Labels(column, tuple(complete_labels(raw.column(column))))
        columns = Columns.of(raw, ignore=[column]) if columns is None else columns
        vectors = columns.encode(raw).tolist()
        return cls(labels, columns, tuple(tuple(vector) for vector in vectors), crossed)

    def with_table(self, table: TableLike) -> DescribedActions:
        """Other actions, with the same columns."""
        return self.of(table, self.labels.column, self.columns, self.crossed)

    def candidates(self, table: RawTable, context: Tensor) -> ActionInputs:
        """Context, features and products, [row, action, column]."""
        rows, actions = len(context), len(self.labels)
        shared = context[:, None].expand(-1, actions, -1)
        vectors = self._vectors().expand(rows, -1, -1)
        found = self._combined(shared.flatten(0, 1), vectors.flatten(0, 1))
        return ActionInputs(found.unflatten(0, (rows, actions)), None, [self.labels.names] * rows)

    def inputs(self, table: RawTable, context: Tensor) -> Tensor:
        """Context, features of the action of each row, and products."""
        cure = "correct the name, or add the action by schema.with_actions(table)"
        numbers = self.labels.numbers_in(table, cure)
        return self._combined(context, self._vectors()[numbers])

    def _vectors(self) -> Tensor:
        width = len(self.columns.feature_names)
        return torch.tensor(self.vectors, dtype=torch.float64).reshape(len(self.labels), width)

    def _combined(self, context: Tensor, features: Tensor) -> Tensor:
        parts = [context, features]
        if self.crossed:
            parts.append((context[:, :, None] * features[:, None]).flatten(1))
        return torch.cat(parts, dim=1)


@dataclass(frozen=True)
class RowActions:
    """Every row of the table is a candidate; rows with one value of `group` are offered together.

    The names of candidates are the numbers of their rows.
    """

    group: str
    kind: ClassVar[str] = "rows"

    def __post_init__(self) -> None:
        _validate_group(self.group)

    def candidates(self, table: RawTable, context: Tensor) -> ActionInputs:
        """The rows of each group, padded to the largest one: [group, row, column]."""
        groups = Groups.of(table.column(self.group))
        return ActionInputs(
            groups.padded(context), groups.available, [own.tolist() for own in groups.rows], groups
        )

    def inputs(self, table: RawTable, context: Tensor) -> Tensor:
        """The context of each row, which is the candidate."""
        return context


@dataclass(frozen=True)
class Items:
    """A catalogue of items that have names and no columns.

    Attributes:
        labels: the items that are offered in every row without a `group`.
        group: rows with one value of this column offer their items together. Items may be new.
    """

    labels: Labels
    group: str | None = None
    kind: ClassVar[str] = "items"

    def __post_init__(self) -> None:
        if self.group is not None:
            _validate_group(self.group)

    def candidates(self, table: RawTable, context: Tensor) -> ActionInputs:
        """Ids of items, [row, action]."""
        if self.group is None:
            ids = torch.tensor([item_id(name) for name in self.labels.names])
            rows = table.num_rows
            return ActionInputs(ids.expand(rows, -1), None, [self.labels.names] * rows)
        groups, items = Groups.of(table.column(self.group)), table.column(self.labels.column)
        names = complete_labels(items)
        return ActionInputs(
            groups.padded(item_ids(items)),
            groups.available,
            [[names[row] for row in own.tolist()] for own in groups.rows],
            groups,
        )

    def inputs(self, table: RawTable, context: Tensor) -> Tensor:
        """The id of the item of each row."""
        return item_ids(table.column(self.labels.column))


def _validate_group(group: Any) -> None:
    if not isinstance(group, str):
        raise InvalidInputError(f"group must be the name of a column, got {group!r}")


def _have_decimals(names: Sequence[Label]) -> bool:
    """Whether all names are numbers, and some of them have decimals."""
    has_text = any(isinstance(name, str | bool) for name in names)
    return not has_text and any(float(name) % 1 > 0 for name in names)

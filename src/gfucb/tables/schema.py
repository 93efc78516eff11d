"""The schema of a decision problem: from tables to the inputs of agents, and back to names."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import validate_flag
from gfucb.tables.action_kinds import (
    ActionKind,
    DescribedActions,
    Items,
    NamedActions,
    RowActions,
)
from gfucb.tables.column_kinds import ColumnKind
from gfucb.tables.column_values import rewards_of
from gfucb.tables.columns import Columns, Encoder, validate_kinds
from gfucb.tables.frames import RawTable, TableLike, read_table
from gfucb.tables.labels import Labels
from gfucb.tables.offers import Offers, availability
from gfucb.tables.schema_json import (
    read_schema_file,
    schema_from_json,
    schema_to_json,
    write_schema,
)
from gfucb.tables.transformed import Transformed

# More products of context and features of actions than this are left out.
MOST_PRODUCTS = 100
# Names at least this alike, by `difflib`, may be misspellings of each other.
SIMILAR = 0.85
# Which of action, item and group can be stated together.
CHOICES = {(True, False, False), (False, True, False), (False, False, True), (False, True, True)}


@dataclass(frozen=True)
class Schema:
    """Which columns of a table are what, and how they become numbers.

    >>> history = {"store": ["Oslo", "Lima"], "visitors": [910, 1240],
    ...            "promotion": ["none", "coupon"], "revenue": [120.0, 260.0]}
    >>> schema = Schema.of(history, task="store", action="promotion", reward="revenue")
    >>> offers = schema.offers({"store": ["Lima"], "visitors": [1000]})
    >>> offers
    Offers(1 row of 2 actions)

    `agent.learn(*schema.samples(history))` learns a log, `agent.decide(*offers)` decides, and
    `offers.chosen(decision)` names the actions. A schema is a value: tables are always encoded in
    the same way, whatever the order of their rows and columns. Save it with the agent.

    Attributes:
        context: encodes the columns that describe a row.
        actions: what can be chosen in a row.
        task: names of tasks; None if there is one task.
        reward: the column of rewards in a log.
    """

    context: Encoder
    actions: ActionKind
    task: Labels | None = None
    reward: str | None = None

    @classmethod
    def of(
        cls,
        table: TableLike,
        *,
        task: str | None = None,
        action: str | None = None,
        item: str | None = None,
        group: str | None = None,
        reward: str | None = None,
        tasks: Iterable[Any] | None = None,
        actions: Any = None,
        columns: Mapping[str, ColumnKind] | None = None,
        ignore: Collection[str] = (),
        transformer: Any = None,
        crossed: bool | None = None,
    ) -> Schema:
        """The schema of tables like this one, usually a log.

        One of `action`, `item` or `group` says what is chosen in a row:

        * `action`: one of a few actions that all rows have in common;
        * `item`: one of many items that have names and no columns;
        * `group`: one row of the table, among those with the same value in this column.

        All columns without such a role are the context.

        Args:
            table: a data frame, a dict of columns, a list of dicts or an array.
            task: the column with the name of the task; None if there is one task.
            action: the column with the name of the action.
            item: the column with the name of the item.
            group: the column whose values hold rows together.
            reward: the column of rewards.
            tasks: the names of all tasks; by default those of the table, sorted.
            actions: the names of all actions, or a table with one row for each, in which the
                column `action` has the name and the others are features. By default the names in
                the table, sorted; names that are not in the table come last.
            columns: kinds of columns, where they should not be inferred.
            ignore: columns that are left out.
            transformer: a fitted transformer of scikit-learn, which encodes the context instead.
            crossed: whether inputs have the products of context and features of actions; by
                default if there are at most 100 of them.
        """
        raw = read_table(table)
        roles = _distinct_roles(task, action, item, reward) | ({group} if group else set())
        kinds, ignored = _checked(raw, columns, ignore, roles)
        _require_no_misspelling(raw, roles, ignored | set(kinds))
        if reward in raw.names:  # a table may lack its rewards
            rewards_of(raw.column(reward))
        if kinds and transformer is not None:
            raise InvalidInputError("pass columns or a transformer, which encodes all columns")
        context: Encoder = (
            Columns.of(raw, kinds, ignored | roles)
            if transformer is None
            else Transformed(transformer)
        )
        chosen = _action_kind(raw, action, item, group, actions, crossed, context)
        return cls(context, chosen, _task_labels(raw, task, tasks), reward)

    @property
    def num_tasks(self) -> int:
        """How many tasks an agent needs at least."""
        return 1 if self.task is None else len(self.task)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Of the columns of the context."""
        return self.context.feature_names

    def offers(self, table: TableLike, available: Any = None) -> Offers:
        """What can be chosen in each row of a table: `agent.decide(*schema.offers(table))`.

        `available` are booleans [row, action], or for each row a list of the names of actions.
        """
        raw = read_table(table)
        if raw.num_rows == 0:
            raise InvalidInputError("the table has no rows, so there is nothing to decide")
        found = self.actions.candidates(raw, self._encode(table, raw))
        tasks = self.tasks(raw)
        if found.groups is not None:
            column = "" if self.task is None else self.task.column
            tasks = found.groups.common(tasks, column)
        mask = availability(available, found.names)
        if mask is None or found.available is None:
            mask = found.available if mask is None else mask
        else:
            mask = mask & found.available
        return Offers(found.candidates, tasks, mask, found.names)

    def samples(self, table: TableLike) -> tuple[Tensor, Tensor, Tensor]:
        """Tasks, inputs and rewards of a log: `agent.learn(*schema.samples(table))`."""
        raw = read_table(table)
        context = self._encode(table, raw)
        return self.tasks(raw), self.actions.inputs(raw, context), self.rewards(raw)

    def tasks(self, table: TableLike) -> Tensor:
        """The number of the task of each row, [row]."""
        raw = read_table(table)
        if self.task is None:
            return torch.zeros(raw.num_rows, dtype=torch.int64)
        return self.task.numbers_in(
            raw,
            "correct the name, or add it by schema.with_tasks([...]) and build the agent with "
            "num_tasks for all of them",
        )

    def rewards(self, table: TableLike) -> Tensor:
        """The rewards of a log, [row]."""
        if self.reward is None:
            raise InvalidInputError("the schema has no column of rewards; pass reward= to of")
        column = read_table(table).column(self.reward)
        if column.missing.any():
            row = int(np.flatnonzero(column.missing)[0])
            raise InvalidInputError(
                f"the column {self.reward!r} has no reward in row {row}; leave such rows out, "
                f"for example by table.dropna(subset=[{self.reward!r}])"
            )
        return torch.from_numpy(rewards_of(column))

    def _encode(self, table: TableLike, raw: RawTable) -> Tensor:
        # Transformers need the table as it was given.
        return self.context.encode(table if isinstance(self.context, Transformed) else raw)

    def with_tasks(self, names: Iterable[Any]) -> Schema:
        """With further tasks; those before keep their numbers."""
        if self.task is None:
            raise InvalidInputError("the schema has no column of tasks; pass task= to of")
        return replace(self, task=self.task.extended(names))

    def with_tasks_of(self, table: TableLike) -> Schema:
        """With those tasks of a table that it does not know yet."""
        new = [] if self.task is None else self.task.unknown_in(read_table(table))
        return self.with_tasks(new) if new else self

    def with_actions(self, table: TableLike) -> Schema:
        """With the actions of another table, whose features have the same columns."""
        if not isinstance(self.actions, DescribedActions):
            raise InvalidInputError(
                "only actions with features can be replaced; make a new schema and agent otherwise"
            )
        return replace(self, actions=self.actions.with_table(table))

    def to_json(self) -> str:
        """The schema as JSON; `gfucb.save(agent, path, notes={"schema": ...})` stores it."""
        return schema_to_json(self.context, self.actions, self.task, self.reward)

    @classmethod
    def from_json(cls, text: str, transformer: Any = None) -> Schema:
        """The schema of a JSON text; a `transformer` of scikit-learn is passed again."""
        return cls(*schema_from_json(text, transformer))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON to a file, atomically."""
        write_schema(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str], transformer: Any = None) -> Schema:
        """Read a file that `save` wrote, or that of an agent with the note "schema"."""
        return cls.from_json(read_schema_file(path), transformer)


def _distinct_roles(*names: str | None) -> set[str]:
    """The columns with a role; only a group may have another one."""
    stated = [name for name in names if name is not None]
    for name in stated:
        if isinstance(name, list | tuple | set | dict):
            raise InvalidInputError(f"a role is the name of one column, got {name!r}")
    if len(set(stated)) < len(stated):
        raise InvalidInputError(
            f"task, action, item and reward must be different columns, got {stated}"
        )
    return set(stated)


def _checked(
    raw: RawTable,
    columns: Mapping[str, ColumnKind] | None,
    ignore: Collection[str],
    roles: set[str],
) -> tuple[dict[str, ColumnKind], set[str]]:
    """Kinds of columns and ignored columns, all of which the table must have."""
    if isinstance(ignore, str) or not isinstance(ignore, Collection):
        raise InvalidInputError(f"ignore must be a list of names, such as ['id'], got {ignore!r}")
    kinds = validate_kinds({} if columns is None else columns)
    for name in kinds:
        if name in roles or name in ignore:
            raise InvalidInputError(f"the column {name!r} is not part of the context")
    for name in [*kinds, *ignore]:
        if name not in raw.names:
            raw.column(name)  # says which columns there are
    return kinds, set(ignore)


def _require_no_misspelling(raw: RawTable, roles: set[str], known: set[str]) -> None:
    """Refuse names of roles that the table does not have if it has similar ones.

    A table may lack its rewards and actions. One whose reward is "Sales" and not "sales" would be
    taken for such a table, with its rewards as a column of the context.
    """
    others = {name.casefold().strip(): name for name in raw.names if name not in roles | known}
    for role in sorted(name for name in roles if isinstance(name, str) and name not in raw.names):
        close = get_close_matches(role.casefold().strip(), others, n=1, cutoff=SIMILAR)
        if close:
            name = others[close[0]]
            raise InvalidInputError(
                f"the table has no column {role!r}, but {name!r}; correct the name, leave that "
                f"column out by ignore=[{name!r}], or state its kind in columns"
            )


def _task_labels(raw: RawTable, task: str | None, tasks: Iterable[Any] | None) -> Labels | None:
    """The names of tasks: those stated, or those of the table."""
    if task is None:
        if tasks is not None:
            raise InvalidInputError("tasks are named, but task, the column of their names, is not")
        return None
    return Labels.of(raw.column(task)) if tasks is None else Labels.listed(task, tasks)


def _action_kind(
    raw: RawTable,
    action: str | None,
    item: str | None,
    group: str | None,
    actions: Any,
    crossed: bool | None,
    context: Encoder,
) -> ActionKind:
    """What is chosen in a row, from the arguments of `Schema.of`."""
    if crossed is not None:
        validate_flag(crossed, "crossed")
    choice = (action is not None, item is not None, group is not None)
    if choice not in CHOICES:
        raise InvalidInputError(
            "state what is chosen in a row by one of action, item or group (item and group may be "
            "combined): the name of a column"
        )
    if item is not None:
        if context.feature_names:
            rest = sorted(getattr(context, "kinds", context.feature_names))
            raise InvalidInputError(
                f"items have ids and no columns, but the table also has {rest}; leave them out "
                f"by ignore={rest}, or pass the items as action or as rows with a group"
            )
        labels = Labels.of(raw.column(item)) if actions is None else Labels.listed(item, actions)
        return Items(labels, group)
    if action is None:
        return RowActions(str(group))
    if actions is None:
        return NamedActions.of(raw.column(action))
    if _are_names(actions):
        labels = Labels.listed(action, actions)
        return NamedActions(
            labels.starting_with(raw.column(action)) if action in raw.names else labels
        )
    described = DescribedActions.of(actions, action, None, crossed=False)
    products = len(context.feature_names) * len(described.columns.feature_names)
    return replace(described, crossed=products <= MOST_PRODUCTS if crossed is None else crossed)


def _are_names(actions: Any) -> bool:
    """Whether actions are a list of names and no table."""
    is_list = isinstance(actions, list | tuple | range | set | frozenset | str)
    if is_list or getattr(actions, "ndim", 0) == 1:
        return not any(isinstance(action, Mapping) for action in actions)
    return False

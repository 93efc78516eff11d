"""Logs as tables: one row for each decision, with named tasks and actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.arrays import to_tensor
from gfucb.evaluation.log_columns import LogColumns
from gfucb.evaluation.logged_decisions import LoggedDecisions
from gfucb.tables import Schema
from gfucb.tables.column_values import numbers_of, rewards_of
from gfucb.tables.frames import RawTable, TableLike, read_table
from gfucb.tables.labels import Labels, shown_names
from gfucb.tables.raw_columns import Label

# What to do about a log that has no names of actions.
NAMELESS = (
    ", which are numbers because its decisions were made without names; pass one of them, or the "
    "schema of the candidates (--schema FILE, or log_of_decisions(log, schema=schema))"
)
TO_NUMBERS = "convert the column to numbers from 0 to 1 before"
# Between the names of available actions in a cell.
SEPARATOR = "|"


@dataclass(frozen=True, eq=False)
class NamedLog:
    """A log with the names of its actions and tasks.

    Attributes:
        log: the logged decisions.
        action_names: by number. Empty if the actions of the rows have no common names.
        task_names: by number.
        table: the rows as they were read, for agents with a schema of their own; None if the log
            was no table.
    """

    log: LoggedDecisions
    action_names: tuple[Any, ...] = ()
    task_names: tuple[Any, ...] = ()
    table: RawTable | None = field(default=None, repr=False)

    def action(self, name: Any) -> int:
        """The number of an action, given by its name; 3, 3.0 and "3" are one name."""
        numbers = {str(known): number for number, known in enumerate(self.action_names)}
        if not numbers:
            numbers = {str(number): number for number in range(self.log.num_actions)}
        is_whole = isinstance(name, float) and name.is_integer()
        text = str(int(name) if is_whole else name)
        if text not in numbers:
            cure = "" if self.action_names else NAMELESS
            raise InvalidInputError(
                f"the log has no action {name!r}; it has {shown_names(list(numbers))}{cure}"
            )
        return numbers[text]


def log_of_table(
    table: TableLike,
    columns: LogColumns | None = None,
    *,
    actions: Collection[Any] | None = None,
) -> NamedLog:
    """Read a table with one row for each decision, in the order they were made.

    The context and the one-hot action are the candidates of the log (`gfucb.tables.Schema`).

    >>> table = {"action": ["none", "coupon"], "probability": [0.5, 0.25], "reward": [0, 1]}
    >>> log_of_table(table).log
    LoggedDecisions(2 rows, 2 actions, 1 task)

    Args:
        table: a data frame, a dict of columns, a list of dicts or an array.
        columns: which columns hold what.
        actions: the names of all actions; by default those in the table.
    """
    columns = LogColumns() if columns is None else columns
    if not isinstance(columns, LogColumns):
        raise InvalidInputError(f"columns must be LogColumns(...), got {columns!r:.60}")
    raw = read_table(table)
    if raw.num_rows == 0:
        raise InvalidInputError("the log has no rows; an estimate needs at least one")
    _require_columns(raw, columns)
    labels = _action_labels(raw, columns, actions)
    schema = _schema(raw, columns, labels)
    offers = schema.offers(raw, _available_names(raw, columns.available))
    log = LoggedDecisions(
        labels.numbers_in(raw, "pass the names of all actions"),
        numbers_of(raw.column(columns.probability), "probability", cure=TO_NUMBERS),
        rewards_of(raw.column(columns.reward)),
        offers.candidates,
        offers.tasks,
        offers.available,
        _action_probabilities(raw, columns.prefix, labels.names),
        num_tasks=schema.num_tasks,
    )
    task_names = () if schema.task is None else schema.task.names
    return NamedLog(log, labels.names, task_names, raw)


def _schema(raw: RawTable, columns: LogColumns, labels: Labels) -> Schema:
    others = columns.roles(raw) - {columns.action, columns.task}
    try:
        return Schema.of(
            raw,
            task=columns.task,
            action=columns.action,
            actions=list(labels.names),
            ignore=sorted(name for name in others if name in raw.names),
        )
    except InvalidInputError as error:
        if "ignore=[" not in str(error):
            raise
        raise InvalidInputError(
            f"{error}; columns of a log are left out by LogColumns(ignore=(NAME,)), on the command "
            "line --columns.ignore NAME"
        ) from error


def _require_columns(raw: RawTable, columns: LogColumns) -> None:
    stated = [columns.action, columns.probability, columns.reward, columns.task, columns.available]
    twice = [name for name, count in Counter(stated).items() if count > 1 and name is not None]
    if twice:
        raise InvalidInputError(f"the column {twice[0]!r} can be one part of the log only")
    for role in ("action", "probability", "reward"):
        name = getattr(columns, role)
        if name not in raw.names:
            raise InvalidInputError(
                f"{raw.without(name)}; name the column by LogColumns({role}=...), on the command "
                f"line --columns.{role} NAME"
            )
        raw.column(name)  # may refuse its values
    if isinstance(columns.ignore, str):
        raise InvalidInputError(f"ignore must be a tuple such as ('id',), got {columns.ignore!r}")
    for name in columns.ignore:
        if name not in raw.names:
            raise InvalidInputError(
                f"{raw.without(name)}; correct LogColumns(ignore=...), on the command line "
                "--columns.ignore"
            )


def _action_labels(raw: RawTable, columns: LogColumns, actions: Collection[Any] | None) -> Labels:
    """The names of all actions: those stated, those with probabilities, or those in the table."""
    if actions is not None:
        return Labels.listed(columns.action, actions)
    if columns.prefix is not None:
        prefix = columns.prefix
        names = [name.removeprefix(prefix) for name in raw.names if name.startswith(prefix)]
        if not names:
            raise InvalidInputError(f"the table has no column that starts with {prefix!r}")
        return Labels.listed(columns.action, names)
    found = [str(label) for label in Labels.of(raw.column(columns.action)).names]
    if columns.available is not None:
        for own in _available_names(raw, columns.available) or []:
            found += own
    return Labels.listed(columns.action, sorted(set(found)))


def _available_names(raw: RawTable, column: str | None) -> list[list[str]] | None:
    if column is None:
        return None
    texts = raw.column(column).texts()
    if None in texts:
        raise InvalidInputError(
            f"the column {column!r} must hold the names of the available actions in every row, "
            f"separated by {SEPARATOR}, but row {texts.index(None)} is empty"
        )
    return [[name.strip() for name in str(text).split(SEPARATOR)] for text in texts]


def _action_probabilities(
    raw: RawTable, prefix: str | None, names: tuple[Label, ...]
) -> Tensor | None:
    """Probabilities of all actions [row, action]; an empty cell is 0."""
    if prefix is None:
        return None
    columns = [
        to_tensor(numbers_of(raw.column(f"{prefix}{name}"), "probability", cure=TO_NUMBERS), prefix)
        for name in names
    ]
    return torch.stack(columns, 1).nan_to_num(0.0)

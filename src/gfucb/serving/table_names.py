"""Tables with a schema: their tasks and actions by name."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.serving.names import Name, encode_name
from gfucb.tables import Offers, Schema
from gfucb.tables.frames import TableLike

# The name of the only task of a schema without a column of tasks.
ONLY_TASK = "all"


def schema_of(schema: Any, table: TableLike, *, creates_tasks: bool) -> Schema:
    """The schema, if it is one, with new tasks of the table if they are to be created."""
    if not isinstance(schema, Schema):
        raise InvalidInputError(
            f"schema must be a gfucb.tables.Schema, got {type(schema).__name__}"
        )
    return schema.with_tasks_of(table) if creates_tasks else schema


def task_names(schema: Schema, tasks: Tensor) -> list[Name]:
    """The names of tasks [row], which the schema has numbered."""
    if schema.task is None:
        return [ONLY_TASK] * len(tasks)
    names = [_name(label) for label in schema.task.names]
    return [names[number] for number in tasks.tolist()]


def _name(label: Any) -> Name:
    """Columns of integers with gaps hold floats: 3.0 is the name 3."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def common_names(offers: Offers) -> tuple[str, ...] | None:
    """The encoded names of the actions, if all rows have the same ones."""
    first = list(offers.names[0])
    if any(list(names) != first for names in offers.names):
        return None
    return tuple(encode_name(_name(label), "action") for label in first)

"""Logs as Arrow tables, which Parquet files and many other tools hold.

This module needs the extra `arrow`; no other module of the package imports it with the package.
Plain Arrow tables with a column for each fact are read by `log_of_table`, as data frames are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.log_protocol import DecisionStore
from gfucb.evaluation.logged_decisions import LoggedDecisions
from gfucb.evaluation.table_logs import NamedLog
from gfucb.serving.log_tables import COLUMNS, RowFilter, log_rows
from gfucb.serving.names import decode_name, encode_name

try:
    import pyarrow as pa
    from pyarrow import parquet
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("Arrow tables need pyarrow: pip install 'gfucb[arrow]'") from error

# The key of the schema's metadata, and the version of the format.
KEY, VERSION = b"gfucb.log", 1
# Lists of one length in all rows: [row, action, *input] or [row, action].
LISTS = ("candidates", "available", "action_probabilities")


def arrow_table(named: NamedLog | LoggedDecisions) -> pa.Table:
    """A log as an Arrow table, one row for each decision; `log_of_arrow` reads it again.

    >>> log = LoggedDecisions(actions=[0, 1], probabilities=[0.5, 0.25], rewards=[1.0, 0.0])
    >>> table = arrow_table(log)
    >>> table.column_names
    ['task', 'action', 'probability', 'reward', 'available']
    >>> log_of_arrow(table).log
    LoggedDecisions(2 rows, 2 actions, 1 task)

    The columns task and action hold names, or numbers as texts where there are no names. Inputs
    and probabilities of all actions are lists; the metadata has their shapes and the names.
    """
    named = NamedLog(named) if isinstance(named, LoggedDecisions) else named
    log = named.log
    tasks = _encoded(named.task_names or range(log.num_tasks))
    actions = _encoded(named.action_names or range(log.num_actions))
    columns = {
        "task": _texts(log.tasks, tasks),
        "action": _texts(log.actions, actions),
        "probability": pa.array(log.probabilities.numpy()),
        "reward": pa.array(log.rewards.numpy()),
    }
    lists = {
        "candidates": log.candidates if log.has_candidates else None,
        "available": log.available,
        "action_probabilities": log.action_probabilities,
    }
    known = {name: values for name, values in lists.items() if values is not None}
    facts = {
        "version": VERSION,
        "tasks": tasks if named.task_names else None,
        "actions": actions if named.action_names else None,
        "num_tasks": log.num_tasks,
        "num_actions": log.num_actions,
        "shapes": {name: list(values.shape[1:]) for name, values in known.items()},
    }
    columns |= {name: _lists(values) for name, values in known.items()}
    return pa.table(columns).replace_schema_metadata({KEY: json.dumps(facts).encode()})


def is_arrow_log(schema: pa.Schema) -> bool:
    """Whether a table with this schema was made by `arrow_table`."""
    return KEY in (schema.metadata or {})


def log_of_arrow(table: pa.Table) -> NamedLog:
    """Read a table of `arrow_table`; it may have passed through a Parquet file, or lost rows."""
    if not is_arrow_log(table.schema):
        raise InvalidInputError(
            "the table was not made by arrow_table: its metadata has no 'gfucb.log'; read tables "
            "of your own by log_of_table(table, LogColumns(...))"
        )
    try:
        facts = json.loads(table.schema.metadata[KEY])
        if facts["version"] != VERSION:
            raise InvalidInputError(f"the table has version {facts['version']}, known is {VERSION}")
        lists = {name: _tensor(table, name, facts["shapes"]) for name in LISTS}
        tasks = facts["tasks"] or _encoded(range(facts["num_tasks"]))
        actions = facts["actions"] or _encoded(range(facts["num_actions"]))
        log = LoggedDecisions(
            _numbers(table, "action", actions),
            table["probability"].to_numpy(),
            table["reward"].to_numpy(),
            tasks=_numbers(table, "task", tasks),
            num_actions=facts["num_actions"],
            num_tasks=facts["num_tasks"],
            **lists,
        )
    except (KeyError, TypeError, ValueError, pa.ArrowInvalid) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"the table is not a complete log: {error!r}") from error
    return NamedLog(log, _decoded(facts["actions"]), _decoded(facts["tasks"]))


def parquet_log(path: Path) -> NamedLog | None:
    """Read a Parquet file of such a table; None if it holds another table."""
    if not is_arrow_log(parquet.read_schema(path)):
        return None
    return log_of_arrow(parquet.read_table(path))


def decision_table(
    store: DecisionStore, which: RowFilter | None = None, *, inputs: bool = False
) -> pa.Table:
    """The rows of a `gfucb.DecisionLog` as `gfucb log` exports them, with types of Arrow."""
    rows = list(log_rows(store, which, inputs=inputs))
    names = list(dict.fromkeys([*COLUMNS, *(name for row in rows for name in row)]))
    types = dict.fromkeys(names, pa.float64())
    texts = ("id", "task", "action_name", "status")
    types |= dict.fromkeys(texts, pa.string()) | {"action": pa.int64(), "event": pa.int64()}
    columns = {name: [row.get(name) for row in rows] for name in names}
    arrays = {name: pa.array(columns[name], types[name]) for name in names if name != "time"}
    moments = pa.array(columns["time"], pa.string()).cast(pa.timestamp("ms", "UTC"))
    return pa.table({name: moments if name == "time" else arrays[name] for name in names})


def _encoded(names: Iterable[Any]) -> list[str]:
    return [encode_name(name) for name in names]


def _decoded(names: list[str] | None) -> tuple[Any, ...]:
    return () if names is None else tuple(decode_name(name) for name in names)


def _shown(encoded: list[str]) -> list[str]:
    """Names for people: texts without quotes, others as JSON; all as JSON if two look alike."""
    names = [decode_name(text) for text in encoded]
    shown = [n if isinstance(n, str) else t for n, t in zip(names, encoded, strict=True)]
    return shown if len(set(shown)) == len(shown) else encoded


def _texts(numbers: Tensor, encoded: list[str]) -> pa.Array:
    """The name of each row, as a dictionary array."""
    return pa.DictionaryArray.from_arrays(numbers.numpy().astype(np.int32), _shown(encoded))


def _numbers(table: pa.Table, column: str, encoded: list[str]) -> list[int]:
    known = {text: number for number, text in enumerate(_shown(encoded))}
    found = table[column].to_pylist()
    for row, text in enumerate(found):
        if text not in known:
            raise InvalidInputError(
                f"the column {column!r} has an unknown name {text!r}, row {row}"
            )
    return [known[text] for text in found]


def _lists(values: Tensor) -> pa.Array:
    """Numbers of each row, [row, ...], as lists of one length."""
    flat = values.reshape(len(values), -1).numpy()
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), flat.shape[1])


def _tensor(table: pa.Table, column: str, shapes: dict[str, list[int]]) -> Tensor | None:
    if column not in shapes:
        return None
    flat = table[column].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return torch.from_numpy(flat.copy()).reshape(table.num_rows, *shapes[column])

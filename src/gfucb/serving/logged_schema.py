"""The schema of the tables of an agent: the log has the first one, and all others are like it.

A schema that is made anew from a file with more rows may encode the same values as other numbers,
of which the model knows nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gfucb.core.errors import InvalidInputError
from gfucb.tables import Schema

# What of each kind of actions the inputs depend on; names of actions with features may change.
ENCODING_OF_ACTIONS = {
    "named": ("kind", "names"),
    "items": ("kind", "names"),
    "described": ("kind", "features", "crossed"),
}


def schema_text(schema: Schema) -> str | None:
    """The schema as JSON; None if JSON cannot hold it."""
    try:
        return schema.to_json()
    except InvalidInputError:  # an encoder of the user's own
        return None


def require_same_encoding(schema: Schema, logged: str, log_name: str) -> None:
    """Refuse a schema that turns the same table into other inputs than the logged one."""
    own = schema_text(schema)
    if own is None:
        return
    difference = _difference(_encoding(json.loads(logged)), _encoding(json.loads(own)))
    if difference is not None:
        raise InvalidInputError(
            f"the schema encodes {difference} otherwise than that of {log_name}, so the model "
            "would misread the table; use agent.logged_schema(), or keep a schema with schema.save"
        )


def _encoding(content: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a schema that inputs depend on, by their names in a message."""
    context, actions = content["context"], content["actions"]
    columns = {
        f"the column {name!r}": kind for name, kind in context.get("columns", {}).items()
    } or {"the context": context}
    chosen = ENCODING_OF_ACTIONS.get(actions["kind"], ("kind",))
    return columns | {"the actions": {name: actions[name] for name in chosen}}


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    names = dict.fromkeys([*one, *other])
    different = next((name for name in names if one.get(name) != other.get(name)), None)
    if different is None and list(one) != list(other):
        return "the order of the columns"
    return different

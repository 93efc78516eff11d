"""Schemas as JSON: versioned, and checked completely when they are read."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from gfucb.core.checkpoint import read_notes
from gfucb.core.errors import InvalidInputError, SavedStateError
from gfucb.core.files import atomic_write
from gfucb.tables.action_kinds import (
    ActionKind,
    DescribedActions,
    Items,
    NamedActions,
    RowActions,
)
from gfucb.tables.columns import KINDS, Columns, Encoder
from gfucb.tables.labels import Labels
from gfucb.tables.transformed import Transformed

FORMAT = "gfucb schema 1"
NOTE = "schema"
Parts = tuple[Encoder, ActionKind, Labels | None, str | None]


def schema_to_json(
    context: Encoder, actions: ActionKind, task: Labels | None, reward: str | None
) -> str:
    """The parts of a schema as JSON."""
    content = {
        "format": FORMAT,
        "task": None if task is None else _labels_to_dict(task),
        "reward": reward,
        "context": _encoder_to_dict(context),
        "actions": _actions_to_dict(actions),
    }
    return json.dumps(content, indent=1, allow_nan=False)


def schema_from_json(text: str, transformer: Any = None) -> Parts:
    """The parts of a schema, or a message that says what is wrong with the JSON."""
    try:
        content = json.loads(text)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"the schema is no JSON: {error}") from error
    if not isinstance(content, dict) or not str(content.get("format")).startswith("gfucb schema"):
        raise InvalidInputError('the JSON is no schema: it has no "format" of this library')
    if content["format"] != FORMAT:
        raise InvalidInputError(
            f"the schema has the format {content['format']!r}, this version reads {FORMAT!r}; "
            "read it with the version that wrote it"
        )
    try:
        task, reward = content["task"], content["reward"]
        if not (reward is None or isinstance(reward, str)):
            raise InvalidInputError(f"the column of rewards must be text, got {reward!r}")
        return (
            _encoder_from_dict(content["context"], transformer),
            _actions_from_dict(content["actions"]),
            None if task is None else _labels_from_dict(task),
            reward,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        shown = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise InvalidInputError(f"the JSON of the schema is damaged: {shown}") from error


def write_schema(path: str | os.PathLike[str], text: str) -> None:
    """Write the JSON of a schema, atomically."""
    try:
        atomic_write(path, lambda target: target.write_text(text + "\n", encoding="utf-8"))
    except OSError as error:
        raise SavedStateError(f"cannot write {path}: {error}") from error


def read_schema_file(path: str | os.PathLike[str]) -> str:
    """The JSON of a schema: of a file of its own, or among the notes of a saved agent."""
    if not Path(path).is_file():
        raise SavedStateError(f"there is no schema at {path}")
    content = Path(path).read_bytes()
    if content.lstrip()[:1] == b"{":
        return content.decode("utf-8", "replace")
    try:
        notes = read_notes(path)
    except SavedStateError as error:
        raise SavedStateError(
            f"{path} is neither a schema, as Schema.save writes it, nor an agent, as gfucb.save "
            f"does: {error}"
        ) from error
    if NOTE not in notes:
        raise SavedStateError(
            f"{path} holds an agent without a schema; save it by gfucb.save(agent, path, "
            'notes={"schema": schema.to_json()})'
        )
    return notes[NOTE]


def _labels_to_dict(labels: Labels) -> dict[str, Any]:
    return {"column": labels.column, "names": list(labels.names)}


def _labels_from_dict(content: dict[str, Any]) -> Labels:
    return Labels(content["column"], content["names"])


def _encoder_to_dict(encoder: Encoder) -> dict[str, Any]:
    if isinstance(encoder, Transformed):
        return {
            "kind": Transformed.kind,
            "transformer": type(encoder.transformer).__name__,
            "features": list(encoder.feature_names),
        }
    if not isinstance(encoder, Columns):
        raise InvalidInputError(f"JSON cannot hold an encoder of the type {type(encoder).__name__}")
    columns = {
        name: {"kind": kind.kind, **{f.name: getattr(kind, f.name) for f in fields(kind)}}  # type: ignore[arg-type]
        for name, kind in encoder.kinds.items()
    }
    return {"kind": Columns.kind, "columns": columns}


def _encoder_from_dict(content: dict[str, Any], transformer: Any) -> Encoder:
    if content["kind"] == Transformed.kind:
        if transformer is None:
            raise InvalidInputError(
                f"the schema uses a transformer of the type {content['transformer']}, which JSON "
                "cannot hold; pass it as transformer="
            )
        found = Transformed(transformer)
        if list(found.feature_names) != content["features"]:
            raise InvalidInputError(
                "the transformer has other features than that of the saved schema; pass the same"
            )
        return found
    if content["kind"] != Columns.kind:
        raise InvalidInputError(f"unknown kind of context {content['kind']!r}")
    return Columns({name: _kind_from_dict(name, c) for name, c in content["columns"].items()})


def _kind_from_dict(name: str, content: dict[str, Any]) -> Any:
    given = dict(content)
    kind = given.pop("kind")
    if kind not in KINDS:
        raise InvalidInputError(f"the column {name!r} has the unknown kind {kind!r}")
    expected = {f.name for f in fields(KINDS[kind])}
    if set(given) != expected or any(value is None for value in given.values()):
        raise InvalidInputError(
            f"the column {name!r} of kind {kind} must have the fields {sorted(expected)}, "
            f"got {given!r:.120}"
        )
    return KINDS[kind](**given)


def _actions_to_dict(actions: ActionKind) -> dict[str, Any]:
    content: dict[str, Any] = {"kind": actions.kind}
    if isinstance(actions, NamedActions | DescribedActions | Items):
        content |= _labels_to_dict(actions.labels)
    if isinstance(actions, RowActions | Items):
        content["group"] = actions.group
    if isinstance(actions, DescribedActions):
        content["features"] = _encoder_to_dict(actions.columns)
        content["vectors"] = [list(vector) for vector in actions.vectors]
        content["crossed"] = actions.crossed
    return content


def _actions_from_dict(content: dict[str, Any]) -> ActionKind:
    kind = content["kind"]
    if kind == RowActions.kind:
        return RowActions(content["group"])
    labels = _labels_from_dict(content)
    if kind == NamedActions.kind:
        return NamedActions(labels)
    if kind == Items.kind:
        return Items(labels, content["group"])
    if kind != DescribedActions.kind:
        raise InvalidInputError(f"unknown kind of actions {kind!r}")
    columns = _encoder_from_dict(content["features"], None)
    assert isinstance(columns, Columns)
    return DescribedActions(labels, columns, content["vectors"], content["crossed"])

"""Settings as config.json has them, and how two of them differ.

A dataclass of settings may get a field after runs were stored. Such a run does not state the field;
it was computed with what is now the default, and is read so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


def plain_settings(settings: Any) -> Any:
    """The same settings with dictionaries instead of dataclasses, at every depth."""
    if _is_dataclass_value(settings):
        return plain_settings(_fields_of(settings))
    if isinstance(settings, Mapping):
        return {name: plain_settings(value) for name, value in settings.items()}
    if isinstance(settings, list | tuple):
        return [plain_settings(value) for value in settings]
    return settings


def default_settings(settings: Any) -> dict[str, Any]:
    """The defaults of the fields of all dataclasses in `settings`, nested as they are."""
    found = field_defaults(type(settings)) if _is_dataclass_value(settings) else {}
    values = _fields_of(settings) if _is_dataclass_value(settings) else settings
    for name, value in values.items():
        if _is_dataclass_value(value) or isinstance(value, Mapping):
            found[name] = default_settings(value)
    return {name: plain_settings(value) for name, value in found.items()}


def field_defaults(kind: type[Any]) -> dict[str, Any]:
    """The defaults of all fields of a dataclass that have one."""
    found = {}
    for field in dataclasses.fields(kind):
        if field.default is not dataclasses.MISSING:
            found[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            found[field.name] = field.default_factory()
    return found


def first_difference(
    stored: Mapping[str, Any], own: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> str:
    """The first setting that differs, in words; empty if none does.

    Settings that `stored` does not have, but `own` has, are those of `defaults`.
    """
    left, right = _flat(stored), _flat(own)
    left = {name: v for name, v in _flat(defaults or {}).items() if name in right} | left
    for name in sorted(left.keys() | right.keys()):
        if left.get(name) != right.get(name):
            is_code = name.endswith("source_digest") or name.startswith("plugins.")
            hint = " (its code, or what it holds, is another one)" if is_code else ""
            return f"{name} = {left.get(name)!r}, not {right.get(name)!r}{hint}"
    return ""


def _is_dataclass_value(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _fields_of(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat

"""Digests of users' code, so that stored runs of other code are not taken for runs of this one."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from functools import partial
from types import CellType
from typing import Any

import numpy as np
import torch


def source_digest(definition: Any) -> str:
    """Identifies a function, class or object: its source, and the values that it holds.

    Functions hold the arguments of a `functools.partial`, defaults and variables of the function
    around them; objects hold attributes. Objects that they use count by the name of their class.
    """
    held = _held_values(definition)
    return text_digest(_source(definition) + ("" if not held else repr(_plain(held))))


def text_digest(text: str) -> str:
    """The first 16 digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _source(definition: Any) -> str:
    definition = definition.func if isinstance(definition, partial) else definition
    is_defined = inspect.isroutine(definition) or inspect.isclass(definition)
    try:
        return inspect.getsource(definition if is_defined else type(definition))
    except (OSError, TypeError):
        return ""


def _held_values(definition: Any) -> dict[str, Any]:
    """The values that the source does not show."""
    if inspect.isclass(definition):
        return {}
    if isinstance(definition, partial):
        given = {"args": definition.args, "keywords": definition.keywords}
        return given | {"of": _held_values(definition.func)}
    if inspect.ismethod(definition):
        return _held_values(definition.__self__)
    if inspect.isfunction(definition):
        names, cells = definition.__code__.co_freevars, definition.__closure__ or ()
        held = dict(zip(names, (_content(cell) for cell in cells), strict=True))
        defaults = (definition.__defaults__, definition.__kwdefaults__)
        return held | ({"defaults": defaults} if any(defaults) else {})
    return dict(getattr(definition, "__dict__", {}))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _plain(value: Any) -> Any:
    """The same value whenever it is made again; its `repr` states no address."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, np.ndarray | torch.Tensor):
        array = np.asarray(value.detach().cpu() if isinstance(value, torch.Tensor) else value)
        kept = array.tolist() if array.dtype.kind == "O" else array.tobytes()
        if isinstance(kept, bytes):
            return (str(array.dtype), array.shape, hashlib.sha256(kept).hexdigest())
        return _plain(kept)
    if isinstance(value, Mapping):
        return [(_plain(key), _plain(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, partial):
        return source_digest(value)
    if inspect.isroutine(value):
        return text_digest(_source(value))  # what it holds may refer to itself
    kind = value if inspect.isclass(value) else type(value)
    return kind.__qualname__  # without its module, which is __main__ where a script is run

"""Digests of users' code, so that stored runs of other code are not taken for runs of this one."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property, partial
from types import CellType, FunctionType
from typing import Any

import numpy as np
import torch

from gfucb.core.text_digest import text_digest

# Values that their text states.
STATED = complex | range | date | timedelta | Decimal | Enum
# Packages whose tables and columns are in memory.
TABLES = ("pandas", "polars", "pyarrow", "narwhals")


def source_digest(definition: Any) -> str:
    """Identifies a function, class or object: its source, and the values that it holds.

    Functions hold the arguments of a `functools.partial`, defaults and variables of the function
    around them; objects hold attributes. What a run may fill does not count: cached properties, and
    of dataclasses all that `==` does not compare. Numbers, texts, arrays, tables, functions,
    dataclasses and their collections count by their value, and all other objects by the name of
    their class: so do random generators, which a run changes.
    """
    return _digest(definition, ())


def _digest(definition: Any, around: tuple[Any, ...]) -> str:
    held = _held_values(definition)
    return text_digest(_source(definition) + ("" if not held else repr(_plain(held, around))))


def _source(definition: Any) -> str:
    definition = definition.func if isinstance(definition, partial) else definition
    is_defined = inspect.isroutine(definition) or inspect.isclass(definition)
    try:
        if getattr(definition, "__name__", "") == "<lambda>":
            return _source_of_lambda(definition)
        return inspect.getsource(definition if is_defined else type(definition))
    except (OSError, TypeError):
        return ""


def _source_of_lambda(function: FunctionType) -> str:
    """Names of arguments, and the body: the rest of its lines belongs to the call around it."""
    code = function.__code__
    known: list[Any] = [span for span in code.co_positions() if None not in span]
    spans = [(line, column, last, end) for line, last, column, end in known if column != end]
    if not spans:  # Python runs without positions
        return inspect.getsource(function)
    (first, begin), (last, end) = min(s[:2] for s in spans), max(s[2:] for s in spans)
    lines = [line.encode() for line in inspect.findsource(function)[0][first - 1 : last]]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return f"lambda {', '.join(names)}: {b''.join(lines).decode()}"


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
    return _attributes(definition)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _attributes(holder: Any) -> dict[str, Any]:
    """The attributes of an object, without those that a run may fill."""
    if dataclasses.is_dataclass(holder):
        fields = dataclasses.fields(holder)
        return {field.name: getattr(holder, field.name, None) for field in fields if field.compare}
    state: Any = object.__getstate__(holder)  # with __slots__
    plain, slots = state if isinstance(state, tuple) else (state, None)
    found = {**(plain or {}), **(slots or {})}
    cached = {
        name
        for kind in type(holder).__mro__
        for name, value in vars(kind).items()
        if isinstance(value, cached_property)
    }
    return {name: value for name, value in found.items() if name not in cached}


def _plain(value: Any, around: tuple[Any, ...]) -> Any:
    """The same value whenever it is made again; its `repr` states no address.

    Args:
        value: any value.
        around: the values of which it is a part, which it may refer to.
    """
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, STATED | np.generic):
        return f"{type(value).__name__}({value})"
    if any(value is other for other in around):
        return "itself"
    around = (*around, value)
    if isinstance(value, np.ndarray | torch.Tensor):
        return _plain_array(value, around)
    if type(value).__module__.split(".")[0] in TABLES and hasattr(value, "__array__"):
        return _plain_table(value, around)
    if isinstance(value, Mapping):
        return [(_plain(key, around), _plain(item, around)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [_plain(item, around) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(repr(_plain(item, around)) for item in value)
    if isinstance(value, partial) or inspect.isroutine(value):
        return _digest(value, around)
    kind = value if inspect.isclass(value) else type(value)
    name = kind.__qualname__  # without its module, which is __main__ where a script is run
    if value is kind or not dataclasses.is_dataclass(value):
        return name
    return (name, _plain(_attributes(value), around))


def _plain_table(value: Any, around: tuple[Any, ...]) -> Any:
    """A data frame, a column of one or another array: names, index and values."""
    names = getattr(value, "column_names", getattr(value, "columns", None))  # of Arrow, of others
    if names is None:
        columns = {getattr(value, "name", None): value}
    else:
        columns = {name: value[name] for name in names}
    index = getattr(value, "index", None)  # of pandas; elsewhere a method
    found = {name: np.asarray(column) for name, column in columns.items()}
    return _plain(
        found if callable(index) else [found, index is not None and np.asarray(index)], around
    )


def _plain_array(value: np.ndarray[Any, Any] | torch.Tensor, around: tuple[Any, ...]) -> Any:
    """The type, shape and digest of an array; the values of one that holds objects."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = value if value.layout is torch.strided else value.to_dense()
        value = value.float() if value.dtype is torch.bfloat16 else value  # numpy has no such type
    array = np.asarray(value)
    if array.dtype.hasobject:
        return _plain(array.tolist(), around)
    return (str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest())

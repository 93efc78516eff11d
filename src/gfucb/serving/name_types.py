"""Types of names: how values of a type become JSON, and back.

Names are stored in logs, so an object is not enough: after a restart the same name must be found
again. Each type here has a kind, under which its values are stored, a function to
values that can be stored, and one back. `register_name_type` adds a type of your own.
"""

from __future__ import annotations

import datetime
import fractions
import pathlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, cast

from gfucb.core.errors import InvalidInputError


@dataclass(frozen=True)
class NameType:
    """One type of names.

    Attributes:
        kind: the word under which names of this type are stored.
        type: of the objects; those of subclasses are stored as this type.
        encode: from an object to names of simpler types, such as text or a tuple.
        decode: back.
    """

    kind: str
    type: type[Any]
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def register_name_type(
    name_type: type[Any],
    encode: Callable[[Any], Any] | None = None,
    decode: Callable[[Any], Any] | None = None,
    *,
    kind: str | None = None,
) -> None:
    """Let objects of a type be names of tasks and actions, also after a restart.

    Call it in every process that opens the log. Members of an `Enum` are stored by their names and
    frozen data classes by their fields; for other types state both functions.

    >>> import enum, gfucb
    >>> class Region(enum.Enum):
    ...     NORTH, SOUTH = range(2)
    >>> gfucb.serving.register_name_type(Region)
    >>> gfucb.Agent(tasks=[Region.NORTH]).tasks
    (<Region.NORTH: 0>,)

    Args:
        name_type: a type with `__eq__` and `__hash__`.
        encode: from an object to text, a number, or a tuple of such values; equal objects have
            equal values.
        decode: from that value to an equal object.
        kind: the word that is stored with them, by default the qualified name of the type.
    """
    if not isinstance(name_type, type) or getattr(name_type, "__hash__", None) is None:
        raise InvalidInputError(f"names must have a hashable type, got {name_type!r}")
    if (encode is None) != (decode is None):
        raise InvalidInputError("state both encode and decode, or neither")
    if encode is None or decode is None:
        encode, decode = _known_functions(name_type)
    word = f"{name_type.__module__}.{name_type.__qualname__}" if kind is None else kind
    known = _KINDS.get(word)
    if known is not None and known.type is not name_type and known in _BUILT_IN:
        raise InvalidInputError(f"the kind {word!r} is that of {known.type.__name__}")
    _KINDS[word] = NameType(word, name_type, encode, decode)


def _known_functions(name_type: type[Any]) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    if issubclass(name_type, Enum):
        members = cast(Any, name_type)
        return lambda member: member.name, lambda name: members[name]
    if is_dataclass(name_type):
        names = [field.name for field in fields(name_type)]
        return (
            lambda value: tuple(getattr(value, name) for name in names),
            lambda values: name_type(*values),
        )
    raise InvalidInputError(
        f"{name_type.__name__} is neither an Enum nor a data class: state encode and decode"
    )


def name_type_of(name: Any) -> NameType | None:
    """The type under which an object is stored; the last registered first. None if unknown."""
    return next((t for t in reversed(_KINDS.values()) if isinstance(name, t.type)), None)


def name_type_of_kind(kind: str) -> NameType:
    """The type with this kind."""
    found = _KINDS.get(kind)
    if found is None:
        raise InvalidInputError(
            f"there are names of the type {kind}, which is not known in this process; call "
            "gfucb.serving.register_name_type with it first"
        )
    return found


def _encode_moment(moment: datetime.datetime) -> str:
    """Moments with a time zone are equal if they are the same in UTC."""
    if getattr(moment, "nanosecond", 0):  # of pandas
        raise ValueError("it has nanoseconds; names have at most microseconds")
    is_local = moment.tzinfo is None
    return (moment if is_local else moment.astimezone(datetime.UTC)).isoformat()


def _encode_decimal(value: Decimal) -> str:
    """All digits, without zeros at the end. Whole decimals are stored as integers instead."""
    if abs(int(value.as_tuple().exponent)) > 1000:
        raise ValueError("its exponent is too large")
    return format(value, "f").rstrip("0")


# Later ones are preferred: a datetime is a date.
_BUILT_IN = (
    NameType("bytes", bytes, bytes.hex, bytes.fromhex),
    NameType("date", datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    NameType("datetime", datetime.datetime, _encode_moment, datetime.datetime.fromisoformat),
    NameType("time", datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    NameType(
        "timedelta",
        datetime.timedelta,
        lambda value: (value.days, value.seconds, value.microseconds),
        lambda parts: datetime.timedelta(*parts),
    ),
    NameType("uuid", uuid.UUID, str, uuid.UUID),
    NameType("decimal", Decimal, _encode_decimal, Decimal),
    NameType("fraction", fractions.Fraction, str, fractions.Fraction),
    NameType("complex", complex, lambda value: (value.real, value.imag), lambda v: complex(*v)),
    NameType("path", pathlib.PurePath, pathlib.PurePath.as_posix, pathlib.PurePath),
    NameType("frozenset", frozenset, tuple, frozenset),
)
_KINDS: dict[str, NameType] = {each.kind: each for each in _BUILT_IN}

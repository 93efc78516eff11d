"""Catalogues: actions that all rows share, as an array, by name, or as names alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.arrays import to_candidates, to_inputs
from gfucb.serving.name_types import name_type_of
from gfucb.serving.names import encode_name


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The inputs of all actions [action, *input], their encoded names, or both.

    Actions without inputs are items: their input is the number of their name.
    """

    inputs: Tensor | None
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, value: Any) -> Catalogue:
        """Read a mapping from names to inputs, a list of names, or an array [action, *input].

        A data frame with names as its index has these names.
        """
        if isinstance(value, Mapping):
            if not value:
                raise InvalidInputError("catalogue must have at least one action, got none")
            inputs = to_inputs(list(value.values()), "catalogue")
            return cls(inputs, _names(value))
        if _are_names(items := _listed(value)):
            return cls(None, _names(items))
        labels = list(value.index) if hasattr(value, "index") and hasattr(value, "columns") else []
        names = _names(labels) if _are_names(labels) else None
        return cls(to_inputs(value, "catalogue"), names)

    def mask(self, available: Any) -> Any:
        """Booleans [row, action], where lists of the names of actions may be given instead."""
        if self.names is not None and isinstance(available, Iterator):
            available = list(available)
        if self.names is None or not isinstance(available, list | tuple):
            return available
        if any(isinstance(row, str) for row in available):
            raise InvalidInputError(
                "available must be booleans [row, action], or a list of names for each row, got "
                f"{available!r:.60}"
            )
        rows = [row for row in available if isinstance(row, list | tuple | set | frozenset)]
        values = [value for row in rows for value in row]
        is_named = not values or not all(isinstance(value, bool | np.bool_) for value in values)
        if not is_named or len(rows) < len(available):  # such as a list of arrays
            return available
        known = set(self.names)
        encoded = [[(encode_name(name, "action"), name) for name in row] for row in rows]
        for text, name in (pair for row in encoded for pair in row):
            if text not in known:
                raise InvalidInputError(
                    f"available names the action {name!r}, which is not in the catalogue"
                )
        offered = [{text for text, _ in row} for row in encoded]
        return [[name in names for name in self.names] for names in offered]


def _listed(value: Any) -> list[Any]:
    """The items of a list, a tuple, or a column of objects; nothing for anything else."""
    if isinstance(value, list | tuple):
        return list(value)
    is_column = getattr(value, "ndim", None) == 1 and not isinstance(value, Tensor)
    return list(value.tolist()) if is_column and hasattr(value, "tolist") else []


def _are_names(items: list[Any]) -> bool:
    """Whether items are names of actions; some that are and some that are not are refused."""
    found = [_is_name(item) for item in items]
    if any(found) and not all(found):
        name, other = items[found.index(True)], items[found.index(False)]
        raise InvalidInputError(
            "the actions of a catalogue must all have names or all have none, got the name "
            f"{name!r:.40} and {other!r:.40}; convert numbers that are names to text, and leave "
            "out what is missing"
        )
    return any(found)


def _is_name(item: Any) -> bool:
    """Whether an item can only be a name: numbers, and tuples of numbers, are inputs."""
    if isinstance(item, tuple):
        return any(_is_name(part) for part in item)
    return isinstance(item, str) or name_type_of(item) is not None


def offered_rows(candidates: Any) -> Tensor:
    """Candidates [row, action, *input] with at least one row and one action."""
    given = to_candidates(candidates)
    if given.ndim < 2 or 0 in given.shape:
        raise InvalidInputError(
            "candidates must have the shape [row, action, *input] with no axis empty, "
            f"got {list(given.shape)}"
        )
    return given


def _names(names: Any) -> tuple[str, ...]:
    texts = tuple(encode_name(name, "action") for name in names)
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InvalidInputError(f"the action {twice} is twice in the catalogue")
    return texts

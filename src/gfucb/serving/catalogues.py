"""Catalogues: actions that all rows share, as an array, by name, or as names alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.arrays import to_candidates, to_inputs
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
        """Read a mapping from names to inputs, a list of names, or an array [action, *input]."""
        if isinstance(value, Mapping):
            if not value:
                raise InvalidInputError("catalogue must have at least one action, got none")
            inputs = to_inputs(list(value.values()), "catalogue")
            return cls(inputs, _names(value))
        if isinstance(value, list) and value and all(isinstance(name, str) for name in value):
            return cls(None, _names(value))
        return cls(to_inputs(value, "catalogue"), None)


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

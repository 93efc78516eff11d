"""From contexts and actions of coba to the inputs of agents."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError

DENSE = "make it dense by the filter Environments.dense(n_feats, 'hashing')"


class CobaInputs:
    """Encodes interactions as candidates [action, column]: the context, then the action.

    Numbers stay as they are, a `Categorical` becomes one-hot, and actions that are names become a
    one-hot action. `names` are those that have a column; `add` gives columns to further ones.
    """

    def __init__(self, names: Iterable[Any] = ()) -> None:
        self.names = tuple(dict.fromkeys(map(str, names)))
        self._num_columns: int | None = None  # without those of names

    def new_names(self, actions: Sequence[Any] | None) -> list[str]:
        """The names among actions, and the levels of a `Categorical`, that have no column yet."""
        named = [action for action in actions or () if _is_name(action)]
        offered = [str(name) for own in named for name in getattr(own, "levels", None) or [own]]
        return [name for name in dict.fromkeys(offered) if name not in self.names]

    def add(self, names: Iterable[str], first: Iterable[str] = ()) -> None:
        """Give columns to further names, and those `first` the first columns."""
        self.names = tuple(dict.fromkeys([*first, *self.names, *names]))

    def candidates(self, context: Any, actions: Sequence[Any] | None) -> Tensor:
        """The candidates [action, column] of an interaction, whose names have columns."""
        if not actions:
            raise InvalidInputError(
                "an agent needs a list of actions, got an interaction with continuous ones; list "
                "some of them in the environment"
            )
        shared = _numbers(context, "context")
        rows = [shared + self._action(action) for action in actions]
        lengths = {len(row) - len(self.names) for row in rows}
        if self._num_columns is not None:
            lengths.add(self._num_columns)
        if len(lengths) > 1:
            raise InvalidInputError(
                "context and action must have the same length in all interactions, got "
                f"{sorted(length + len(self.names) for length in lengths)} numbers"
            )
        self._num_columns = lengths.pop()
        return torch.tensor(rows, dtype=torch.float64)

    def _action(self, action: Any) -> list[float]:
        if not _is_name(action):
            return _numbers(action, "action")
        number = self.names.index(str(action))
        return [float(column == number) for column in range(len(self.names))]


def without_task(context: Any, column: str | int) -> tuple[Hashable, Any]:
    """The task of a context, and the context without it."""
    try:
        if isinstance(context, Mapping):
            remaining = {name: value for name, value in context.items() if name != column}
            return context[column], remaining
        values = list(context)
        task = values.pop(int(column))
    except (KeyError, IndexError, TypeError, ValueError):
        raise InvalidInputError(
            f"the context has no column {column!r} with the name of the task, got {context!r}"
        ) from None
    return task, values


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


def _numbers(value: Any, noun: str) -> list[float]:
    """The numbers of a context or an action: None, a number, a category, or several of them."""
    if value is None:
        return []
    if isinstance(value, Real):
        return [float(value)]
    one_hot = getattr(value, "as_onehot", None)
    if one_hot is not None:
        return [float(number) for number in one_hot]
    if isinstance(value, Mapping):
        raise InvalidInputError(f"{noun}s with named features are sparse, got {value}; {DENSE}")
    if isinstance(value, str):
        raise InvalidInputError(
            f"{noun}s must consist of numbers and coba's Categorical, got the text {value!r}; "
            "convert it to a number, or encode it as a Categorical"
        )
    return [number for part in value for number in _numbers(part, noun)]

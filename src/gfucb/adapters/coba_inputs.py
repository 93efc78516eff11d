"""From contexts and actions of coba to the inputs of agents."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.tables.labels import shown_names

DENSE = "make it dense by the filter Environments.dense(n_feats, 'hashing')"


class CobaInputs:
    """Encodes interactions as candidates [action, column]: the context, then the action.

    Numbers stay as they are, a `Categorical` becomes one-hot, and actions that are names become a
    one-hot action. The names of the first interaction, or the levels of a `Categorical`, are all
    the names there are.
    """

    def __init__(self) -> None:
        self._names: dict[str, int] | None = None
        self._num_columns: int | None = None

    def candidates(self, context: Any, actions: Sequence[Any] | None) -> Tensor:
        """The candidates [action, column] of an interaction."""
        if not actions:
            raise InvalidInputError(
                "an agent needs a list of actions, got an interaction with continuous ones; list "
                "some of them in the environment"
            )
        shared = _numbers(context, "context")
        rows = [shared + self._action(action, actions) for action in actions]
        lengths = {len(row) for row in rows}
        if self._num_columns is not None:
            lengths.add(self._num_columns)
        if len(lengths) > 1:
            raise InvalidInputError(
                "context and action must have the same length in all interactions, got "
                f"{sorted(lengths)} numbers"
            )
        self._num_columns = len(rows[0])
        return torch.tensor(rows, dtype=torch.float64)

    def _action(self, action: Any, actions: Sequence[Any]) -> list[float]:
        if not _is_name(action):
            return _numbers(action, "action")
        if self._names is None:
            known = getattr(action, "levels", None) or actions
            self._names = {str(name): number for number, name in enumerate(known)}
        number = self._names.get(str(action))
        if number is None:
            raise InvalidInputError(
                f"action {action!r} was not among the actions of the first interaction, "
                f"{shown_names(list(self._names))}; list all actions there"
            )
        return [float(column == number) for column in range(len(self._names))]


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
        raise InvalidInputError(f"a {noun} with named features is sparse, got {value}; {DENSE}")
    if isinstance(value, str):
        raise InvalidInputError(
            f"a {noun} must consist of numbers and coba's Categorical, got the text {value!r}; "
            "convert it to a number, or encode it as a Categorical"
        )
    return [number for part in value for number in _numbers(part, noun)]

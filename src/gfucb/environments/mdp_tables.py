"""Tables as users bring them: read, checked, and refused with a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.theory.small_mdp import PROBABILITY_TOLERANCE, Array


def task_tables(tables: Any, name: str, num_axes: int) -> list[Array]:
    """One array a task, with a stage axis or not."""
    try:
        arrays = [np.asarray(table, dtype=np.float64) for table in tables]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be one table of numbers a task: {error}") from error
    if not arrays:
        raise InvalidInputError(f"{name} must hold a table for at least one task, got none")
    for array in arrays:
        if array.ndim not in (num_axes, num_axes + 1):
            axes = "[state, action, next_state]" if num_axes == 3 else "[state, action]"
            raise InvalidInputError(
                f"{name} of a task must be {axes}, with a stage axis in front or not, "
                f"got a table of shape {array.shape}"
            )
    return arrays


def staged(table: Array, num_axes: int, horizon: int | None) -> Array:
    """The table with a stage axis in front."""
    if table.ndim == num_axes:
        if horizon is None or not is_positive_integer(horizon):
            raise InvalidInputError(
                "horizon must be at least 1 and an integer where tables have no stage axis, "
                f"got {horizon!r}"
            )
        return np.broadcast_to(table, (horizon, *table.shape)).copy()
    if len(table) < 1 or (horizon is not None and horizon != len(table)):
        raise InvalidInputError(
            f"horizon must be at least 1 and equal the stages of the tables, got horizon {horizon} "
            f"and {len(table)} stages"
        )
    return table


def stacked(tables: list[Array], name: str) -> Array:
    """Tables of all tasks as one: [task, ...]."""
    shapes = {table.shape for table in tables}
    if len(shapes) > 1:
        raise InvalidInputError(
            f"the {name} of all tasks must have one shape, got {sorted(shapes)}"
        )
    return np.stack(tables)


def require_actions(actions: NDArray[Any], num_entries: int, num_actions: int) -> None:
    """Refuse actions that are not one integer from 0 to `num_actions` - 1 for each entry."""
    if actions.shape != (num_entries,) or actions.dtype.kind not in "iu":
        raise InvalidInputError(
            f"actions must be integers of shape [{num_entries}], one for each task that is still "
            f"playing, got {actions.dtype} of shape {list(actions.shape)}"
        )
    numbers = actions.tolist()  # a few of them: Python is faster than numpy, in the hottest loop
    if min(numbers) < 0 or max(numbers) >= num_actions:
        raise InvalidInputError(
            f"actions are numbered 0 to {num_actions - 1}, got {numbers}; play what `decide` chose "
            "from the candidates offered"
        )


def is_positive_integer(value: Any) -> bool:
    """Whether `value` is an integer of at least 1, and not a boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1


def require_same_actions(tables: list[Array], means: list[Array]) -> None:
    """Refuse tasks with different action sets."""
    moves, pays = [table.shape[-2] for table in tables], [table.shape[-1] for table in means]
    if len({*moves, *pays}) == 1:
        return
    raise InvalidInputError(
        "all tasks must have the same actions, in transitions and in rewards; got transitions with "
        f"{moves} actions and rewards with {pays} actions, by task. Give the missing actions rows "
        "of their own"
    )


def start_of(start: Any, num_tasks: int, num_states: int) -> Array:
    """The distribution of the first state for every task: [task, state]."""
    try:
        given = np.asarray(start, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"start must be probabilities of states: {error}") from error
    if given.shape not in ((num_states,), (num_tasks, num_states)):
        raise InvalidInputError(
            f"start must have the shape [state] = [{num_states}] or [task, state] = "
            f"[{num_tasks}, {num_states}], got {list(given.shape)}; give every state a probability"
        )
    return np.broadcast_to(given, (num_tasks, num_states)).copy()


def require_finite(numbers: Tensor, name: str) -> None:
    """Refuse NaN and infinity."""
    if not torch.isfinite(numbers).all():
        raise InvalidInputError(f"{name} must be finite, but some entries are NaN or infinite")


def kind_of(value: Any) -> str:
    """What was given, in words."""
    if isinstance(value, np.ndarray | Tensor):
        return f"{value.dtype} of shape {list(value.shape)}"
    return type(value).__name__


def require_probabilities(rows: Array, name: str) -> None:
    """Refuse rows that are not probabilities."""
    if rows.min() < 0:
        raise InvalidInputError(f"{name} must not be negative, but the smallest is {rows.min()}")
    worst = float(np.abs(rows.sum(axis=-1) - 1).max())
    if worst > PROBABILITY_TOLERANCE:
        raise InvalidInputError(
            f"every row of {name} must be probabilities that sum to 1, one is off by {worst:.3g}"
        )

"""Reading and checking the tables from which finite MDPs are built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import validate_count
from gfucb.core.validation.tables import Array

# How far a mean reward or an optimal value may lie outside its range: rounding only.
RANGE_TOLERANCE = 1e-9


def task_tables(tables: Sequence[ArrayLike], name: str, num_axes: int) -> list[Array]:
    """One float64 array per task, of `num_axes` axes or with a stage axis in front."""
    try:
        arrays = [np.asarray(table, dtype=np.float64) for table in tables]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} must be a sequence with one table of numbers per task: {error}"
        ) from error
    if not arrays:
        raise InvalidInputError(f"{name} must hold a table for at least one task, got none")
    for array in arrays:
        if array.ndim not in (num_axes, num_axes + 1):
            axes = "[state, action, next_state]" if num_axes == 3 else "[state, action]"
            raise InvalidInputError(
                f"{name} of a task must be {axes}, with or without a stage axis in front, "
                f"got a table of shape {array.shape}"
            )
    return arrays


def with_stage_axis(table: Array, num_axes: int, horizon: int | None) -> Array:
    """The table with a stage axis in front; a table without one is repeated `horizon` times."""
    if table.ndim == num_axes:
        if horizon is None:
            raise InvalidInputError("pass horizon, because the tables have no stage axis")
        return np.broadcast_to(table, (validate_count(horizon, "horizon"), *table.shape)).copy()
    if len(table) < 1 or (horizon is not None and horizon != len(table)):
        raise InvalidInputError(
            "horizon must be at least 1 and equal the number of stages of the tables, got "
            f"horizon {horizon} and {len(table)} stages"
        )
    return table


def stack_tasks(tables: list[Array], name: str) -> Array:
    """Tables of all tasks as one array, [task, ...]."""
    shapes = {table.shape for table in tables}
    if len(shapes) > 1:
        raise InvalidInputError(
            f"the {name} of all tasks must have one shape, got {sorted(shapes)}"
        )
    return np.stack(tables)


def require_same_actions(transitions: list[Array], rewards: list[Array]) -> None:
    """Refuse tasks with different numbers of actions."""
    in_transitions = [table.shape[-2] for table in transitions]
    in_rewards = [table.shape[-1] for table in rewards]
    if len({*in_transitions, *in_rewards}) > 1:
        raise InvalidInputError(
            "all tasks must have the same actions, in transitions and in rewards; got transitions "
            f"with {in_transitions} actions and rewards with {in_rewards} actions, by task. Add "
            "rows for the missing actions"
        )


def start_distribution(start: ArrayLike, num_tasks: int, num_states: int) -> Array:
    """The distribution of the first state for every task, [task, state]."""
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
        raise InvalidInputError(f"{name} must be finite, but some values are NaN or infinite")


def require_within(
    numbers: Array, bounds: tuple[float, float], name: str, range_name: str, advice: str
) -> None:
    """Refuse numbers outside `bounds` by more than rounding."""
    low, high = bounds
    smallest, largest = float(numbers.min()), float(numbers.max())
    if smallest < low - RANGE_TOLERANCE or largest > high + RANGE_TOLERANCE:
        raise InvalidInputError(
            f"{name} must lie in {range_name} ({low:g}, {high:g}), but they go from "
            f"{smallest:.6g} to {largest:.6g}; {advice}"
        )


def require_boolean_table(
    table: NDArray[np.bool_] | None, name: str, shape: tuple[int, ...]
) -> None:
    """Refuse an optional [task, stage, state, action] table that is not boolean."""
    is_boolean = isinstance(table, np.ndarray) and table.dtype == np.bool_
    if table is not None and not (is_boolean and table.shape == shape):
        raise InvalidInputError(
            f"{name} must be a numpy array of booleans of shape [task, stage, state, "
            f"action] = {list(shape)}, got {type_and_shape(table)}; leave it out if there is none"
        )


def require_true_features(features: Tensor | None, num_states: int, num_actions: int) -> None:
    """Refuse optional true features that are not finite [state, action, feature]."""
    if features is None:
        return
    is_tensor = isinstance(features, Tensor) and features.ndim == 3
    if not (is_tensor and tuple(features.shape[:2]) == (num_states, num_actions)):
        raise InvalidInputError(
            "true_features must be a tensor of shape [state, action, feature] = "
            f"[{num_states}, {num_actions}, ...], got {type_and_shape(features)}; leave it out if "
            "there is none"
        )
    require_finite(features, "true_features")


def require_actions(actions: NDArray[Any], num_rows: int, num_actions: int) -> None:
    """Refuse actions that are not one integer from 0 to `num_actions` - 1 for each row."""
    if actions.shape != (num_rows,) or actions.dtype.kind not in "iu":
        raise InvalidInputError(
            f"actions must be integers of shape [{num_rows}], one for each task that is still "
            f"playing, got {actions.dtype} of shape {list(actions.shape)}"
        )
    numbers = actions.tolist()  # for a few numbers Python is faster than numpy
    if min(numbers) < 0 or max(numbers) >= num_actions:
        raise InvalidInputError(
            f"actions are numbered 0 to {num_actions - 1}, got {numbers}; pass the actions that "
            "`decide` returned for the candidates offered"
        )


def type_and_shape(value: object) -> str:
    """The type of a value, and of an array its dtype and shape, for messages."""
    if isinstance(value, np.ndarray | Tensor):
        return f"{value.dtype} of shape {list(value.shape)}"
    return type(value).__name__


def require_high_rewards(high_rewards: Array, rewards: Array) -> None:
    """Refuse larger Bernoulli rewards of another shape or below their means."""
    if high_rewards.shape != rewards.shape:
        raise InvalidInputError(
            "high_rewards must have the shape of the rewards, [task, stage, state, action] = "
            f"{list(rewards.shape)}, got {list(high_rewards.shape)}"
        )
    excess = float((rewards - high_rewards).max())
    if excess > RANGE_TOLERANCE:
        raise InvalidInputError(
            "high_rewards must be at least the mean rewards, got a mean that is larger by "
            f"{excess:.3g}; lower the mean or raise the reward"
        )

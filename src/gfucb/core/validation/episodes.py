"""Validation of what an episodic agent is called with, before anything changes.

The checks use numpy. A stage of a few tasks is so small that the same checks in torch would take
most of the time between two plans.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import Decision, Transitions
from gfucb.core.validation.arrays import LARGEST_INPUT, to_tensor
from gfucb.core.validation.settings import LARGEST_REWARD, validate_count

Floats = NDArray[np.float64]
# A plan visits every stage: longer horizons take minutes for each.
LARGEST_HORIZON = 10**5
# Values are kept for every task and stage, a hundred bytes and more for each.
MOST_TASK_STAGES = 10**7


def validate_size(num_tasks: Any, horizon: Any) -> tuple[int, int]:
    """The number of tasks and the horizon of an agent, if it can plan with them."""
    tasks, stages = validate_count(num_tasks, "num_tasks"), validate_count(horizon, "horizon")
    if stages > LARGEST_HORIZON:
        raise InvalidInputError(
            f"horizon must be at most {LARGEST_HORIZON}, got {stages}: an agent plans for every "
            "stage; end episodes earlier, or let one stage be several steps of the environment"
        )
    if tasks * stages > MOST_TASK_STAGES:
        raise InvalidInputError(
            f"num_tasks times horizon must be at most {MOST_TASK_STAGES}, got {tasks} times "
            f"{stages}; divide the tasks among several agents, or shorten the horizon"
        )
    return tasks, stages


def validate_stage(stage: Any, horizon: int) -> int:
    """A stage as a number from 0 to H - 1."""
    is_integer = isinstance(stage, int | np.integer) and not isinstance(stage, bool)
    if not is_integer or not 0 <= stage < horizon:
        raise InvalidInputError(f"stages are numbered 0 to {horizon - 1}, got stage {stage!r}")
    return int(stage)


def validate_candidates(
    candidates: Any, tasks: Any, num_tasks: int
) -> tuple[Floats, NDArray[np.int64]]:
    """Candidates as flat float64 vectors, [row, action, input], and the task of each row."""
    given = _array(candidates, "candidates")
    if given.ndim < 2 or 0 in given.shape:
        raise InvalidInputError(
            "candidates must have the shape [row, action, *input] with no axis empty, "
            f"got {list(given.shape)}"
        )
    if tasks is None:
        if len(given) != num_tasks:
            raise InvalidInputError(
                f"without tasks there is one row for each of the {num_tasks} tasks, in order, "
                f"but candidates has {len(given)} rows; pass the task of each row as tasks"
            )
        row_tasks = np.arange(num_tasks)
    else:
        row_tasks = np.asarray(tasks)
        if row_tasks.shape != given.shape[:1] or row_tasks.dtype.kind not in "iu":
            raise InvalidInputError(
                f"tasks must be {len(given)} integers, got {row_tasks.dtype} of shape "
                f"{list(row_tasks.shape)}"
            )
        _require_tasks(row_tasks.tolist(), num_tasks)
    flat = given.reshape(*given.shape[:2], -1).astype(np.float64)
    return flat, row_tasks.astype(np.int64)


def validate_transitions(
    decision: Any,
    rewards: Any,
    next_candidates: Any,
    ended: Any,
    *,
    num_tasks: int,
    is_last: bool,
    like: NDArray[np.generic] | None,
) -> Transitions:
    """Check the arguments of `observe`; `like` is an input the agent has learned from."""
    if not isinstance(decision, Decision):
        raise InvalidInputError(
            f"observe takes what decide returned, a Decision, got {type(decision).__name__}"
        )
    tasks = decision.tasks.tolist()
    rows = len(tasks)
    _require_tasks(tasks, num_tasks)
    inputs = _array(decision.inputs, "the inputs of the decision")
    if inputs.shape[:1] != (rows,):
        raise InvalidInputError(
            f"the decision has {rows} tasks but inputs of shape {list(inputs.shape)}; "
            "pass what decide returned, or decision[rows]"
        )
    for name in ("actions", "optimistic_values"):
        if tuple(getattr(decision, name).shape) != (rows,):
            raise InvalidInputError(
                f"the decision has {rows} tasks but {name} of shape "
                f"{list(getattr(decision, name).shape)}; pass what decide returned, or "
                "decision[rows]"
            )
    actions = _array(decision.actions, "the actions of the decision")
    if actions.dtype.kind not in "iu" or (rows and actions.min() < 0):
        raise InvalidInputError(
            f"the actions of the decision must be numbers of actions from 0, got {actions.tolist()}"
        )
    _array(decision.optimistic_values, "the optimistic values of the decision")
    if like is not None and (inputs.shape[1:] != like.shape or inputs.dtype != like.dtype):
        raise InvalidInputError(
            f"this agent has learned from {like.dtype} inputs of shape {list(like.shape)}, "
            f"got {inputs.dtype} of shape {list(inputs.shape[1:])}"
        )
    values = _rewards(rewards, rows)
    over = _ended(ended, rows, is_last)
    following = None if over.all() else _next_candidates(next_candidates, inputs, over)
    return Transitions(tasks, inputs, values, over, following)


def _next_candidates(
    next_candidates: Any, inputs: NDArray[np.generic], over: NDArray[np.bool_]
) -> NDArray[np.generic]:
    if next_candidates is None:
        raise InvalidInputError(
            "an episode that continues needs next_candidates, [row, action, *input]; "
            "where it ends, say so by ended, [row] of booleans"
        )
    following = _array(next_candidates, "next_candidates", ~over)
    fits = following.ndim == inputs.ndim + 1 and following.shape[2:] == inputs.shape[1:]
    if not fits or len(following) != len(inputs) or 0 in following.shape:
        expected = ", ".join(map(str, (len(inputs), "action", *inputs.shape[1:])))
        raise InvalidInputError(
            f"next_candidates must have the shape [row, action, *input] = [{expected}], "
            f"got {list(following.shape)}"
        )
    # Distinct rows are recognised by their bytes, so all must be of one type.
    return _of_type(following, inputs.dtype, ~over)


def _of_type(
    following: NDArray[np.generic], dtype: np.dtype[Any], where: NDArray[np.bool_]
) -> NDArray[np.generic]:
    """Observations as the type of those before; floats may be rounded, but nothing else lost."""
    if following.dtype == dtype:
        return following
    with np.errstate(over="ignore", invalid="ignore"):
        found = following.astype(dtype)
    is_lost = ~np.isfinite(found) if dtype.kind == "f" else found != following
    if is_lost[where].any():
        value = following[where][is_lost[where]][0]
        raise InvalidInputError(
            f"next_candidates are {following.dtype} and the inputs of the decision {dtype}, which "
            f"cannot hold {value}; pass all observations as one type, such as float32"
        )
    return found


def _require_tasks(tasks: list[int], num_tasks: int) -> None:
    if tasks and not (0 <= min(tasks) and max(tasks) < num_tasks):
        raise InvalidInputError(f"tasks are numbered 0 to {num_tasks - 1}, got {tasks}")


def to_numpy(tensor: Tensor) -> NDArray[np.generic]:
    """The numbers of a tensor on the CPU; numpy has no bfloat16, so that these become float32."""
    plain = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    return np.asarray(plain.numpy())


def _array(
    value: Any,
    name: str,
    where: NDArray[np.bool_] | None = None,
    largest: float = LARGEST_INPUT,
) -> NDArray[np.generic]:
    """`value` as an array of real numbers, in range where `where` is True.

    Booleans become 0.0 and 1.0, as in `to_inputs`.
    """
    is_plain = type(value) is Tensor and value.is_cpu and not value.requires_grad
    try:
        given = to_numpy(value) if is_plain else _converted(value, name)
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{name} must be a tensor or array of numbers: {error}") from error
    if given.dtype.kind == "b":
        given = given.astype(str(torch.get_default_dtype()).removeprefix("torch."))
    if given.dtype.kind not in "fiu":
        raise InvalidInputError(f"{name} must be real numbers, got {given.dtype}")
    checked = given if where is None or len(given) != len(where) else given[where]
    # `largest` exceeds all numbers of half precision.
    limit = largest if given.dtype.itemsize > 2 else np.float64(largest)
    if given.dtype.kind == "f" and not (np.abs(checked) <= limit).all():
        if not np.isfinite(checked).all():
            raise InvalidInputError(f"{name} must be finite, got NaN or infinity")
        raise InvalidInputError(
            f"{name} must be at most {largest:g} in magnitude, got "
            f"{float(np.abs(checked).max()):g}; rescale them"
        )
    return given


def _converted(value: Any, name: str) -> NDArray[np.generic]:
    if isinstance(value, np.ndarray) and value.dtype.kind in "bfiu":
        return value
    return to_numpy(to_tensor(value, name).cpu())


def _rewards(rewards: Any, rows: int) -> Floats:
    given = _array(rewards, "rewards", largest=LARGEST_REWARD)
    if given.ndim == 0 and rows == 1:
        given = given.reshape(1)
    if given.shape != (rows,):
        raise InvalidInputError(
            f"the decision has {rows} rows, so rewards must have the shape [{rows}], "
            f"got {list(given.shape)}; to reward some rows only, pass decision[rows]"
        )
    return given.astype(np.float64)


def _ended(ended: Any, rows: int, is_last: bool) -> NDArray[np.bool_]:
    if is_last:
        return np.ones(rows, dtype=bool)
    if ended is None:
        return np.zeros(rows, dtype=bool)
    try:
        given = np.asarray(ended.cpu() if isinstance(ended, Tensor) else ended)
    except ValueError:  # lists of several lengths
        given = np.asarray(None)
    if given.ndim == 0 and rows == 1:
        given = given.reshape(1)
    if given.dtype != np.bool_ or given.shape != (rows,):
        raise InvalidInputError(
            f"ended must be booleans of shape [{rows}], got {given.dtype} of shape "
            f"{list(given.shape)}"
        )
    return given

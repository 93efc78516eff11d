"""What an episodic agent is told is checked here, before anything changes.

By way of numpy: a stage of a few tasks is so small that torch's checks would cost more than all
else an agent does between two plans.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import Decision
from gfucb.episodic.buffer import Floats, Transitions


def validate_stage(stage: Any, horizon: int) -> int:
    """A stage as a number from 0 to H - 1."""
    if not isinstance(stage, int | np.integer) or not 0 <= stage < horizon:
        raise InvalidInputError(f"stages are numbered 0 to {horizon - 1}, got stage {stage!r}")
    return int(stage)


def validate_candidates(
    candidates: Any, tasks: Any, num_tasks: int
) -> tuple[Floats, NDArray[np.int64]]:
    """Candidates as flat float64 vectors, [row, action, input], and the task of each entry."""
    read = _array(candidates, "candidates")
    if read.ndim < 2 or 0 in read.shape:
        raise InvalidInputError(
            "candidates must have the shape [row, action, *input] with no axis empty, "
            f"got {list(read.shape)}"
        )
    if tasks is None:
        if len(read) != num_tasks:
            raise InvalidInputError(
                f"without tasks there is one row for each of the {num_tasks} tasks, in order, "
                f"but candidates has {len(read)} entries; say which tasks they belong to"
            )
        own = np.arange(num_tasks)
    else:
        own = np.asarray(tasks)
        if own.shape != read.shape[:1] or own.dtype.kind not in "iu":
            raise InvalidInputError(
                f"tasks must be {len(read)} integers, got {own.dtype} of shape {list(own.shape)}"
            )
        if own.min() < 0 or own.max() >= num_tasks:
            raise InvalidInputError(f"tasks are numbered 0 to {num_tasks - 1}, got {own.tolist()}")
    flat = read.reshape(*read.shape[:2], -1).astype(np.float64)
    return flat, own.astype(np.int64)


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
    entries = len(tasks)
    if tasks and not (0 <= min(tasks) and max(tasks) < num_tasks):
        raise InvalidInputError(f"tasks are numbered 0 to {num_tasks - 1}, got {tasks}")
    inputs = _array(decision.inputs, "the inputs of the decision")
    if like is not None and (inputs.shape[1:] != like.shape or inputs.dtype != like.dtype):
        raise InvalidInputError(
            f"this agent has learned from {like.dtype} inputs of shape {list(like.shape)}, "
            f"got {inputs.dtype} of shape {list(inputs.shape[1:])}"
        )
    validate_rewards = _rewards(rewards, entries)
    over = _ended(ended, entries, is_last)
    following = None
    if not over.all():
        if next_candidates is None:
            raise InvalidInputError(
                "an episode that goes on needs next_candidates, [row, action, *input]; "
                "say ended where it does not"
            )
        following = _array(next_candidates, "next_candidates", ~over)
        right = following.ndim == inputs.ndim + 1 and following.shape[2:] == inputs.shape[1:]
        if not right or len(following) != entries or 0 in following.shape:
            raise InvalidInputError(
                f"next_candidates must have the shape [row, action, *input] = [{entries}, ..., "
                f"{list(inputs.shape[1:])}], got {list(following.shape)}"
            )
        # Distinct rows are told apart by their bytes, so all must be of one type.
        following = following.astype(inputs.dtype, copy=False)
    return Transitions(tasks, inputs, validate_rewards, over, following)


def _array(value: Any, name: str, where: NDArray[np.bool_] | None = None) -> NDArray[np.generic]:
    try:
        plain = isinstance(value, Tensor) and not value.requires_grad and value.is_cpu
        read = value.numpy() if plain else _copied(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInputError(f"{name} must be a tensor or array of numbers: {error}") from error
    if read.dtype.kind not in "fiu":
        raise InvalidInputError(f"{name} must be real numbers, got {read.dtype}")
    looked_at = read if where is None or len(read) != len(where) else read[where]
    if not np.isfinite(looked_at).all():
        raise InvalidInputError(f"{name} must be finite, got NaN or infinity")
    return read


def _copied(value: Any) -> NDArray[np.generic]:
    return np.asarray(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)


def _rewards(rewards: Any, entries: int) -> Floats:
    read = _array(rewards, "rewards")
    if read.ndim == 0 and entries == 1:
        read = read.reshape(1)
    if read.shape != (entries,):
        raise InvalidInputError(
            f"the decision has {entries} entries, so rewards must have the shape [{entries}], "
            f"got {list(read.shape)}; to reward some entries only, pass decision[rows]"
        )
    return read.astype(np.float64)


def _ended(ended: Any, entries: int, is_last: bool) -> NDArray[np.bool_]:
    if is_last:
        return np.ones(entries, dtype=bool)
    if ended is None:
        return np.zeros(entries, dtype=bool)
    read = np.asarray(ended)
    if read.dtype != np.bool_ or read.shape != (entries,):
        raise InvalidInputError(
            f"ended must be booleans of shape [{entries}], got {read.dtype} of shape "
            f"{list(read.shape)}"
        )
    return read

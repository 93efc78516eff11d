"""What comes in from outside is checked here, once, before anything changes."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import ActionSets, Decision, is_repeated

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def positive_count(value: Any, name: str) -> int:
    """`value` as an integer of at least 1."""
    is_integer = hasattr(value, "__index__") and not isinstance(value, bool)
    if not is_integer or operator.index(value) < 1:
        raise InvalidInputError(f"{name} must be an integer of at least 1, got {value!r}")
    return operator.index(value)


@contextmanager
def gradients_allowed() -> Iterator[None]:
    """Work as if the caller had not switched gradients off, as serving code does."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def validate_action_sets(
    candidates: Any, tasks: Any, available: Any, *, num_tasks: int, device: torch.device | str
) -> ActionSets:
    """Check and complete the arguments of `decide`."""
    candidates = _candidates(candidates)
    _require_known_type(candidates, "candidates")
    if candidates.ndim < 2 or 0 in candidates.shape:
        raise InvalidInputError(
            "candidates must have the shape [row, action, *input] with no axis empty, "
            f"got {list(candidates.shape)}"
        )
    entries, actions = candidates.shape[:2]
    read_tasks = _tasks(tasks, entries, num_tasks)
    if available is None:
        mask = torch.ones(entries, actions, dtype=torch.bool)
    else:
        mask = _tensor(available, "available").cpu()
        if mask.dtype != torch.bool or tuple(mask.shape) != (entries, actions):
            raise InvalidInputError(
                f"available must be booleans of shape [row, action] = [{entries}, {actions}], "
                f"got {mask.dtype} of shape {list(mask.shape)}"
            )
        empty = (~mask).all(1).nonzero().flatten().tolist()
        if empty:
            raise InvalidInputError(
                f"every row needs an available action; none is available in row {empty[0]} "
                f"(task {int(read_tasks[empty[0]])})"
            )
    # What stands in a place that is not offered is padding: it may be anything.
    if is_repeated(candidates):
        catalogue = _without_padding(candidates[:1], mask.any(0, keepdim=True))
        candidates = catalogue.to(device).expand(entries, *catalogue.shape[1:])
    else:
        candidates = _without_padding(candidates, mask).to(device)
    return ActionSets(candidates, read_tasks.to(device), mask.clone().to(device))


def repeated(catalogue: Any, tasks: Any, *, num_tasks: int) -> Tensor:
    """A catalogue [action, *input] as the candidates of every row, held once."""
    entries = num_tasks if tasks is None else _tensor(tasks, "tasks").numel()
    read = _tensor(catalogue, "catalogue")
    if read.ndim < 1 or 0 in read.shape:
        raise InvalidInputError(
            "catalogue must have the shape [action, *input] with no axis empty, "
            f"got {list(read.shape)}"
        )
    return read.expand(entries, *read.shape)


def _candidates(value: Any) -> Tensor:
    """Candidates of our own; what is one row repeated, by torch or numpy, stays so."""
    if isinstance(value, np.ndarray) and len(value.shape) and len(value) > 1:
        is_one_row = value.strides[0] == 0
    else:
        is_one_row = isinstance(value, Tensor) and value.ndim > 0 and is_repeated(value)
    if not is_one_row:
        return _tensor(value, "candidates")
    row = _tensor(value[0], "candidates")
    return row.expand(len(value), *row.shape)


def _without_padding(candidates: Tensor, available: Tensor) -> Tensor:
    """Candidates [row, action, *input] that are finite where available and zero elsewhere."""
    offered = available.reshape(*available.shape, *[1] * (candidates.ndim - 2))
    candidates = candidates.masked_fill(~offered.to(candidates.device), 0)
    _require_finite(candidates, "candidates")
    return candidates


def validate_feedback(
    decision: Any, rewards: Any, *, num_tasks: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Check the arguments of `observe`; return tasks, inputs and rewards [row]."""
    if not isinstance(decision, Decision):
        raise InvalidInputError(
            f"observe takes what decide returned, a Decision, got {type(decision).__name__}"
        )
    read = validate_rewards(rewards, len(decision))
    tasks = _tasks(decision.tasks, len(decision), num_tasks)
    inputs = _tensor(decision.inputs, "the inputs of the decision")
    _require_finite(inputs, "the inputs of the decision")
    return tasks, inputs, read


def validate_samples(
    tasks: Any, inputs: Any, rewards: Any, *, num_tasks: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Check the arguments of `learn`; return tasks, inputs and rewards [sample]."""
    inputs = _tensor(inputs, "inputs")
    if inputs.ndim < 1:
        raise InvalidInputError("inputs must have the shape [sample, *input], got a single number")
    _require_known_type(inputs, "inputs")
    _require_finite(inputs, "inputs")
    read = validate_rewards(rewards, len(inputs), what="inputs have")
    return _tasks(tasks, len(inputs), num_tasks), inputs, read


def validate_rewards(rewards: Any, expected: int, what: str = "decision has") -> Tensor:
    """Rewards [row] as finite float64."""
    read = _tensor(rewards, "rewards")
    if read.is_complex() or read.dtype == torch.bool:
        raise InvalidInputError(f"rewards must be real numbers, got {read.dtype}")
    if read.ndim == 0 and expected == 1:
        read = read.reshape(1)
    if tuple(read.shape) != (expected,):
        raise InvalidInputError(
            f"the {what} {expected} entries, so rewards must have the shape [{expected}], "
            f"got {list(read.shape)}; to reward some entries only, pass decision[rows]"
        )
    read = read.to(torch.float64)
    if not bool(read.isfinite().all()):
        row = int((~read.isfinite()).nonzero()[0])
        raise InvalidInputError(
            f"rewards must be finite, got {float(read[row])} in row {row}; "
            "leave out rewards that are missing: pass decision[rows]"
        )
    return read


def _tensor(value: Any, name: str) -> Tensor:
    """A tensor of our own: what the caller does to the original later does not reach it."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    try:
        # By way of numpy: torch would round the numbers of a list to single precision.
        return torch.tensor(np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInputError(f"{name} must be a tensor or array of numbers: {error}") from error


def _require_known_type(inputs: Tensor, name: str) -> None:
    if not inputs.is_floating_point() and inputs.dtype not in INTEGERS:
        raise InvalidInputError(
            f"{name} must be real numbers: floats, bytes (images) or signed integers (item "
            f"numbers), got {inputs.dtype}"
        )


def _require_finite(inputs: Tensor, name: str) -> None:
    if inputs.is_floating_point() and not bool(inputs.isfinite().all()):
        where = (~inputs.isfinite()).nonzero()[0].tolist()
        raise InvalidInputError(f"{name} must be finite, got NaN or infinity at index {where}")


def _tasks(tasks: Any, entries: int, num_tasks: int) -> Tensor:
    if tasks is None:
        if entries != num_tasks:
            raise InvalidInputError(
                f"without tasks there is one row for each of the {num_tasks} tasks, in order, "
                f"but candidates has {entries} entries; say which tasks they belong to"
            )
        return torch.arange(num_tasks)
    read = _tensor(tasks, "tasks").cpu()
    if read.is_floating_point() or read.is_complex() or read.dtype == torch.bool:
        raise InvalidInputError(f"tasks must be integers, got {read.dtype}")
    if tuple(read.shape) != (entries,):
        raise InvalidInputError(
            f"tasks must have one number for each of the {entries} entries, "
            f"got shape {list(read.shape)}"
        )
    read = read.to(torch.int64)
    unknown = read[(read < 0) | (read >= num_tasks)]
    if len(unknown):
        raise InvalidInputError(
            f"tasks are numbered 0 to {num_tasks - 1}, got task {int(unknown[0])}"
        )
    return read

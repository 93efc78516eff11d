"""Validation of what a bandit agent is called with: everything is checked before anything changes.

Limits: inputs of at most 1e15 and rewards of at most 1e12 in magnitude. Larger ones would lose all
digits when their squares are summed, and are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.offered_candidates import OfferedCandidates, is_repeated
from gfucb.core.records import ChosenFeatures, Decision, GroupFeatures, Prediction
from gfucb.core.validation.arrays import (
    ArrayLike,
    require_in_range,
    require_real,
    to_candidates,
    to_inputs,
    to_tensor,
    validate_rewards,
    validate_tasks,
)
from gfucb.core.validation.settings import LARGEST_COMPUTED

__all__ = [
    "ArrayLike",
    "gradients_allowed",
    "validate_action_sets",
    "validate_catalogue",
    "validate_feedback",
    "validate_offered",
    "validate_prediction",
    "validate_rewards",
    "validate_samples",
]


@contextmanager
def gradients_allowed() -> Iterator[None]:
    """Work as if the caller had not switched gradients off, as serving code does."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def validate_action_sets(
    candidates: Any, tasks: Any, available: Any, *, num_tasks: int, device: torch.device | str
) -> ActionSets:
    """Check and complete the arguments of `decide`."""
    given = to_candidates(candidates)
    if given.ndim < 2 or 0 in given.shape:
        raise InvalidInputError(
            "candidates must have the shape [row, action, *input] with no axis empty, "
            f"got {list(given.shape)}"
        )
    if given.ndim == 2 and given.is_floating_point() and hasattr(candidates, "columns"):
        raise InvalidInputError(
            "candidates must have the shape [row, action, *input], got a data frame "
            f"[row, column] of {given.shape[1]} columns; append the actions with "
            "gfucb.with_actions(frame, num_actions), or describe the table by gfucb.tables.Schema"
        )
    rows, actions = given.shape[:2]
    row_tasks = validate_tasks(tasks, rows, num_tasks)
    mask = _validate_mask(available, rows, actions)
    # Candidates that are not available are padding: they may hold any value.
    if is_repeated(given):
        catalogue = _without_padding(given[:1], mask.any(0, keepdim=True))
        given = catalogue.to(device).expand(rows, *catalogue.shape[1:])
    else:
        given = _without_padding(given, mask).to(device)
    return ActionSets(given, row_tasks.to(device), mask.to(device))


def _validate_mask(available: Any, num_rows: int, num_actions: int) -> Tensor:
    """The mask [row, action] of available actions, with at least one in each row."""
    shape = (num_rows, num_actions)
    if available is None:
        return torch.ones(shape, dtype=torch.bool)
    mask = to_tensor(available, "available").cpu()
    if mask.dtype != torch.bool or tuple(mask.shape) != shape:
        raise InvalidInputError(
            f"available must be booleans of shape [row, action] = {list(shape)}, "
            f"got {mask.dtype} of shape {list(mask.shape)}"
        )
    empty = (~mask).all(1).nonzero().flatten().tolist()
    if empty:
        raise InvalidInputError(
            f"every row needs an available action; none is available in row {empty[0]}"
        )
    return mask


def _without_padding(candidates: Tensor, available: Tensor) -> Tensor:
    """Candidates [row, action, *input], checked where available and zero elsewhere."""
    offered = available.reshape(*available.shape, *[1] * (candidates.ndim - 2))
    candidates = candidates.masked_fill(~offered.to(candidates.device), 0)
    require_in_range(candidates, "candidates")
    return candidates


def validate_catalogue(catalogue: Any, tasks: Any, *, num_tasks: int) -> Tensor:
    """A catalogue [action, *input] as the candidates of every row, held in memory once."""
    rows = num_tasks if tasks is None else to_tensor(tasks, "tasks").numel()
    if rows == 0:
        raise InvalidInputError("tasks must have the task of at least one row, got none")
    given = to_inputs(catalogue, "catalogue")
    if given.ndim < 1 or 0 in given.shape:
        raise InvalidInputError(
            "catalogue must have the shape [action, *input] with no axis empty, "
            f"got {list(given.shape)}"
        )
    return given.expand(rows, *given.shape)


def validate_feedback(
    decision: Any, rewards: Any, *, num_tasks: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Check the arguments of `observe`, all of them; return tasks, inputs and rewards [row].

    A decision may have been changed or built by the caller, so all of its tensors are checked.
    """
    if not isinstance(decision, Decision):
        raise InvalidInputError(
            f"observe takes what decide returned, a Decision, got {type(decision).__name__}"
        )
    parts = ("tasks", "actions", "inputs", "optimistic_values")
    for name in parts:
        if not isinstance(getattr(decision, name), Tensor) or getattr(decision, name).ndim < 1:
            raise InvalidInputError(f"the {name} of the decision must be a tensor, one row each")
    rows = len(decision.tasks)
    for name in parts:
        if len(getattr(decision, name)) != rows:
            raise InvalidInputError(
                f"the decision has {rows} tasks but {len(getattr(decision, name))} {name}; "
                "pass what decide returned, or decision[rows]"
            )
    given = validate_rewards(rewards, rows)
    tasks = validate_tasks(decision.tasks, rows, num_tasks)
    inputs = to_tensor(decision.inputs, "the inputs of the decision")
    require_real(inputs, "the inputs of the decision")
    require_in_range(inputs, "the inputs of the decision")
    _require_actions(decision.actions)
    _require_floats(decision.optimistic_values, rows, "the optimistic values of the decision")
    if decision.prediction is not None:
        validate_prediction(decision.prediction, (rows,))
    _require_features(decision.features, rows)
    _require_probabilities(decision, rows)
    if decision.offered is not None:
        validate_offered(decision.offered, rows, inputs)
    return tasks, inputs, given


def validate_prediction(prediction: Any, shape: tuple[int, ...]) -> None:
    """Check a prediction: finite means and variances of this shape, no variance negative."""
    if not isinstance(prediction, Prediction):
        raise InvalidInputError(
            f"the prediction of a decision must be a Prediction or None, got "
            f"{type(prediction).__name__}"
        )
    _require_floats(prediction.mean, shape, "the predicted means of the decision")
    _require_floats(prediction.variance, shape, "the predicted variances of the decision")
    if prediction.variance.numel() and float(prediction.variance.min()) < 0:
        raise InvalidInputError(
            "the predicted variances of the decision must not be negative, "
            f"got {float(prediction.variance.min()):g}"
        )
    require_in_range(prediction.mean, "the predicted means of the decision", LARGEST_COMPUTED)
    require_in_range(
        prediction.variance, "the predicted variances of the decision", LARGEST_COMPUTED
    )


def validate_offered(offered: Any, rows: int, inputs: Tensor) -> None:
    """Check the offered candidates of a decision with inputs [row, *input]."""
    if not isinstance(offered, OfferedCandidates) or not all(
        isinstance(part, Tensor) for part in (offered.candidates, offered.available)
    ):
        raise InvalidInputError(
            "the offered candidates of a decision must be those that decide stored, or None, "
            f"got {type(offered).__name__}"
        )
    candidates, available = offered.candidates, offered.available
    shape = (rows, *candidates.shape[1:2])
    is_mask = available.dtype == torch.bool and tuple(available.shape) == shape
    if tuple(candidates.shape) != (*shape, *inputs.shape[1:]) or not is_mask:
        raise InvalidInputError(
            "the offered candidates of the decision must have the shape [row, action, *input] with "
            f"{rows} rows and inputs of shape {list(inputs.shape[1:])}, and a mask [row, action]; "
            f"got {list(candidates.shape)} and {available.dtype} {list(available.shape)}"
        )
    if candidates.dtype != inputs.dtype:
        raise InvalidInputError(
            f"the inputs of the decision are {inputs.dtype}, its offered candidates "
            f"{candidates.dtype}"
        )
    require_in_range(candidates, "the offered candidates of the decision")


def _require_features(features: Any, rows: int) -> None:
    if features is None or isinstance(features, GroupFeatures):
        return  # the agents of the groups check their own
    if not isinstance(features, ChosenFeatures) or not isinstance(features.values, Tensor):
        raise InvalidInputError(
            "the features of a decision must be those that decide computed, or None, got "
            f"{type(features).__name__}"
        )
    columns = features.values.shape[-1] if features.values.ndim == 2 else 0
    _require_floats(features.values, (rows, columns), "the features of the decision")


def _require_probabilities(decision: Decision, rows: int) -> None:
    """Agents learn nothing from the probabilities, but they are logged with the rewards."""
    for values, name in [
        (decision.probabilities, "the probabilities of the decision"),
        (decision.action_probabilities, "the action probabilities of the decision"),
    ]:
        if values is None:
            continue
        is_matrix = isinstance(values, Tensor) and values.ndim == 2
        _require_floats(values, (rows, values.shape[1]) if is_matrix else rows, name)
        if bool(((values < 0) | (values > 1 + 1e-9)).any()):
            raise InvalidInputError(f"{name} must be between 0 and 1")


def _require_actions(actions: Tensor) -> None:
    if actions.is_floating_point() or actions.is_complex() or actions.dtype == torch.bool:
        raise InvalidInputError(
            f"the actions of the decision must be integers, got {actions.dtype}"
        )
    if actions.ndim != 1 or (len(actions) and int(actions.min()) < 0):
        raise InvalidInputError(
            "the actions of the decision must be numbers of actions from 0, one for each row, "
            f"got {actions.tolist()}"
        )


def _require_floats(values: Any, shape: int | tuple[int, ...], name: str) -> None:
    expected = (shape,) if isinstance(shape, int) else shape
    is_floats = isinstance(values, Tensor) and values.is_floating_point()
    if not is_floats or tuple(values.shape) != expected:
        found = (
            f"{values.dtype} of shape {list(values.shape)}"
            if isinstance(values, Tensor)
            else type(values).__name__
        )
        raise InvalidInputError(f"{name} must be floats of shape {list(expected)}, got {found}")
    if not bool(values.isfinite().all()):
        raise InvalidInputError(f"{name} must be finite, got NaN or infinity")


def validate_samples(
    tasks: Any, inputs: Any, rewards: Any, *, num_tasks: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Check the arguments of `learn`; return tasks, inputs and rewards [sample].

    An empty log, with empty tasks, inputs and rewards, is valid.
    """
    given = to_inputs(inputs, "inputs")
    if given.ndim < 1:
        raise InvalidInputError("inputs must have the shape [sample, *input], got a single number")
    require_in_range(given, "inputs")
    values = validate_rewards(rewards, len(given), "the inputs have")
    return validate_tasks(tasks, len(given), num_tasks), given, values

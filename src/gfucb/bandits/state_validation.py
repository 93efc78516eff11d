"""Validation of the saved state of a learner, before anything is allocated or changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.arrays import FLOATS, INTEGERS, LARGEST_INPUT
from gfucb.core.validation.settings import LARGEST_COMPUTED, LARGEST_REWARD
from gfucb.core.validation.states import validate_state_names, validate_state_tensor

REPRESENTATION_PREFIX = "representation."
NAMES = (
    "counters",
    "monitor",
    "data.inputs",
    "data.tasks",
    "data.targets",
    "statistics.grams",
    "statistics.moments",
    "heads",
)


def validate_learner_state(
    state: Mapping[str, Tensor], *, num_tasks: int, prefixes: Sequence[str]
) -> None:
    """Check names, shapes, types, finiteness and ranges of all tensors of a learner's state.

    Tensors whose names start with one of `prefixes` belong to other components, which check their
    shapes; here NaN is refused, and infinity outside the representation.
    """
    validate_state_names(state, NAMES, prefixes)
    num_samples = _validate_data(state, num_tasks)
    floats = torch.float64
    low, high = -LARGEST_COMPUTED, LARGEST_COMPUTED
    shape = validate_state_tensor(
        state, "heads", (num_tasks, None), dtype=floats, low=low, high=high
    ).shape
    for name, expected in {"moments": shape, "grams": (*shape, shape[1])}.items():
        validate_state_tensor(
            state, f"statistics.{name}", expected, dtype=floats, low=low, high=high
        )
    counters = validate_state_tensor(state, "counters", (2,), dtype=torch.int64, low=0)
    if int(counters[1]) > num_samples:
        raise InvalidInputError(
            f"'counters' of the state give {int(counters[1])} samples at the last fit, but the "
            f"state has {num_samples} samples"
        )
    # Before the first fit the mean error to compare with is infinite.
    validate_state_tensor(state, "monitor", (3,), dtype=floats, low=0, is_finite=False)
    validate_state_tensor({"monitor": state["monitor"][1:]}, "monitor", (2,), high=high)
    for name in state:
        if name.startswith(tuple(prefixes)):
            # A network may have constants, such as a mask, that hold infinity.
            is_finite = not name.startswith(REPRESENTATION_PREFIX)
            any_shape = (None,) * state[name].ndim
            validate_state_tensor(state, name, any_shape, is_finite=is_finite)


def _validate_data(state: Mapping[str, Tensor], num_tasks: int) -> int:
    """Check the samples; return how many there are."""
    inputs = state["data.inputs"]
    if inputs.ndim < 1 or len(inputs) == 0:
        raise InvalidInputError("'data.inputs' of the state must have at least one sample")
    if inputs.dtype not in (*FLOATS, *INTEGERS):
        raise InvalidInputError(f"'data.inputs' of the state are {inputs.dtype}, not real numbers")
    if inputs.is_floating_point():
        largest = LARGEST_INPUT
        any_shape = (None,) * inputs.ndim
        validate_state_tensor(state, "data.inputs", any_shape, low=-largest, high=largest)
    samples = (len(inputs),)
    validate_state_tensor(
        state, "data.tasks", samples, dtype=torch.int64, low=0, high=num_tasks - 1
    )
    validate_state_tensor(
        state,
        "data.targets",
        samples,
        dtype=torch.float64,
        low=-LARGEST_REWARD,
        high=LARGEST_REWARD,
    )
    return len(inputs)

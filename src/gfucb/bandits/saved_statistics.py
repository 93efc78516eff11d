"""Statistics of heads in a saved state: Gram matrices of all tasks, or features of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import LARGEST_COMPUTED
from gfucb.core.validation.states import validate_state_tensor
from gfucb.models import HeadStatistics
from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.sample_statistics import SampleStatistics

STATISTICS_PREFIX = "statistics."
GRAMS, MOMENTS, FEATURES, TASKS, HEAVY = (
    f"{STATISTICS_PREFIX}{name}" for name in ("grams", "moments", "features", "tasks", "heavy")
)


def statistics_names(state: Mapping[str, Tensor]) -> list[str]:
    """The names of the statistics in a state of this form."""
    return [GRAMS, MOMENTS, FEATURES, TASKS, HEAVY] if FEATURES in state else [GRAMS, MOMENTS]


def validate_statistics(state: Mapping[str, Tensor], shape: Sequence[int]) -> None:
    """Check shapes, types and ranges for heads of this shape, [task, feature]."""
    num_tasks, size = shape
    check = partial(validate_state_tensor, state, low=-LARGEST_COMPUTED, high=LARGEST_COMPUTED)
    check(MOMENTS, tuple(shape), dtype=torch.float64)
    num_grams = num_tasks
    if FEATURES in state:
        numbers = partial(validate_state_tensor, state, dtype=torch.int64, low=0)
        heavy = numbers(HEAVY, (None,), high=num_tasks - 1)
        if len(heavy.unique()) < len(heavy):
            raise InvalidInputError(f"{HEAVY!r} of the state has a task twice")
        num_samples = len(numbers(TASKS, (None,), high=num_tasks - 1))
        if not state[FEATURES].is_floating_point():
            found = state[FEATURES].dtype
            raise InvalidInputError(f"{FEATURES!r} of the state are {found}, not floats")
        check(FEATURES, (num_samples, size))
        num_grams = len(heavy)
    check(GRAMS, (num_grams, size, size), dtype=torch.float64)


def restored_statistics(tensors: Mapping[str, Tensor], ridge: float) -> HeadStatistics:
    """The statistics with these tensors, without prefix, which are checked already."""
    if "features" in tensors:
        return SampleStatistics.restored(tensors)
    statistics = HeadStatistics(CopyOnWriteRows(tensors["grams"]), tensors["moments"])
    statistics.factors(ridge)  # raises if a Gram matrix has none
    return statistics

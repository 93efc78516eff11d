"""The checks of least-squares fits and of squared radii."""

from __future__ import annotations

import math

import torch

from gfucb.checks.assertions import (
    is_equal,
    require,
    tensors_of_data,
    tensors_of_function,
    uniform,
)
from gfucb.core.protocols import LeastSquares, SquaredRadius
from gfucb.core.random import random_stream
from gfucb.estimation import best_on, penalised_error
from gfucb.models import (
    HeadPenalty,
    MultiheadFunction,
    MultitaskDataset,
    Representation,
    features_of,
)

NUM_TASKS = 3
OFFSET, VALUE_RANGE = 0.25, (0.0, 1.0)


def check_fit(
    fit: LeastSquares,
    representation: Representation,
    *,
    input_shape: tuple[int, ...] = (4,),
    decreases_error: bool = True,
) -> None:
    """Check a least-squares fit on small data sets.

    The heads minimise the penalised error for the returned representation. Offset and value range
    are those of the start. The fit is deterministic given the generator, uses no other source of
    randomness, and does not change the data or the start. It accepts no data, and data of one
    task only. With `decreases_error`, the penalised error is at most that of the start's
    representation with its best heads.

    Args:
        fit: the implementation.
        representation: of the start, a member of the class that the fit searches.
        input_shape: of the inputs that the representation accepts.
        decreases_error: False for stochastic fits, which can increase the error, and for fits of
            another loss.
    """
    example = uniform("example", 0, 1, *input_shape)
    feature_dim = features_of(representation, example).shape[1]
    heads = torch.zeros(NUM_TASKS, feature_dim, dtype=torch.float64)
    start = MultiheadFunction(representation, heads, OFFSET, VALUE_RANGE)
    for penalty in (HeadPenalty(0.5), HeadPenalty(0.1, norm_bound=0.2)):
        for name, data in _data_sets(input_shape).items():
            _check_one_fit(fit, data, start, penalty, name)
            if decreases_error:
                _check_error(fit, data, start, penalty, name)


def _data_sets(input_shape: tuple[int, ...]) -> dict[str, MultitaskDataset]:
    """Data of all tasks, of one task, and no data."""
    found = {}
    for name, tasks in {
        "data of all tasks": torch.arange(24) % NUM_TASKS,
        "data of one task": torch.full((12,), 1),
        "no data": torch.zeros(0, dtype=torch.int64),
    }.items():
        data = MultitaskDataset(NUM_TASKS, torch.Size(input_shape), torch.float64)
        inputs = uniform("fit inputs", len(tasks), len(tasks), *input_shape)
        data.append(tasks, inputs, uniform("fit targets", len(tasks), len(tasks)))
        found[name] = data
    return found


def _check_one_fit(
    fit: LeastSquares,
    data: MultitaskDataset,
    start: MultiheadFunction,
    penalty: HeadPenalty,
    name: str,
) -> None:
    before = tensors_of_data(data) | tensors_of_function(start)
    global_state = torch.random.get_rng_state()
    fitted = fit(data, start, penalty, random_stream(1, "checks"))
    require(
        is_equal(before, tensors_of_data(data) | tensors_of_function(start)),
        f"the fit changed the data or the start ({name})",
    )
    require(
        torch.equal(global_state, torch.random.get_rng_state()),
        f"the fit used torch's global generator ({name})",
    )
    again = fit(data, start, penalty, random_stream(1, "checks"))
    same = torch.equal(fitted.heads, again.heads) and is_equal(
        tensors_of_function(fitted), tensors_of_function(again)
    )
    require(same, f"two fits with equal generators differ ({name})")
    require(
        fitted.offset == start.offset and fitted.value_range == start.value_range,
        "the fit changed the offset or the value range of the start",
    )
    best = best_on(fitted.representation, data, start, penalty)
    require(
        fitted.heads.shape == best.heads.shape
        and torch.allclose(fitted.heads, best.heads, rtol=1e-6, atol=1e-8),
        f"the heads are not the minimisers for the returned representation ({name})",
    )


def _check_error(
    fit: LeastSquares,
    data: MultitaskDataset,
    start: MultiheadFunction,
    penalty: HeadPenalty,
    name: str,
) -> None:
    fitted = fit(data, start, penalty, random_stream(1, "checks"))
    error = penalised_error(fitted, data, penalty)
    at_start = best_on(start.representation, data, start, penalty)
    bound = penalised_error(at_start, data, penalty)
    require(
        error <= bound * (1 + 1e-9) + 1e-9,
        f"the penalised error {error:.6g} is larger than the {bound:.6g} of the start's "
        f"representation with its best heads ({name})",
    )


def check_squared_radius(radius: SquaredRadius, *, num_rounds: int = 1000) -> None:
    """Check a squared radius: finite, not negative, a function of the round alone.

    Args:
        radius: the implementation.
        num_rounds: rounds 1 .. num_rounds are checked.
    """
    values = [radius(round_index) for round_index in range(1, num_rounds + 1)]
    for round_index, value in enumerate(values, start=1):
        require(
            isinstance(value, int | float) and math.isfinite(value) and value >= 0,
            f"a squared radius must be finite and not negative, got {value!r} in round "
            f"{round_index}",
        )
    again = [radius(round_index) for round_index in range(num_rounds, 0, -1)]
    require(values == again[::-1], "the squared radius of a round changes between calls")

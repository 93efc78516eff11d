"""Validation of the saved state of a learner: its tensors, and the fit that they describe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from gfucb.bandits.saved_statistics import statistics_names, validate_statistics
from gfucb.core.errors import InvalidInputError
from gfucb.core.features import features_of
from gfucb.core.linalg import task_sums
from gfucb.core.validation.arrays import FLOATS, INTEGERS, LARGEST_INPUT
from gfucb.core.validation.settings import LARGEST_COMPUTED, LARGEST_REWARD
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.models import HeadPenalty, HeadStatistics, MultiheadFunction, MultitaskDataset
from gfucb.models.sample_statistics import SampleStatistics
from gfucb.models.statistics_forms import statistics_of

REPRESENTATION_PREFIX = "representation."
# Saved statistics and heads may differ from those computed again by this share: devices round
# differently, and networks may compute in half precision.
TOLERANCE = 0.05
NAMES = (
    "counters",
    "monitor",
    "data.inputs",
    "data.tasks",
    "data.targets",
    "heads",
)


def validate_learner_state(
    state: Mapping[str, Tensor],
    *,
    num_tasks: int,
    prefixes: Sequence[str],
    more_names: Iterable[str] = (),
    is_shard: bool = False,
) -> None:
    """Check names, shapes, types, finiteness and ranges of all tensors of a learner's state.

    Tensors with `more_names`, and those whose names start with one of `prefixes`, belong to other
    components, which check them. Of the latter NaN is refused here, and infinity outside the
    representation. A shard may have no samples, and its counters are those of all shards.
    """
    names = [*NAMES, *statistics_names(state), *more_names]
    validate_state_names(state, names, prefixes)
    validate_data(state, num_tasks, allow_empty=is_shard)
    floats = torch.float64
    low, high = -LARGEST_COMPUTED, LARGEST_COMPUTED
    shape = validate_state_tensor(
        state, "heads", (num_tasks, None), dtype=floats, low=low, high=high
    ).shape
    validate_statistics(state, shape)
    # Before the first fit the mean error to compare with is infinite.
    validate_state_tensor(state, "monitor", (3,), dtype=floats, low=0, is_finite=False)
    validate_state_tensor({"monitor": state["monitor"][1:]}, "monitor", (2,), high=high)
    for name in state:
        if name.startswith(tuple(prefixes)):
            # A network may have constants, such as a mask, that hold infinity.
            is_finite = not name.startswith(REPRESENTATION_PREFIX)
            any_shape = (None,) * state[name].ndim
            validate_state_tensor(state, name, any_shape, is_finite=is_finite)


def validate_data(state: Mapping[str, Tensor], num_tasks: int, *, allow_empty: bool = False) -> int:
    """Check the samples; return how many there are."""
    inputs = state["data.inputs"]
    if inputs.ndim < 1 or (len(inputs) == 0 and not allow_empty):
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


def require_shape(heads: Tensor, expected: Tensor) -> None:
    """Refuse saved heads [task, feature] of another shape than those of the agent."""
    if heads.shape != expected.shape:
        raise InvalidInputError(
            f"the saved heads have shape {list(heads.shape)}, "
            f"this agent's have {list(expected.shape)}"
        )


def validate_restored_fit(
    center: MultiheadFunction,
    data: MultitaskDataset,
    statistics: HeadStatistics,
    penalty: HeadPenalty,
    *,
    has_noise: bool,
) -> None:
    """Refuse statistics and heads that do not follow from the data and the representation.

    Weights, matrices or heads that were changed to huge numbers are finite, but decisions with them
    are not. With `has_noise` the targets of the heads are perturbed, and moments are not compared.
    """
    try:
        features = features_of(center.representation, data.inputs)
    except (InvalidInputError, RuntimeError) as error:
        raise InvalidInputError(
            f"the representation of the state cannot be used: {error}"
        ) from error
    targets = data.targets - center.offset
    if isinstance(statistics, SampleStatistics):
        expected = statistics_of(features, data.tasks, targets, data.num_tasks, data.shards)
        sizes = task_sums(features.square().sum(1), data.tasks, data.num_tasks)
        _require_close("statistics.features", statistics.squared_sizes() - sizes, sizes)
    else:
        expected = HeadStatistics.of(features, data.tasks, targets, data.num_tasks)
        sizes = expected.grams.abs().amax((1, 2))
        _require_close("statistics.grams", statistics.grams - expected.grams, sizes[:, None, None])
    if not has_noise:
        squares = torch.zeros_like(sizes).index_add(0, data.tasks, targets.square())
        bounds = (sizes * squares).sqrt()[:, None]  # of moments, by Cauchy and Schwarz
        _require_close("statistics.moments", statistics.moments - expected.moments, bounds)
    # In the norm of V, because rounding moves heads far in directions without data.
    heads = statistics.heads(penalty)
    lengths = [_length(w, statistics, penalty.ridge) for w in (center.heads - heads, heads)]
    _require_close("heads", *lengths)


def _length(heads: Tensor, statistics: HeadStatistics, ridge: float) -> Tensor:
    """sqrt(w^T V w) of heads [task, feature], V = gram + ridge I: [task]."""
    if isinstance(statistics, SampleStatistics):
        tasks = heads.any(-1).nonzero().squeeze(1)
        lengths = statistics.norms(heads[tasks], tasks, ridge).sqrt()
        return torch.zeros_like(heads[:, 0]).index_copy(0, tasks, lengths)
    factors = statistics.cholesky(ridge)
    return (factors.mT @ heads.unsqueeze(-1)).squeeze(-1).norm(dim=-1)


def _require_close(name: str, differences: Tensor, sizes: Tensor) -> None:
    if not bool((differences.abs() <= TOLERANCE * sizes + 1e-9).all()):
        raise InvalidInputError(
            f"{name!r} of the state do not follow from its data and its representation; they "
            f"differ by up to {float(differences.abs().max()):.3g}. The state was changed"
        )

"""The best heads for a representation, and the errors that fits minimise."""

from __future__ import annotations

from dataclasses import replace

from gfucb.models import (
    HeadPenalty,
    MultiheadFunction,
    MultitaskDataset,
    NeuralRepresentation,
    Representation,
    features_of,
)
from gfucb.models.representations import as_network
from gfucb.models.statistics_forms import statistics_of


def best_on(
    representation: Representation,
    data: MultitaskDataset,
    start: MultiheadFunction,
    penalty: HeadPenalty,
) -> MultiheadFunction:
    """The function on `representation` whose heads minimise the penalised squared error."""
    features = features_of(representation, data.inputs)
    statistics = statistics_of(
        features, data.tasks, data.targets - start.offset, data.num_tasks, data.shards
    )
    found = replace(start, representation=representation, heads=statistics.heads(penalty))
    return found.with_statistics(statistics, data, features)


def with_best_heads(
    start: MultiheadFunction, data: MultitaskDataset, penalty: HeadPenalty
) -> MultiheadFunction:
    """`best_on` its own representation, without a pass over the data if it has their statistics."""
    known = start.head_fit_of(data)
    if known is None:
        return best_on(start.representation, data, start, penalty)
    return replace(start, heads=known.statistics.heads(penalty))


def trainable_copy(start: MultiheadFunction) -> NeuralRepresentation:
    """A copy of the network of `start`."""
    return as_network(start.representation).copy()


def squared_error(function: MultiheadFunction, data: MultitaskDataset) -> float:
    """Sum over samples of (f_task(x) - reward)^2."""
    known = function.head_fit_of(data)
    features = known.features if known is not None else None
    if features is None:
        features = features_of(function.representation, data.inputs)
    errors = function.values_of_features(features, data.tasks) - data.targets
    return float(errors.square().sum())


def penalised_error(
    function: MultiheadFunction, data: MultitaskDataset, penalty: HeadPenalty
) -> float:
    """squared_error + ridge |heads|^2, the objective of all fits."""
    return squared_error(function, data) + penalty.ridge * float(function.heads.square().sum())

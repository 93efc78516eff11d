"""A fit to standardised rewards, in the unit of the rewards themselves."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.features import features_of
from gfucb.core.protocols import LeastSquares, WeightStatistics, WeightStatisticsKind
from gfucb.estimation.reward_scale import RewardScale
from gfucb.models import HeadPenalty, HeadStatistics, MultiheadFunction, MultitaskDataset
from gfucb.models.statistics_forms import statistics_of


def fit_scaled(
    fit: LeastSquares,
    data: MultitaskDataset,
    start: MultiheadFunction,
    penalty: HeadPenalty,
    generator: torch.Generator,
    *,
    scale: RewardScale,
) -> tuple[MultiheadFunction, HeadStatistics, Tensor | None]:
    """The fit of (targets - location) / scale, with heads and statistics in the unit of targets.

    Heads are linear in their targets, but a network is not: the steps that train it depend on the
    size of its errors. Returns the function, the statistics of its heads, and maybe the features
    of all samples. With the scale 1 the fit gets data and start as they are.
    """
    unit, fitted_data = scale.scale, data
    known = start.head_fit_of(data) if start.offset == scale.location else None
    start = replace(start, offset=scale.location, head_fit=known)
    if unit != 1:
        fitted_data = data.with_targets((data.targets - scale.location) / unit)
        start = replace(start, heads=start.heads / unit, offset=0.0, value_range=None)
        if known is not None:
            start = start.with_statistics(known.statistics.scaled(1 / unit), fitted_data)
    bound = penalty.norm_bound
    scaled_penalty = replace(penalty, norm_bound=None if bound is None else bound / unit)
    fitted = fit(fitted_data, start, scaled_penalty, generator)
    if not isinstance(fitted, MultiheadFunction):
        raise InvalidInputError(
            f"a fit must return a MultiheadFunction, got {type(fitted).__name__} from {fit!r}"
        )
    known = fitted.head_fit_of(fitted_data)
    if known is not None:
        statistics, features = known.statistics, known.features
    else:
        features = features_of(fitted.representation, data.inputs)
        targets = fitted_data.targets - fitted.offset
        statistics = statistics_of(features, data.tasks, targets, data.num_tasks, data.shards)
    if unit != 1:
        statistics = statistics.scaled(unit)
    heads = statistics.heads(penalty)
    return replace(fitted, heads=heads, offset=scale.location, head_fit=None), statistics, features


def heads_for(
    center: MultiheadFunction, data: MultitaskDataset, penalty: HeadPenalty
) -> tuple[MultiheadFunction, HeadStatistics]:
    """The function on the same representation with heads for these data, and their statistics."""
    features = features_of(center.representation, data.inputs)
    targets = data.targets - center.offset
    statistics = statistics_of(features, data.tasks, targets, data.num_tasks, data.shards)
    return center.with_heads(statistics.heads(penalty)), statistics


def weight_statistics_of(
    kind: WeightStatisticsKind | None,
    center: MultiheadFunction,
    data: MultitaskDataset,
    features: Tensor | None = None,
) -> WeightStatistics | None:
    """Statistics of gradients in the weights, for all samples; None if they are not used."""
    if kind is None:
        return None
    return kind.statistics(center, data.inputs, data.tasks, features)

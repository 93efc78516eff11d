"""The function of context and action that predicts best for all tasks at once.

The more tasks there are, the fewer features a head can have. What is common to all tasks can have
many: it is fitted once, to the samples of all tasks, and its value is a feature of every head.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.core.shards import global_tasks, in_any, mean_of_all
from gfucb.estimation.evidence import TaskMoments, two_level_posterior
from gfucb.estimation.table_samples import TableSamples, drawn
from gfucb.estimation.table_search import search_subset
from gfucb.models.table_features import PooledFunction, TableScales

# One frequency for so many samples of an action, up to this number.
SAMPLES_PER_FREQUENCY, MOST_FREQUENCIES = 8, 300
# There is no such function unless it has this many times the frequencies of a head.
FREQUENCY_RATIO = 2
# Frequencies and samples in the search for scales.
SEARCH_FREQUENCIES, MOST_SEARCH_SAMPLES = 100, 12_000
# The function is fitted to about so many samples at most, a random part of more: 80 for a weight.
MOST_FITTED = 50_000
# Features of so many samples are computed at once.
SAMPLES_AT_ONCE = 50_000
# It must explain this share of the variance of the rewards of tasks that it was not fitted to.
SMALLEST_SHARE, NUM_FOLDS = 0.1, 5


@dataclass(frozen=True, eq=False)
class PooledFit:
    """A function of all tasks, and values [n] for the samples of a fit.

    The values are those of functions fitted to other tasks only. Values of the function itself
    would contain the noise of the rewards, and heads would rely on them too much.
    """

    function: PooledFunction
    values: Tensor


def fit_pooled(
    samples: TableSamples,
    before: PooledFunction | None,
    frequencies: Tensor,
    generator: torch.Generator,
) -> PooledFit | None:
    """The pooled function of samples; None if it does not predict the rewards of other tasks.

    Args:
        samples: of a fit, with their actions in the inputs.
        before: of the fit before; the search for scales starts from its scales.
        frequencies: `MOST_FREQUENCIES` standard normal frequencies, [frequency, direction].
        generator: selects the samples of the search, and splits the tasks.
    """
    shards, total = samples.shards, samples.total
    count = _num_frequencies(samples, total)
    is_possible = samples.all_tasks > 1 and samples.columns.num_directions > 0
    spread = float(mean_of_all(shards, samples.targets.square()).sqrt())
    if not is_possible or spread == 0 or count < FREQUENCY_RATIO * len(samples.columns.frequencies):
        return None
    by_action = _by_action(samples, frequencies[:count], spread)
    num_actions = by_action.num_tasks
    scales = before.scales if before is not None else TableScales()
    if num_actions == 1:
        scales = replace(scales, mean_ratio=0.0)
    few = by_action.columns.frequencies[:SEARCH_FREQUENCIES]
    searched = replace(by_action, columns=replace(by_action.columns, frequencies=few))
    scales = search_subset(searched, scales, generator, MOST_SEARCH_SAMPLES)
    order = torch.randperm(samples.all_tasks, generator=generator).to(samples.tasks.device)
    folds = order[global_tasks(shards, samples.tasks)] % NUM_FOLDS
    function, values = _fitted(by_action, scales, folds, total, generator)
    errors = by_action.targets - values
    if float(mean_of_all(shards, errors.square())) > 1 - SMALLEST_SHARE:
        return None
    return PooledFit(function, values)


def _fitted(
    samples: TableSamples,
    scales: TableScales,
    folds: Tensor,
    total: int,
    generator: torch.Generator,
) -> tuple[PooledFunction, Tensor]:
    """The function of all samples, and values [n] of functions of the other folds [n]."""
    deviations = samples.columns.scales(scales)
    is_used = torch.ones_like(folds, dtype=torch.bool)
    if total > MOST_FITTED:
        assert samples.keys is not None  # large data have keys
        seed = torch.randint(2**62, (), generator=generator)
        is_used = drawn(samples.keys, seed, MOST_FITTED / total)
    fitted = samples.where(is_used)
    features = fitted.columns.features(fitted.inputs, scales.length) * deviations
    every = torch.ones_like(fitted.tasks, dtype=torch.bool)
    sums, values = _sums(fitted, features, every), torch.zeros_like(samples.targets)
    for fold in range(NUM_FOLDS):
        is_fold = folds == fold
        if not in_any(samples.shards, bool(is_fold.any())):
            continue
        # The sums of the other folds by a difference: two passes over the samples instead of five.
        part = _sums(fitted, features, is_fold[is_used])
        weights = _weights(sums.without(part), scales.mean_ratio)
        for rows in is_fold.nonzero().squeeze(1).split(SAMPLES_AT_ONCE):
            if total > MOST_FITTED:
                own = samples.columns.features(samples.inputs[rows], scales.length) * deviations
            else:
                own = features[rows]
            values[rows] = (own * weights[samples.tasks[rows]]).sum(1)
    weights = _weights(sums, scales.mean_ratio) * deviations
    return PooledFunction(samples.columns.frequencies, scales, weights), values


def _num_frequencies(samples: TableSamples, total: int) -> int:
    per_action = total / max(1, samples.columns.layout.num_actions)
    return min(MOST_FREQUENCIES, int(per_action / SAMPLES_PER_FREQUENCY))


def _by_action(samples: TableSamples, frequencies: Tensor, spread: float) -> TableSamples:
    """The samples with actions as tasks, contexts as inputs, and targets of unit variance."""
    columns = samples.columns
    context, actions = columns.layout.split(samples.inputs)
    of_action = torch.zeros_like(samples.tasks) if actions is None else actions.argmax(1)
    return TableSamples(
        context,
        of_action,
        samples.targets / spread,
        max(1, columns.layout.num_actions),
        columns.of_context(frequencies),
        samples.pseudo_square / spread**2,
        shards=samples.shards,
        keys=samples.keys,
        total_samples=samples.total_samples,
    )


def _sums(samples: TableSamples, features: Tensor, is_used: Tensor) -> TaskMoments:
    """The sums of the used samples [n] with scaled features, for each action."""
    own = TaskMoments.of(
        features[is_used],
        samples.tasks[is_used],
        samples.targets[is_used],
        samples.num_tasks,
        pseudo_square=samples.pseudo_square,
    )
    return own.of_all(samples.shards)


def _weights(sums: TaskMoments, mean_ratio: float) -> Tensor:
    """Weights of each action on scaled features, [action, feature]."""
    found = two_level_posterior(sums, torch.ones_like(sums.moments[0]), mean_ratio)
    assert isinstance(found.covariances, Tensor)  # actions are few
    return (found.covariances @ (found.moments + found.mean).unsqueeze(-1)).squeeze(-1)

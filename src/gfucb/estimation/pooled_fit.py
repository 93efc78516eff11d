"""The function of context and action that predicts best for all tasks at once.

The more tasks there are, the fewer features a head can have. What is common to all tasks can have
many: it is fitted once, to the samples of all tasks, and its value is a feature of every head.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.estimation.evidence import TaskMoments, two_level_posterior
from gfucb.estimation.table_search import TableSamples, search_scales
from gfucb.models.table_features import PooledFunction, TableScales

# One frequency for so many samples of an action, up to this number.
SAMPLES_PER_FREQUENCY, MOST_FREQUENCIES = 8, 300
# There is no such function unless it has this many times the frequencies of a head.
FREQUENCY_RATIO = 2
# Frequencies and samples in the search for scales.
SEARCH_FREQUENCIES, MOST_SEARCH_SAMPLES = 100, 12_000
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
    count = _num_frequencies(samples)
    is_possible = samples.num_tasks > 1 and samples.columns.num_directions > 0
    spread = float(samples.targets.square().mean().sqrt())
    if not is_possible or spread == 0 or count < FREQUENCY_RATIO * len(samples.columns.frequencies):
        return None
    by_action = _by_action(samples, frequencies[:count], spread)
    num_actions = by_action.num_tasks
    scales = before.scales if before is not None else TableScales()
    if num_actions == 1:
        scales = replace(scales, mean_ratio=0.0)
    few = by_action.columns.frequencies[:SEARCH_FREQUENCIES]
    searched = replace(by_action, columns=replace(by_action.columns, frequencies=few))
    scales = search_scales(searched.subset(generator, MOST_SEARCH_SAMPLES), scales)
    deviations = by_action.columns.scales(scales)
    features = by_action.columns.features(by_action.inputs, scales.length) * deviations

    order = torch.randperm(samples.num_tasks, generator=generator).to(samples.tasks.device)
    folds = order[samples.tasks] % NUM_FOLDS
    values = torch.zeros_like(by_action.targets)
    sums = _sums(by_action, features, torch.ones_like(folds, dtype=torch.bool))
    for fold in folds.unique().tolist():
        # The sums of the other folds by a difference: two passes over the samples instead of five.
        is_own = folds == fold
        weights = _weights(sums.without(_sums(by_action, features, is_own)), scales.mean_ratio)
        values[is_own] = (features[is_own] * weights[by_action.tasks[is_own]]).sum(1)
    errors = by_action.targets - values
    if float(errors.square().mean()) > 1 - SMALLEST_SHARE:
        return None
    weights = _weights(sums, scales.mean_ratio) * deviations
    return PooledFit(PooledFunction(by_action.columns.frequencies, scales, weights), values)


def _num_frequencies(samples: TableSamples) -> int:
    per_action = len(samples.targets) / max(1, samples.columns.layout.num_actions)
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
    )


def _sums(samples: TableSamples, features: Tensor, is_used: Tensor) -> TaskMoments:
    """The sums of the used samples [n] with scaled features, for each action."""
    return TaskMoments.of(
        features[is_used],
        samples.tasks[is_used],
        samples.targets[is_used],
        samples.num_tasks,
        pseudo_square=samples.pseudo_square,
    )


def _weights(sums: TaskMoments, mean_ratio: float) -> Tensor:
    """Weights of each action on scaled features, [action, feature]."""
    found = two_level_posterior(sums, torch.ones_like(sums.moments[0]), mean_ratio)
    return (found.covariances @ (found.moments + found.mean).unsqueeze(-1)).squeeze(-1)

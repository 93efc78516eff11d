"""The fit of tables: features chosen by marginal likelihood, heads around a shared mean."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gfucb.core.shards import ONE_SHARD, Shards, mean_of_all
from gfucb.estimation.evidence import TwoLevelPosterior, two_level_posterior
from gfucb.estimation.head_covariance import covariance_factor
from gfucb.estimation.mean_before_choice import mean_before_choice
from gfucb.estimation.pooled_fit import MOST_FITTED, fit_pooled
from gfucb.estimation.table_directions import choose_directions
from gfucb.estimation.table_samples import TableSamples
from gfucb.estimation.table_search import FEWEST_SEARCH_SAMPLES, search_subset
from gfucb.models.head_posterior import UNTRIED_RATE, HeadPosterior, PosteriorFit
from gfucb.models.table_features import TableColumns, TableFeatures, TableScales
from gfucb.models.table_sizes import MANY_TASKS
from gfucb.models.task_covariances import as_covariances

# Exploration: linear effects as large as this share of the reward range are considered possible,
# in the sense of LinUCB, and less so after many samples.
EXPLORED_SHARE, EXPLORED_SAMPLES = 0.25, 1000
# With more one-hot actions than this, their variances are smaller: the tries of all actions
# together then cost about as much as those of this many.
EXPLORED_ACTIONS = 5
# Candidates that are drawn anew in every round make a single task explore: the variance of effects
# is then multiplied by this. A list of items, the same in every round, does not.
EXPLORED_DRAWN = 0.04
# Where the linear features leave nothing out, their effects are seen in the noise of rewards. It is
# estimated, as if so many more samples had the noise that is assumed elsewhere.
ASSUMED_SAMPLES = 3
# The range of rewards, in standard deviations, if it is not known.
UNKNOWN_RANGE = 4.0
# Without a known range a reward far from all others may still be possible, so actions must be
# tried more often: at least this times log(number of samples), see `HeadPosterior`.
UNKNOWN_RANGE_RATE = 1.0
# A single task with arms and no context tries each arm once. This rate needs e^20 samples for more.
# The bonus of such arms grows, see `exploration_rates`, which is what makes it try them again.
FIRST_TRY_RATE = 0.05


def fit_table(
    inputs: Tensor,
    tasks: Tensor,
    rewards: Tensor,
    *,
    num_tasks: int,
    start: TableFeatures,
    reward_range: float | None,
    generator: torch.Generator,
    pooled_frequencies: Tensor,
    shards: Shards = ONE_SHARD,
) -> PosteriorFit:
    """Choose scales by marginal likelihood, starting from `start`, and solve all heads.

    With several tasks, a function that is the same for all becomes a feature (`fit_pooled`), and
    the covariance of heads is estimated around the scales.

    Args:
        inputs: [n, column].
        tasks: [n].
        rewards: [n], without outliers.
        num_tasks: M; with several shards the number of tasks of this one.
        start: standardisation and frequencies, and scales and covariance of the previous fit.
        reward_range: the width of the range of rewards, if it is known.
        generator: selects the samples of the search, if there are too many.
        pooled_frequencies: of the function that is the same for all tasks, [frequency, direction].
        shards: of which this process holds one; the fit is that of the samples of all.
    """
    offset = float(mean_of_all(shards, rewards))
    targets = rewards - offset
    spread = float(mean_of_all(shards, targets.square()).sqrt())
    width = reward_range or UNKNOWN_RANGE * spread or 1.0
    columns, scales = start.columns, start.scales
    samples = TableSamples.of(
        inputs, tasks, targets, num_tasks, columns, width**2, shards, with_keys_from=MOST_FITTED
    )
    is_single = samples.all_tasks == 1
    if is_single:
        scales = replace(scales, mean_ratio=0.0)
    if columns.has_arms_of_one_task:
        shift = mean_before_choice(samples, scales)
        offset, samples = offset + shift, replace(samples, targets=targets - shift)
    samples = choose_directions(samples, scales, generator)
    pooled = fit_pooled(samples, start.pooled, pooled_frequencies, generator)
    columns = replace(samples.columns, has_pooled=pooled is not None)
    values, function = (None, None) if pooled is None else (pooled.values, pooled.function)
    samples = replace(samples, columns=columns, pooled=values)
    if samples.total >= FEWEST_SEARCH_SAMPLES:
        scales = search_subset(samples, scales, generator)
    sums, deviations = samples.all_sums(scales.length), columns.scales(scales)
    factor = None
    if not is_single:
        # Fourier features of another length are other features.
        is_same = scales.length == start.scales.length
        is_same &= columns.has_pooled == start.columns.has_pooled
        known = start.factor if is_same else None
        factor = covariance_factor(sums, deviations, scales.mean_ratio, known, shards)
    posterior = two_level_posterior(sums, deviations, scales.mean_ratio, factor, shards)
    heads = _head_posterior(posterior, samples, scales, width, reward_range is not None)
    return PosteriorFit(TableFeatures(columns, scales, factor, function), heads, offset)


def _head_posterior(
    found: TwoLevelPosterior,
    samples: TableSamples,
    scales: TableScales,
    reward_range: float,
    is_range_known: bool,
) -> HeadPosterior:
    """The posterior with the uncertainty of effects that the model has not seen."""
    share = EXPLORED_SHARE**2 * EXPLORED_SAMPLES / (EXPLORED_SAMPLES + samples.total)
    share *= min(1.0, EXPLORED_ACTIONS / max(1, samples.columns.layout.num_actions))
    # Effects of one task alone are the smaller, the more tasks are alike.
    share *= min(1.0, 2 / (1 + scales.mean_ratio))
    if samples.all_tasks == 1 and samples.are_drawn_anew():
        share *= EXPLORED_DRAWN
    scale = share * reward_range**2 / found.noise
    precision = _exploration_precision(samples, scale)
    return HeadPosterior(
        as_covariances(found.covariances),
        found.moments,
        found.mean,
        found.mean_covariance,
        as_covariances(samples.linear_covariances(precision)),
        scale,
        found.noise,
        found.noise,  # the squared radius: intervals of one posterior standard deviation
        samples.tries(),
        _untried_rate(samples, is_range_known),
        precision,
    )


def _exploration_precision(samples: TableSamples, scale: float) -> float:
    """How much a sample tells about effects that the model has not seen, see `HeadPosterior`.

    Their variance is `scale` in units of the noise variance of rewards. The noise in which they are
    seen is assumed to be as large: it also stands for what linear effects leave out. Where they
    leave nothing out it is estimated, and is smaller if rewards have less noise.
    """
    if not samples.columns.explores_all_differences:
        return 1.0
    known, assumed = samples.total, ASSUMED_SAMPLES
    noise = (known + assumed * scale) / (known + assumed)
    return max(1.0, scale / noise)


def _untried_rate(samples: TableSamples, is_range_known: bool) -> float:
    """How often actions must be tried, see `HeadPosterior`."""
    if not is_range_known:
        # One task has to find by itself what several find together.
        return UNTRIED_RATE + (UNKNOWN_RANGE_RATE - UNTRIED_RATE) / samples.all_tasks
    has_context = samples.columns.num_directions > 0
    return UNTRIED_RATE if has_context or samples.all_tasks > 1 else FIRST_TRY_RATE


def prior_posterior(
    inputs: Tensor, *, num_tasks: int, columns: TableColumns, reward_range: float | None
) -> HeadPosterior:
    """The posterior of no data; `inputs` [n, column] are any inputs.

    The columns know the number of tasks of all shards, of which `num_tasks` are in this one.
    """
    scales = TableScales()
    size = len(columns.scales(scales))
    width = reward_range or 1.0
    noise = (EXPLORED_SHARE * width) ** 2
    ratio = scales.mean_ratio if columns.num_tasks > 1 else 0.0
    return HeadPosterior.empty(
        num_tasks,
        size,
        columns.linear_features(inputs[:1]).shape[1],
        mean_variances=columns.location.new_full((size,), ratio),
        exploration_scale=1.0,
        noise=noise,
        holds_samples=columns.num_tasks > MANY_TASKS,
    )

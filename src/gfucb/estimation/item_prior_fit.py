"""Empirical Bayes: an `ItemPrior` from the rewards of many tasks."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import torch
from torch import Tensor

from gfucb.core.hashed_draws import GOLDEN, mixed
from gfucb.core.linalg import task_sums
from gfucb.core.shards import (
    ONE_SHARD,
    Shards,
    global_tasks,
    in_any,
    mean_of_all,
    num_distinct,
    totals,
)
from gfucb.estimation.item_pairs import ItemPairs
from gfucb.estimation.item_prior import ItemPrior, predict_items
from gfucb.estimation.item_prior_em import LEVEL_PAIRS, SMALLEST_SHARE, Shrinkage, em_step

MAX_RANK = 8
# Candidates for the shares of variance in `Shrinkage`, and the choice before a task has two pairs.
# Agents choose items that they expect to be good. Among these the values of tasks differ less than
# among all items, so that the held-out density favours shares that are too small for decisions:
# no candidate is below 0.15 for the factor.
MEAN_SHARES = (0.03, 0.1, 0.3)
FACTOR_SHARES = (0.15, 0.4)
FIRST_SHARES = (0.1, 0.15)
# With more tasks, about this many choose among the candidates.
CHOOSING_TASKS = 4000
# In every task the pairs 1, 4, 7, ... are held out, in the order of item numbers.
HELD_OUT_PERIOD = 3
ORTHOGONAL_ITERATIONS = 5
# Pseudo-samples at 0 for the mean residual of a task, before the first fit.
TASK_PAIRS = 5


def fit_item_prior(
    items: Tensor,
    tasks: Tensor,
    targets: Tensor,
    *,
    num_items: int,
    start: ItemPrior | None = None,
    max_iterations: int = 6,
    max_rank: int = MAX_RANK,
    shards: Shards = ONE_SHARD,
) -> ItemPrior:
    """Estimate mean, covariance and noise over tasks: the mode of likelihood times hyperprior.

    The strengths of the hyperprior have the largest density of held-out pairs among six
    candidates. There is no randomness, and targets may have any location and scale. The cost of
    an iteration is linear in samples, items and tasks with samples, and about quadratic in the
    rank.

    With the data of fewer than two tasks nothing says what tasks have in common: the mean is then
    0 and the covariance isotropic, with the scale of the targets.

    Args:
        items: item numbers, [sample].
        tasks: task numbers, [sample].
        targets: rewards minus the offset, [sample], float64.
        num_items: items are numbered 0 .. num_items - 1; some may have no samples.
        start: an earlier prior of at most as many items: its mean, diagonal and noise are the
            initial ones.
        max_iterations: EM iterations of a fit, also of every candidate.
        max_rank: the rank of the factor, if there are as many items.
        shards: of which this process holds one; the prior is that of the tasks of all.
    """
    # Tasks without samples change nothing, and cost nothing.
    present, tasks = torch.unique(tasks, return_inverse=True)
    pairs = ItemPairs.of(
        items, tasks, targets, num_items=num_items, num_tasks=len(present), shards=shards
    )
    count = num_distinct(pairs.tasks, shards)
    if count < 2:
        return _isotropic_prior(pairs)
    start = None if start is None else start.grown(num_items)
    rank = min(max_rank, num_items)
    choosing = pairs
    if count > CHOOSING_TASKS:
        # A hash of the task's number: the same tasks with any number of shards.
        draws = mixed(global_tasks(shards, present) * GOLDEN).double() / 2**63
        choosing = pairs.of_tasks(draws.abs() < CHOOSING_TASKS / count)
    shrinkage = select_shrinkage(choosing, rank, start, max_iterations)
    return _fitted(pairs, shrinkage, rank, start, max_iterations)


def _fitted(
    pairs: ItemPairs, shrinkage: Shrinkage, rank: int, start: ItemPrior | None, iterations: int
) -> ItemPrior:
    prior = initial_prior(pairs, shrinkage, rank, start)
    for _ in range(iterations):
        prior = em_step(prior, pairs, shrinkage)
    return prior


def _isotropic_prior(pairs: ItemPairs) -> ItemPrior:
    """Mean 0 and rank 0; repeated samples of an item tell noise from the variance of values."""
    zeros = pairs.means.new_zeros(pairs.num_items)
    counts = pairs.counts
    total, repeated, within, between = pairs.total(
        counts, counts - 1, pairs.within, counts * pairs.means.square()
    )
    squares = between + within
    scale = squares / total if squares > 0 else torch.ones_like(squares)
    noise = (within + LEVEL_PAIRS * scale / 2) / (repeated + LEVEL_PAIRS)
    variance = (scale - noise).clamp_min(SMALLEST_SHARE * scale)
    return ItemPrior(zeros, zeros.new_zeros(pairs.num_items, 0), zeros + variance, noise)


def initial_prior(
    pairs: ItemPairs, shrinkage: Shrinkage, rank: int, start: ItemPrior | None = None
) -> ItemPrior:
    """A constant column for differences between tasks, and the main directions of residuals.

    Columns have the length of the hyperprior, also with a `start`: EM leaves a column near 0
    slowly, and early fits have such columns because little data supports them.
    """
    scale, num_items, device = shrinkage.scale, pairs.num_items, pairs.means.device
    mean = _shrunk_means(pairs, shrinkage) if start is None else start.mean
    residuals = pairs.means - mean[pairs.items]
    sums = task_sums(residuals, pairs.tasks, pairs.num_tasks)
    counts = torch.bincount(pairs.tasks, minlength=pairs.num_tasks)
    residuals = residuals - (sums / (counts + TASK_PAIRS))[pairs.tasks]
    # No randomness: orthogonal iteration starts from the items with the largest residuals.
    largest = pairs.item_sums(residuals.square()).argsort(descending=True)
    basis = torch.zeros(num_items, rank - 1, dtype=torch.float64, device=device)
    basis[largest[: rank - 1], torch.arange(rank - 1, device=device)] = 1.0
    for _ in range(ORTHOGONAL_ITERATIONS):
        image = pairs.by_item(residuals, pairs.by_task(residuals, basis))
        basis = torch.linalg.qr(image).Q
    length = (num_items * scale * shrinkage.factor_share / rank).sqrt()
    constant = (scale * FIRST_SHARES[1]).sqrt().expand(num_items, 1)
    factor = torch.cat([constant, basis * length], 1)
    if start is not None:
        return replace(start, factor=factor)
    level = scale * (1 - sum(FIRST_SHARES)) / 2
    return ItemPrior(mean, factor, level.expand(num_items), level)


def _shrunk_means(pairs: ItemPairs, shrinkage: Shrinkage) -> Tensor:
    """Means of items, each with pseudo-samples at the mean of all pairs: [item]."""
    common = mean_of_all(pairs.shards, pairs.means)
    sums = pairs.item_sums(pairs.means - common)
    return common + sums / (pairs.item_counts() + 1 / shrinkage.mean_share)


def select_shrinkage(
    pairs: ItemPairs, rank: int, start: ItemPrior | None, iterations: int
) -> Shrinkage:
    """The candidate under which held-out pairs have the largest density, given the other pairs."""
    scale = _variance(pairs)
    order = torch.arange(len(pairs), device=pairs.tasks.device)
    order = order - torch.searchsorted(pairs.tasks, pairs.tasks)
    is_held_out = order % HELD_OUT_PERIOD == 1
    best, best_density = Shrinkage(scale, *FIRST_SHARES), -math.inf
    if not in_any(pairs.shards, bool(is_held_out.any())):
        return best
    kept, held_out = pairs.where(~is_held_out), pairs.where(is_held_out)
    for mean_share, factor_share in itertools.product(MEAN_SHARES, FACTOR_SHARES):
        candidate = Shrinkage(scale, mean_share, factor_share)
        prior = _fitted(kept, candidate, rank, start, iterations)
        own = float(predictive_log_density(prior, kept, held_out))
        (density,) = totals(pairs.shards, own)
        if density > best_density:
            best, best_density = candidate, density
    return best


def predictive_log_density(prior: ItemPrior, kept: ItemPairs, held_out: ItemPairs) -> Tensor:
    """Sum of the log densities of held-out means, each given the kept pairs of its task."""
    prediction = predict_items(prior, kept, held_out.tasks, held_out.items[:, None])
    variance = prediction.variance.squeeze(1) + prior.noise / held_out.counts
    errors = held_out.means - prediction.mean.squeeze(1)
    return -((2 * math.pi * variance).log() + errors.square() / variance).sum() / 2


def _variance(pairs: ItemPairs) -> Tensor:
    """The variance of all targets; of equal ones, a small share of their squares, or 1."""
    total, sums, within = pairs.total(pairs.counts, pairs.counts * pairs.means, pairs.within)
    mean = sums / total
    (between,) = pairs.total(pairs.counts * (pairs.means - mean).square())
    squares = between + within
    variance = (squares / total).clamp_min(SMALLEST_SHARE**2 * mean.square())
    return variance if variance > 0 else torch.ones_like(variance)

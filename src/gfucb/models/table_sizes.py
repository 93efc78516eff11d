"""How many features a table has: as many as the memory of all heads allows."""

from __future__ import annotations

import math

from gfucb.models.table_layout import TableLayout

# The sizes of features are bounded by the memory of all heads: at most this many numbers in the
# covariance matrices of all tasks, and at most this many features. With more than MANY_TASKS tasks
# no matrices are stored, and heads have the sizes of so many tasks.
LARGEST_COVARIANCES, MANY_TASKS = 2_000_000, 1000
MOST_FEATURES = 400
FEWEST_FREQUENCIES, MOST_FREQUENCIES = 8, 64
# With one-hot actions the context is projected to as few directions as this, before the actions
# have no weights of their own.
FEWEST_DIRECTIONS = 8


def largest_size(num_tasks: int) -> int:
    """The largest number of features whose covariances of all tasks fit in memory."""
    return min(MOST_FEATURES, math.isqrt(LARGEST_COVARIANCES // min(num_tasks, MANY_TASKS)))


def largest_interactions(num_tasks: int) -> int:
    """The largest number of features where actions need many weights: P to 4 P."""
    size, num_tasks = largest_size(num_tasks), min(num_tasks, MANY_TASKS)
    return max(size, min(4 * size, math.isqrt(2 * LARGEST_COVARIANCES // num_tasks)))


def num_frequencies(layout: TableLayout, num_directions: int, num_tasks: int) -> int:
    """The number of random frequencies beside the directions of the context."""
    num_left = (largest_size(num_tasks) // (layout.num_actions + 1) - num_directions - 1) // 2
    return min(MOST_FREQUENCIES, max(FEWEST_FREQUENCIES, num_left)) if num_directions else 0


def most_directions(layout: TableLayout, num_tasks: int) -> int:
    """The largest number of directions of the context; 0 if weights for each action are too many.

    Features of all actions are at most 2 P, P = `largest_size`, or `largest_interactions` if that
    is more. Contexts with more columns than these allow are projected: weights for each action on
    some directions are worth more than none on all columns.
    """
    size, others = largest_size(num_tasks), 1 + 2 * FEWEST_FREQUENCIES
    most = max(1, size - others)
    blocks, context = layout.num_actions + 1, layout.num_context
    if not layout.num_actions:
        return most
    if not context:
        return most if blocks <= 2 * size else 0
    if blocks * (context + others) <= 2 * size:
        return most
    affordable = largest_interactions(num_tasks) // blocks - others
    return min(most, context, affordable) if affordable >= min(context, FEWEST_DIRECTIONS) else 0

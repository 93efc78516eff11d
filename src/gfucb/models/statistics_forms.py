"""Which form the statistics of heads have: Gram matrices of all tasks, or features of samples."""

from __future__ import annotations

import torch
from torch import Tensor

from gfucb.core.shards import ONE_SHARD, OneShard, Shards
from gfucb.models.heads import HeadStatistics
from gfucb.models.sample_statistics import SampleStatistics

# Up to so many numbers, the Gram matrices of all tasks are stored.
LARGEST_GRAMS = 2**25


def statistics_of(
    features: Tensor, tasks: Tensor, targets: Tensor, num_tasks: int, shards: Shards = ONE_SHARD
) -> HeadStatistics:
    """Statistics of samples [n, feature], [n], [n], in the form that takes less memory."""
    size = features.shape[1]
    # Rows in single precision; Gram matrices and their factors in double precision.
    is_smaller = len(features) * size < 4 * num_tasks * size**2
    if is_smaller and _holds_samples(num_tasks, size, shards):
        return SampleStatistics.of_samples(features, tasks, targets, num_tasks)
    return HeadStatistics.of(features, tasks, targets, num_tasks)


def empty_statistics(
    num_tasks: int, feature_dim: int, device: torch.device | str, shards: Shards = ONE_SHARD
) -> HeadStatistics:
    """The statistics of no data."""
    if _holds_samples(num_tasks, feature_dim, shards):
        return SampleStatistics.none(num_tasks, feature_dim, device)
    return HeadStatistics.empty(num_tasks, feature_dim, device)


def _holds_samples(num_tasks: int, feature_dim: int, shards: Shards) -> bool:
    """Whether statistics hold samples; agents are divided because they have many tasks."""
    return num_tasks * feature_dim**2 > LARGEST_GRAMS or not isinstance(shards, OneShard)

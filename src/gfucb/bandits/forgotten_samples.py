"""Heads after samples were dropped: those of the tasks concerned are solved again."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gfucb.core.features import features_of
from gfucb.models import HeadPenalty, HeadStatistics, MultiheadFunction, MultitaskDataset
from gfucb.models.head_posterior import PosteriorFit
from gfucb.models.task_covariances import with_samples_only


def heads_of_kept(
    center: MultiheadFunction,
    statistics: HeadStatistics,
    data: MultitaskDataset,
    dropped: Tensor,
    penalty: HeadPenalty,
) -> tuple[MultiheadFunction, HeadStatistics]:
    """Function and statistics of kept samples; `dropped` are the tasks [n] of those dropped."""
    changed, rows, position = _of_tasks(data, dropped)
    features = features_of(center.representation, data.inputs[rows])
    targets = data.targets[rows] - center.offset
    after = statistics.with_samples_at(changed, features, position, targets)
    return center.with_heads(after.heads_solved_at(changed, penalty, center.heads)), after


def posterior_of_kept(
    fit: PosteriorFit,
    data: MultitaskDataset,
    rewards: Tensor,
    dropped_tasks: Tensor,
    dropped_inputs: Tensor,
) -> PosteriorFit:
    """The fit with the posterior of kept samples, with clipped rewards [sample]."""
    posterior = fit.posterior
    changed, rows, position = _of_tasks(data, dropped_tasks)
    features = features_of(fit.features, data.inputs[rows])
    own = replace(posterior, moments=posterior.moments[changed]).given(
        features, position, rewards[rows] - fit.offset
    )
    size, end = posterior.feature_dim, posterior.uncertain_dim
    scaled, linear = features[:, :size], features[:, size:end]
    without = features_of(fit.features, dropped_inputs)[:, posterior.feature_dim :]
    after = replace(
        posterior,
        covariances=with_samples_only(
            posterior.covariances, own.covariances, changed, scaled, position
        ),
        moments=posterior.moments.index_copy(0, changed, own.moments),
        exploration=with_samples_only(
            posterior.exploration, own.exploration, changed, posterior.seen(linear), position
        ),
        tries=posterior.tries - (without != 0).sum(0),
        known_heads=posterior.heads.index_copy(0, changed, own.heads),
    )
    return replace(fit, posterior=after)


def _of_tasks(data: MultitaskDataset, tasks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct tasks, the samples of these tasks, and the positions of their tasks."""
    changed = tasks.unique()
    rows = torch.isin(data.tasks, changed).nonzero().squeeze(1)
    return changed, rows, torch.searchsorted(changed, data.tasks[rows])

"""The mean reward of inputs that nobody has chosen for their rewards."""

from __future__ import annotations

import torch

from gfucb.estimation.table_samples import TableSamples
from gfucb.models.table_features import TableScales

# Smaller weights of the constant, relative to the number of samples, are rounding errors.
SMALLEST_WEIGHT = 1e-9


def mean_before_choice(samples: TableSamples, scales: TableScales) -> float:
    """The generalised least-squares estimate of the constant of targets, for heads of all samples.

        (1^T K^-1 y) / (1^T K^-1 1),   K = I + Phi D^2 Phi^T,

    with inverses by the formula of Woodbury. The mean of all rewards is that of actions which the
    agent has chosen because they are good. An action that was hardly tried would be expected to be
    as good. Samples of one action in similar contexts are correlated, so they count here as about
    one sample each time, however often they were chosen.

    Args:
        samples: of one task, whose first feature is the constant.
        scales: prior scales of the features.
    """
    shards, sums = samples.shards, samples.sums(scales.length)
    deviations = samples.columns.scales(scales)
    gram, moments = shards.sum(sums.grams.sum(0)), shards.sum(sums.moments.sum(0))
    constants = gram[0]
    precision = deviations[:, None] * gram * deviations
    precision.diagonal().add_(1)
    factor = torch.linalg.cholesky(precision)
    explained = torch.cholesky_solve((deviations * constants)[:, None], factor).squeeze(1)
    explained = deviations * explained
    weight = float(constants[0] - explained @ constants)
    total = float(moments[0] - explained @ moments)
    return total / weight if weight > SMALLEST_WEIGHT * samples.total else 0.0

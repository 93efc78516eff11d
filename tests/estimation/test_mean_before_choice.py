"""The mean of inputs that were not chosen for their rewards."""

import pytest
import torch

from gfucb.core.random import random_stream
from gfucb.core.shards import ONE_SHARD
from gfucb.estimation.mean_before_choice import mean_before_choice
from gfucb.estimation.table_samples import TableSamples
from gfucb.models.table_features import TableColumns, TableScales
from gfucb.models.table_layout import TableLayout

CONTEXT, ACTIONS = 2, 3
SCALES = TableScales(bias=2.0, linear=0.5, shared=0.2, mean_ratio=0.0)


def samples_of(actions: list[int], rewards: list[float]) -> TableSamples:
    """Samples of a task, whose contexts hardly vary."""
    count = len(actions)
    draws = torch.randn(count, CONTEXT, generator=random_stream(0, "x"), dtype=torch.float64)
    inputs = torch.cat([draws, torch.eye(ACTIONS, dtype=torch.float64)[actions]], dim=1)
    layout = TableLayout(CONTEXT + ACTIONS, CONTEXT, ACTIONS)
    columns = TableColumns.of(layout, inputs, 1, random_stream(0, "frequencies"))
    tasks, targets = torch.zeros(count).long(), torch.tensor(rewards, dtype=torch.float64)
    return TableSamples.of(inputs, tasks, targets, 1, columns, 1.0, ONE_SHARD, with_keys_from=1000)


def test_is_generalised_least_squares():
    samples = samples_of([0, 1, 2, 0, 0], [1.0, 0.0, 0.2, 1.1, 0.9])
    features = samples.columns.features(samples.inputs, SCALES.length)
    features = features * samples.columns.scales(SCALES)
    covariance = features @ features.T + torch.eye(5, dtype=torch.float64)
    solved = torch.linalg.solve(covariance, torch.ones(5, dtype=torch.float64))
    expected = float(solved @ samples.targets / solved.sum())
    assert mean_before_choice(samples, SCALES) == pytest.approx(expected, rel=1e-9)


def test_hardly_depends_on_how_often_the_best_action_was_chosen():
    """The mean of all rewards goes to that of the best action."""
    found = [
        mean_before_choice(samples_of([0, 1, 2] + [0] * n, [1.0, 0.0, 0.2] + [1.0] * n), SCALES)
        for n in (0, 60)
    ]
    assert found[1] - found[0] < 0.2
    assert found[1] < 0.65  # the mean of all rewards is 0.97


def test_a_constant_that_is_not_determined_is_zero():
    unknown = TableScales(bias=1e9, linear=1e9, fourier=1e9, shared=0.8, mean_ratio=0.0)
    assert mean_before_choice(samples_of([0, 1, 2], [1.0, 0.0, 0.2]), unknown) == 0

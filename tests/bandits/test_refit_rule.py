"""Early refits: when the prediction errors have grown, and without a change of the schedule."""

import math

import pytest
import torch

from gfucb import GFUCB, FiniteClass
from gfucb.bandits.refit_rule import PredictionErrorMonitor
from gfucb.core.random import random_stream
from gfucb.models import IdentityRepresentation


def monitor(mean_before: float, mean_since: float, count: int) -> PredictionErrorMonitor:
    return PredictionErrorMonitor(mean_before).plus(torch.full((count,), mean_since).sqrt())


@pytest.mark.parametrize(
    ("errors", "samples", "is_early"),
    [
        (monitor(1.0, 2.1, 60), 160, True),
        (monitor(1.0, 1.9, 60), 160, False),  # errors have not doubled
        (monitor(1.0, 2.1, 49), 160, False),  # too few errors
        (monitor(1.0, 2.1, 50), 160, True),
        (monitor(1.0, 2.1, 60), 124, False),  # less than a quarter of the growth
        (monitor(1.0, 2.1, 60), 125, True),
        (monitor(math.inf, 1e6, 60), 160, False),  # no fit to compare with
    ],
)
def test_an_early_refit_needs_larger_errors_enough_of_them_and_growth(errors, samples, is_early):
    assert errors.should_refit(samples, at_fit=100, refit_growth=2.0) == is_early


def test_a_fit_compares_with_the_mean_error_before_it_if_there_were_enough():
    assert monitor(1.0, 4.0, 50).after_fit() == PredictionErrorMonitor(4.0)
    assert monitor(1.0, 4.0, 49).after_fit() == PredictionErrorMonitor(1.0)


def test_an_early_refit_does_not_move_the_schedule():
    """Rewards change after the fit at 128 samples; the next scheduled fit is at 256."""
    known = FiniteClass([IdentityRepresentation(), lambda x: x.double() ** 2])
    agent, draws, fits = GFUCB(1, known, refit_growth=2.0), random_stream(0, "samples"), []
    for size in range(1, 301):
        x = torch.rand(1, 4, generator=draws)
        noise = 0.1 * torch.randn(1, generator=draws)
        before = agent.learner.num_fits
        agent.learn([0], x, (x.mean(1) if size <= 128 else 2 - 3 * x.mean(1)) + noise)
        if agent.learner.num_fits > before:
            fits.append(size)
    scheduled = [2**power for power in range(9)]
    early = [size for size in fits if size not in scheduled]
    assert [size for size in fits if size in scheduled] == scheduled
    assert early == [128 + 50]

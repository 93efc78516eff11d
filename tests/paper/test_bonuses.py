"""Bonuses at images: replayed calibrations, and statistics of errors and bonuses."""

from functools import partial

import numpy as np
import pytest
import torch

from gfucb import GFUCB
from gfucb.paper.bonuses import BATCHED_SELECTORS, bonus_statistics, replay_calibrations
from gfucb.paper.logged_runs import ImageSource, LoggedRuns
from gfucb.runs.loop import play

DIGITS = ImageSource(digits=True)


def test_a_replayed_agent_equals_the_agent_that_collected_the_log():
    # Without self-supervision, which learns from candidates that a log does not have.
    make = partial(GFUCB, 2, seed=0, value_range=(0.0, 1.0), self_supervision=None)
    collecting, environment = make(), LoggedRuns((0,), (9,), 2).environment(DIGITS, 0)
    for _ in play(collecting, environment, num_rounds=9):
        pass
    learned = collecting.confidence_set(DIGITS.training().images[:1], num_sharing=1)
    agent = make()
    selectors = {"last layer": BATCHED_SELECTORS["last layer"]}
    found = replay_calibrations(agent, learned.data, selectors)
    again = agent.confidence_set(learned.data.inputs[:1])
    torch.testing.assert_close(again.center.heads, learned.center.heads, rtol=1e-4, atol=1e-5)
    # The replay sees each reward after its prediction, so it finds the agent's own radius.
    radius = found["last layer"].squared_radius(1, 1)
    assert radius == pytest.approx(learned.squared_radius, rel=1e-3)


def test_a_bonus_equal_to_the_error_covers_it_exactly():
    error = np.array([0.1, -0.3, 0.2])
    found = bonus_statistics(error, np.abs(error))
    assert found["above"] == found["covered"] == 1 and found["correlation"] == pytest.approx(1)
    assert bonus_statistics(error, np.abs(error) - 1e-6)["above"] == 0
    # Any bonus covers a negative error: the true mean is below the fit.
    assert bonus_statistics(error, np.zeros(3))["covered"] == pytest.approx(1 / 3)
    assert bonus_statistics(error, np.ones(3))["correlation"] == 0

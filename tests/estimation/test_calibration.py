"""Calibrated radii have their target coverage."""

import math

import pytest
import torch

from gfucb import GFUCB, CalibratedRadius
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.records import Prediction
from gfucb.environments import ImageBandit, load_digits
from gfucb.estimation.calibration import Calibration
from gfucb.models import DefaultNetworkClass
from gfucb.runs import play


def calibrated(radius: CalibratedRadius, errors: torch.Tensor, widths: torch.Tensor) -> Calibration:
    calibration = radius.initial()
    for error, width in zip(errors.split(10), widths.split(10), strict=True):
        calibration = calibration.after(Prediction(torch.zeros(len(error)), width), error)
    return calibration


@pytest.mark.parametrize("target", [0.5, 0.8, 0.95])
def test_gaussian_errors_have_the_target_coverage_and_the_known_quantile(target):
    generator = random_stream(0, "errors")
    widths = torch.rand(4000, generator=generator, dtype=torch.float64) * 3
    noise = torch.randn(4000, generator=generator, dtype=torch.float64)
    calibration = calibrated(
        CalibratedRadius(1.0, target), 0.2 * noise * (1 + widths).sqrt(), widths
    )
    quantile = torch.distributions.Normal(0, 0.2).icdf(torch.tensor((1 + target) / 2))
    assert calibration.task_radius == pytest.approx(float(quantile), rel=0.06)
    assert calibration.coverage == pytest.approx(target, abs=0.02)


def test_the_radius_is_the_smallest_that_covers_the_target_share():
    errors = torch.arange(1, 100, dtype=torch.float64)
    calibration = calibrated(CalibratedRadius(1.0, 0.9, warm_up=99), errors, torch.zeros(99))
    assert calibration.task_radius == 90  # ranks 1 to 90 of 99: 0.9 of one hundred


def test_the_rank_counts_the_score_of_the_next_reward():
    errors = torch.arange(1, 101, dtype=torch.float64)
    calibration = calibrated(CalibratedRadius(1.0, 0.9, warm_up=100), errors, torch.zeros(100))
    assert calibration.task_radius == 91  # 0.9 of 101 is more than 90


def test_a_quarter_of_all_scores_counts():
    errors = torch.cat([torch.full((150,), 5.0), torch.full((50,), 1.0)]).double()
    for length, radius in ((200, 1.0), (190, 1.0), (180, 5.0)):
        recent = calibrated(CalibratedRadius(1.0, 0.8), errors[:length], torch.zeros(length))
        assert recent.task_radius == radius


def test_an_agent_compares_each_reward_with_its_own_prediction():
    agent = GFUCB(3, seed=0, value_range=(0.0, 1.0))
    decision = agent.decide(torch.rand(3, 4, 5, generator=random_stream(0, "x")))
    rewards = torch.tensor([0.1, 0.7, 0.4], dtype=torch.float64)
    agent.observe(decision[[2, 0]], rewards[[2, 0]])
    prediction = decision.prediction
    scores = (rewards - prediction.mean).abs() / (1 + prediction.variance).sqrt()
    assert torch.equal(agent.radius_state.scores, scores[[2, 0]])


def test_early_errors_are_forgotten_and_the_window_is_bounded():
    errors = torch.cat([torch.full((500,), 5.0), torch.full((1500,), 0.1)]).double()
    calibration = calibrated(CalibratedRadius(1.0, 0.9, window=800), errors, torch.zeros(2000))
    assert calibration.task_radius == pytest.approx(0.1)
    assert len(calibration.scores) == 800


def test_before_the_warm_up_and_without_a_target_the_radius_is_the_initial_one():
    prediction = Prediction(torch.zeros(19), torch.zeros(19))
    early = CalibratedRadius(0.3).initial().after(prediction, torch.ones(19))
    assert early.task_radius == 0.3
    fixed = calibrated(CalibratedRadius(0.3, None), torch.ones(100).double(), torch.zeros(100))
    assert fixed.task_radius == 0.3
    assert math.isnan(CalibratedRadius(0.3).initial().coverage)


def test_a_task_that_decides_alone_has_its_share_of_the_radius():
    agent = GFUCB(4, DefaultNetworkClass(), seed=0)
    x = torch.rand(4, 3, 5, generator=random_stream(0, "x"))
    agent.observe(agent.decide(x), [0.1, 0.2, 0.3, 0.4])
    radius = agent.radius_state.task_radius
    assert agent.confidence_set(x[0]).squared_radius == pytest.approx(4 * radius**2)
    for tasks, num_sharing in (([2], 1), ([2, 2], 1), ([2, 0, 2], 2)):
        agent.decide(x[: len(tasks)], tasks=tasks)
        assert agent.last_selection.squared_radius == pytest.approx(num_sharing * radius**2)


@pytest.mark.parametrize(
    "wrong", [{"target_coverage": 1.0}, {"initial_radius": -1.0}, {"warm_up": 0}, {"window": 5}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(InvalidInputError):
        CalibratedRadius(**({"initial_radius": 0.2} | wrong))


@pytest.mark.slow
def test_on_digits_the_coverage_is_close_to_its_target():
    environment = ImageBandit(load_digits(), num_tasks=5, seed=6001)
    agent = GFUCB(5, seed=6001, self_supervision=None)  # it would take a third longer
    last = list(play(agent, environment, num_rounds=60))[-1]
    # Two standard errors of 300 rewards.
    assert last["coverage"] == pytest.approx(0.8, abs=0.046)

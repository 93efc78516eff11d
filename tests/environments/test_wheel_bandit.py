"""The wheel bandit: means by region, regions by quadrant, and a log that matches the rounds."""

import math

import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.environments import WheelBandit
from gfucb.environments.wheel_bandit import uniform_in_disk, wheel_means


def test_means_are_those_of_the_definition():
    contexts = torch.tensor([[0.1, 0.1], [0.7, 0.7], [0.7, -0.7], [-0.7, 0.7], [-0.7, -0.7]])
    means = wheel_means(contexts.double(), torch.full((5,), 0.5, dtype=torch.float64))
    expected = torch.ones(5, 5, dtype=torch.float64)
    expected[:, 0] = 1.2
    for quadrant in range(1, 5):
        expected[quadrant, quadrant] = 50.0
    assert torch.equal(means, expected)


def test_contexts_are_uniform_in_the_disk():
    points = uniform_in_disk(20000, torch.Generator().manual_seed(0))
    for radius in (0.3, 0.7, 0.95):
        share = float((points.norm(dim=1) < radius).double().mean())
        assert abs(share - radius**2) < 5 * math.sqrt(0.25 / 20000)
    assert float(points.mean(0).abs().max()) < 0.02


def test_rewards_are_linear_in_the_true_features_and_inputs_show_context_and_arm():
    environment = WheelBandit([0.3, 0.6, 0.9], seed=4)
    features, means = [], []
    for index in range(1, 60):
        round_ = environment.round(index)
        assert round_.candidates.shape == (3, 5, 7)
        assert torch.equal(round_.candidates[1, :, 2:], torch.eye(5, dtype=torch.float64))
        assert (round_.candidates[0, :, :2] == round_.candidates[0, 0, :2]).all()
        features.append(round_.true_features.flatten(0, 1))
        means.append(round_.mean_rewards.flatten())
    design, targets = torch.cat(features), torch.cat(means)
    fitted = torch.linalg.lstsq(design, targets[:, None], driver="gelsd").solution
    assert float((design @ fitted - targets[:, None]).abs().max()) < 1e-9


def test_a_log_has_rewards_of_random_arms():
    environment = WheelBandit([0.2, 0.8], seed=1)
    tasks, inputs, rewards = environment.random_log(500)
    assert torch.equal(tasks.bincount(), torch.tensor([500, 500]))
    arms = inputs[:, 2:].argmax(1)
    assert int(arms.bincount().min()) > 150
    means = wheel_means(inputs[:, :2], environment.deltas[tasks])[torch.arange(1000), arms]
    assert 0.005 < float((rewards - means).std()) < 0.02
    again = environment.random_log(500)
    assert torch.equal(again[1], inputs) and torch.equal(again[2], rewards)


@pytest.mark.parametrize("deltas", [[], [1.5], [-0.1], ["a"]])
def test_radii_outside_the_disk_are_refused(deltas):
    with pytest.raises(InvalidInputError, match="delta"):
        WheelBandit(deltas)

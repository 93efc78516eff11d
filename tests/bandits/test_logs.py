"""A log that comes in one call is learned to convergence."""

import math

import pytest
import torch

import gfucb
from gfucb.core.random import random_stream
from gfucb.environments import load_digits
from gfucb.estimation import VariableProjection
from gfucb.models import DefaultNetworkClass


def agent_with(fit=None, **options) -> gfucb.GFUCB:
    network = DefaultNetworkClass(feature_dim=4, hidden=4)
    return gfucb.GFUCB(3, network, fit=fit or VariableProjection(steps=1), seed=0, **options)


def log_of(num_samples: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = random_stream(0, "log", num_samples)
    inputs = torch.rand(num_samples, 5, generator=generator)
    rewards = torch.rand(num_samples, generator=generator, dtype=torch.float64)
    return torch.arange(num_samples) % 3, inputs, rewards


def test_a_log_has_as_many_fits_as_its_samples_one_after_another():
    agent, online = agent_with(), agent_with()
    agent.learn(*log_of(200))
    for sample in zip(*(column.split(1) for column in log_of(200)), strict=True):
        online.learn(*sample)
    assert agent.learner.num_samples == online.learner.num_samples == 200
    late = sum(int(20 * 1.3**power) <= 200 for power in range(20))
    assert late - 1 <= agent.learner.num_fits <= online.learner.num_fits


def test_all_samples_of_a_log_are_learned_once():
    agent, log = agent_with(), log_of(90)
    agent.learn(*log)
    data = agent.confidence_set(log[1]).data
    assert sorted(data.targets.tolist()) == sorted(log[2].tolist())
    assert data.samples_per_task.tolist() == [30, 30, 30]
    stored = {
        tuple(row.tolist()): float(y) for row, y in zip(data.inputs, data.targets, strict=True)
    }
    assert all(stored[tuple(x.tolist())] == float(y) for x, y in zip(*log[1:], strict=True))


@pytest.mark.parametrize(("num_samples", "growth"), [(6, 1.3), (200, 1.0), (200, math.inf)])
def test_few_samples_and_other_schedules_have_one_fit(num_samples, growth):
    agent = agent_with(refit_growth=growth)
    agent.learn(*log_of(num_samples))
    assert agent.learner.num_samples == num_samples and agent.learner.num_fits <= 1


class FailsLater:
    """A fit that fails with more than 60 samples."""

    def __call__(self, data, start, penalty, generator):
        if len(data) > 60:
            raise RuntimeError("no more")
        return VariableProjection(steps=0)(data, start, penalty, generator)


def test_a_log_that_fails_in_its_middle_changes_nothing():
    agent = agent_with(FailsLater())
    agent.learn(*log_of(9))
    before = {name: tensor.clone() for name, tensor in agent.state().items()}
    with pytest.raises(RuntimeError, match="no more"):
        agent.learn(*log_of(120))
    assert agent.state().keys() == before.keys()
    assert all(torch.equal(agent.state()[name], tensor) for name, tensor in before.items())


def test_a_fit_that_returns_no_function_is_refused_and_changes_nothing():
    agent = agent_with(lambda data, start, penalty, generator: 1)
    with pytest.raises(gfucb.InvalidInputError, match="must return a MultiheadFunction, got int"):
        agent.learn(*log_of(9))
    assert agent.learner.num_samples == 0


@pytest.mark.slow
def test_a_log_in_parts_predicts_better_than_one_fit():
    """Errors on digits that are not in the log."""
    digits = load_digits()
    generator = random_stream(2000, "log")
    values = torch.rand(5, 10, generator=generator, dtype=torch.float64)
    order = torch.randperm(len(digits.labels), generator=generator)[:400]
    tasks = torch.arange(400) % 5
    inputs = digits.images[order]
    rewards = values[tasks, digits.labels[order]]
    log = (tasks[:200], inputs[:200], rewards[:200])
    in_parts, in_one_fit = (gfucb.GFUCB(5, seed=0, value_range=(0.0, 1.0)) for _ in range(2))
    in_parts.learn(*log)
    in_one_fit.learner.learn(*log)

    def error_of(agent: gfucb.GFUCB) -> float:
        predicted = agent.confidence_set(inputs).center.values(inputs[200:], tasks[200:])
        return float((predicted - rewards[200:]).square().mean())

    assert error_of(in_parts) < 0.85 * error_of(in_one_fit)

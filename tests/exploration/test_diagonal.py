"""NeuralUCB and NeuralTS against their formulas, written out with one gradient at a time."""

import pytest
import torch
from torch import nn

import gfucb
from gfucb.core.random import random_stream
from gfucb.models.diagonal_gram import DiagonalStatistics

RIDGE = 0.7


def network() -> nn.Module:
    generator = random_stream(0, "test network")
    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=torch.float64))
    return net


def trained(make=gfucb.bandits.neural_ucb, *, samples: int = 9, growth: float = 1.3, **options):
    """An agent after `samples` rewards, one at a time."""
    fit = gfucb.VariableProjection(steps=2)
    agent = make(3, network(), fit=fit, ridge=RIDGE, refit_growth=growth, **options)
    generator = random_stream(1, "samples")
    for index in range(samples):
        x = torch.rand(1, 3, generator=generator, dtype=torch.float64)
        agent.learn([index % 3], x, torch.rand(1, generator=generator))
    return agent


def gradient(function, x, task: int) -> torch.Tensor:
    """d f_task(x) / d (weights, all heads), by hand: [weight + task * feature]."""
    module = function.representation.module
    heads = function.heads.clone().requires_grad_()
    value = (module(x.unsqueeze(0))[0] * heads[task]).sum()
    parts = torch.autograd.grad(value, [*module.parameters(), heads])
    return torch.cat([part.flatten() for part in parts])


def naive_widths(confidence_set, candidates) -> torch.Tensor:
    """sum_p g_p^2 / Z_pp over weights and heads: [row, action]."""
    center, data = confidence_set.center, confidence_set.data
    pairs = zip(data.inputs, data.tasks.tolist(), strict=True)
    diagonal = sum(gradient(center, x, task).square() for x, task in pairs)
    num_heads = center.heads.numel()
    weights, heads = diagonal[:-num_heads], diagonal[-num_heads:]
    # Each sample has the head of one of the three tasks.
    ratio = weights.mean() / heads.view_as(center.heads).sum(0).mean()
    z = torch.cat([weights + RIDGE * ratio, heads + RIDGE])
    return torch.stack(
        [
            torch.stack([(gradient(center, x, task).square() / z).sum() for x in offered])
            for task, offered in enumerate(candidates)
        ]
    )


def action_sets_of(candidates) -> gfucb.core.action_sets.ActionSets:
    available = torch.ones(candidates.shape[:2], dtype=torch.bool)
    return gfucb.core.action_sets.ActionSets(candidates, torch.arange(len(candidates)), available)


def candidates() -> torch.Tensor:
    return torch.rand(3, 4, 3, generator=random_stream(2, "action_sets"), dtype=torch.float64)


def refreshed(agent) -> gfucb.models.ConfidenceSet:
    """The confidence set with statistics of all data at the current weights."""
    from dataclasses import replace

    return replace(agent.confidence_set(candidates()[0]), center_tangents=None)


def test_neural_ucb_is_its_formula():
    confidence_set = refreshed(trained())
    choice = gfucb.exploration.DiagonalUCB()(confidence_set, action_sets_of(candidates()))
    widths = naive_widths(confidence_set, candidates())
    means = action_sets_of(candidates()).values_of(confidence_set.center)
    upper = means + (confidence_set.squared_radius * widths).sqrt()
    assert torch.equal(choice.actions, upper.argmax(1))
    torch.testing.assert_close(choice.values, upper.amax(1))
    rows = torch.arange(3)
    torch.testing.assert_close(choice.prediction.variance, widths[rows, choice.actions])
    assert (choice.representation_widths < choice.prediction.variance).all()


@pytest.mark.slow
def test_samples_of_neural_ts_have_the_mean_and_width_of_neural_ucb():
    confidence_set = refreshed(trained())
    # With one action its sample is always reported.
    action_sets = action_sets_of(candidates()[:, :1])
    draws = torch.stack(
        [
            gfucb.exploration.DiagonalSampling(seed)(confidence_set, action_sets).values
            for seed in range(400)
        ]
    )
    variance = confidence_set.squared_radius * naive_widths(confidence_set, candidates())[:, 0]
    mean = action_sets.values_of(confidence_set.center).squeeze(1)
    # Five standard deviations of a mean and of a variance of 400 normal draws.
    assert ((draws.mean(0) - mean).abs() < 5 * (variance / 400).sqrt()).all()
    assert ((draws.var(0) / variance - 1).abs() < 5 * (2 / 400) ** 0.5).all()


def test_the_learner_updates_the_diagonal():
    agent = trained(samples=1, growth=1000.0)
    before = agent.learner.tangents
    x = torch.rand(2, 3, dtype=torch.float64, generator=random_stream(3, "more"))
    center = agent.learner.fit_state(x)[0]
    agent.learn([0, 1], x, [0.1, 0.9])
    pairs = zip(x, (0, 1), strict=True)
    more = sum(gradient(center, row, task)[: len(before.squares)].square() for row, task in pairs)
    torch.testing.assert_close(agent.learner.tangents.squares, before.squares + more)


def test_a_refit_recomputes_the_diagonal_of_all_data():
    agent = trained(samples=6, growth=1.0)
    center, data, _ = agent.learner.fit_state(candidates()[0])
    recomputed = DiagonalStatistics.of(center, data.inputs, data.tasks)
    torch.testing.assert_close(agent.learner.tangents.squares, recomputed.squares)


def test_a_restored_agent_has_the_same_widths():
    agent, twin = trained(samples=5), trained(samples=0)
    twin.load_state(agent.state())
    torch.testing.assert_close(twin.learner.tangents.squares, agent.learner.tangents.squares)
    one, other = (a.decide(candidates()).prediction for a in (agent, twin))
    assert torch.equal(one.variance, other.variance)

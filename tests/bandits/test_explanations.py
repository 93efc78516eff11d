"""`predict` and `explain`: exact weights of rewards, and nothing that changes."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import gfucb
from gfucb import VariableProjection
from gfucb.bandits.influences import SampleInfluences
from gfucb.core.features import features_of
from gfucb.core.random import random_stream
from gfucb.estimation.evidence import two_level_posterior
from gfucb.estimation.table_samples import TableSamples
from gfucb.exploration import Linearised
from gfucb.models import (
    DefaultNetworkClass,
    HeadPenalty,
    HeadStatistics,
    statistics_forms,
    table_sizes,
)
from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.reward_weights import posterior_variance_parts

TASKS, ARMS, COLUMNS = 3, 4, 2


def offered(index: int) -> torch.Tensor:
    draws = random_stream(index, "explained candidates")
    return torch.rand(TASKS, ARMS, COLUMNS, generator=draws, dtype=torch.float64)


def played(agent: gfucb.GFUCB, rounds: int = 9) -> gfucb.GFUCB:
    factors = torch.arange(1, TASKS + 1)
    for index in range(rounds):
        decision = agent.decide(offered(index))
        agent.observe(decision, (3 * decision.inputs).sin().sum(1) * factors)
    return agent


@pytest.fixture(scope="module")
def played_table() -> gfucb.GFUCB:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_sizes, "MOST_FREQUENCIES", table_sizes.FEWEST_FREQUENCIES)
        return played(gfucb.GFUCB(TASKS, seed=0))


@pytest.fixture
def table_agent(played_table) -> gfucb.GFUCB:
    return played_table.snapshot()


@pytest.fixture
def network_agent() -> gfucb.GFUCB:
    module = torch.nn.Sequential(torch.nn.Linear(COLUMNS, 5), torch.nn.Tanh())
    return played(gfucb.GFUCB(TASKS, module, seed=0, refit_growth=1e9))


def refitted_table_values(agent, rewards, queries, task) -> torch.Tensor:
    """Values of all heads solved again for other rewards, with features and scales as they are."""
    learner = agent.learner.chosen
    fit, data, count = learner._fit, learner.data, learner.samples_at_fit
    shape, targets = fit.features, rewards - fit.offset
    inputs = data.inputs.flatten(1)
    samples = TableSamples(
        inputs[:count], data.tasks[:count], targets[:count], TASKS, shape.columns, 1.0
    )
    scales = shape.columns.scales(shape.scales)
    sums = samples.sums(shape.scales.length)
    found = two_level_posterior(sums, scales, shape.scales.mean_ratio, shape.factor)
    posterior = replace(
        fit.posterior,
        covariances=CopyOnWriteRows(found.covariances),
        moments=found.moments,
        mean=found.mean,
        mean_covariance=found.mean_covariance,
        known_heads=None,
    )
    late = features_of(shape, data.inputs[count:])
    posterior = posterior.after(late, data.tasks[count:], targets[count:])
    return fit.offset + queries @ posterior.heads[task]


def weights_of(agent, inputs, task) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights [n, sample] of the values at inputs [n, *input], and the features of these."""
    confidence_set = agent.confidence_set(inputs)
    queries = features_of(confidence_set.center.representation, inputs)
    weights = SampleInfluences.of(confidence_set, agent.learner).weights
    return weights.of(queries, task), queries


def test_weights_of_a_table_are_the_derivatives_of_the_refitted_heads(table_agent):
    learner = table_agent.learner.chosen
    assert learner.samples_at_fit < learner.num_samples  # some samples came after the fit
    rewards = learner.data.targets.clone()
    weights, queries = weights_of(table_agent, offered(50)[1], 1)
    before = refitted_table_values(table_agent, rewards, queries, 1)
    for sample in [*range(0, len(rewards), 6), len(rewards) - 2]:  # the last one is of task 1
        changed = rewards.clone()
        changed[sample] += 1.0  # the values are linear: any step gives the derivative
        after = refitted_table_values(table_agent, changed, queries, 1)
        torch.testing.assert_close(weights[:, sample], after - before, atol=1e-9, rtol=1e-7)
    is_other = (learner.data.tasks != 1) & (torch.arange(len(rewards)) < learner.samples_at_fit)
    assert (weights[:, is_other].abs().amax(0) > 0).all()
    assert not weights[:, learner.samples_at_fit :][:, learner.data.tasks[-TASKS:] != 1].any()


def test_weights_of_items_are_the_derivatives_in_the_rewards_of_the_task():
    agent = gfucb.GFUCB(2, seed=0, value_range=(0, 1))
    for index in range(8):
        decision = agent.decide_from([3, 5, 9])
        agent.observe(decision, [float(index % 3 == 0), 0.7])
    learner = agent.learner.chosen
    fit, data = learner._fit, learner.data
    weights, queries = weights_of(agent, torch.tensor([3, 5, 9]), 0)
    features, prior = features_of(fit.features, data.inputs), fit.posterior
    for sample in range(len(data)):
        step = torch.zeros(len(data), dtype=torch.float64)
        step[sample] = 1.0
        targets = learner.scale.clip(data.targets) - fit.offset
        before, after = (
            queries @ prior.given(features, data.tasks, values).heads[0]
            for values in (targets, targets + step)
        )
        torch.testing.assert_close(weights[:, sample], after - before, atol=1e-9, rtol=1e-7)


def test_weights_of_a_network_are_those_of_ridge_regression_on_its_features(network_agent):
    learner = network_agent.network_learner
    weights, queries = weights_of(network_agent, offered(50)[2].float(), 2)
    features = features_of(learner._center.representation, learner.data.inputs)
    for sample in range(0, learner.num_samples, 4):
        step = torch.zeros(learner.num_samples, dtype=torch.float64)
        step[sample] = 1.0
        heads = HeadStatistics.of(features, learner.data.tasks, step, TASKS).heads(HeadPenalty())
        torch.testing.assert_close(weights[:, sample], queries @ heads[2], atol=1e-10, rtol=1e-7)


@pytest.mark.parametrize("fixture", ["table_agent", "network_agent"])
def test_contributions_sum_to_the_mean(fixture, request):
    agent = request.getfixturevalue(fixture)
    candidates = offered(50)
    explanation = agent.explain(agent.decide(candidates), candidates, num_samples=1000)
    offset = agent.confidence_set(candidates.flatten(0, 1)).center.offset
    torch.testing.assert_close(
        explanation.baseline, torch.full((TASKS, ARMS), offset, dtype=torch.float64)
    )
    for action in explanation.to_dict()["rows"][0]["actions"]:
        total = sum(sample["contribution"] for sample in action["samples"])
        assert action["mean"] == pytest.approx(offset + total)


@pytest.mark.parametrize("fixture", ["table_agent", "network_agent"])
def test_predictions_are_those_of_decisions_and_change_nothing(fixture, request):
    agent = request.getfixturevalue(fixture)
    candidates = offered(50)
    mask = torch.ones(TASKS, ARMS, dtype=torch.bool)
    mask[0, 2] = False
    decision = agent.decide(candidates, available=mask)
    state, last = agent.state(), agent.last_selection
    found = agent.predict(candidates, available=mask)
    explanation = agent.explain(decision, candidates, mask)
    assert agent.last_selection is last
    assert all(torch.equal(tensor, agent.state()[name]) for name, tensor in state.items())
    at_chosen = (torch.arange(TASKS), decision.actions)
    torch.testing.assert_close(found.mean[at_chosen], decision.prediction.mean)
    half = (last.squared_radius * decision.prediction.variance).sqrt()
    torch.testing.assert_close((found.upper - found.lower)[at_chosen] / 2, half)
    torch.testing.assert_close(explanation.mean_at_decision, decision.prediction.mean)
    assert found.mean[0, 2].isnan() and len(found.rows()) == TASKS * ARMS - 1
    greedy = found.mean.nan_to_num(-torch.inf).argmax(1)
    assert torch.equal(found.is_greedy.to(torch.int8).argmax(1), greedy)
    assert torch.equal(explanation.is_chosen.to(torch.int8).argmax(1), decision.actions)


def test_shares_are_parts_of_the_posterior_variance(table_agent):
    candidates = offered(50)
    confidence_set = table_agent.confidence_set(candidates.flatten(0, 1))
    features = features_of(confidence_set.center.representation, candidates.flatten(0, 1))
    features = features.unflatten(0, (TASKS, ARMS))
    tasks, posterior = torch.arange(TASKS), confidence_set.posterior
    parts = posterior_variance_parts(posterior, features, tasks)
    torch.testing.assert_close(parts.total, posterior.squared_widths(features, tasks))
    known = replace(posterior, mean_covariance=torch.zeros_like(posterior.mean_covariance))
    without = posterior_variance_parts(known, features, tasks)
    assert not without.shared.any() and (parts.shared > 0).all()
    found = table_agent.predict(candidates)
    shares = found.head_share + found.shared_share + found.exploration_share
    torch.testing.assert_close(shares, torch.ones_like(shares))
    torch.testing.assert_close(found.shared_share, parts.shared / parts.total)


def test_selectors_that_vary_the_weights_report_the_share_of_the_representation():
    module = torch.nn.Sequential(torch.nn.Linear(COLUMNS, 5), torch.nn.Tanh())
    agent = gfucb.GFUCB(
        TASKS, module, seed=0, refit_growth=1e9, action_selector=Linearised(joint=False)
    )
    played(agent, 4)
    decision = agent.decide(offered(50))
    widths = agent.last_selection.representation_widths
    found = agent.predict(offered(50))
    share, mean = found.shared_share[torch.arange(TASKS), decision.actions], found.mean
    torch.testing.assert_close(share, widths / decision.prediction.variance)
    assert (share > 0).all()
    with torch.inference_mode():  # as in serving code
        assert torch.equal(agent.predict(offered(50)).mean, mean)
        assert len(agent.explain(decision, offered(50))) == TASKS


def test_nothing_is_known_before_the_first_reward():
    agent = gfucb.GFUCB(TASKS, seed=0)
    decision = agent.decide(offered(0))
    action = agent.explain(decision, offered(0)).rows()[0]
    assert action["mean"] is None and action["upper"] is None and action["is_greedy"] is False
    stated = gfucb.GFUCB(TASKS, seed=0, value_range=(0, 1)).predict(offered(0))
    assert stated.mean.eq(0.5).all() and stated.is_greedy.sum() == TASKS


def test_without_candidates_the_chosen_actions_are_explained(table_agent):
    decision = table_agent.decide(offered(50))
    whole = table_agent.explain(decision, offered(50))
    alone = table_agent.explain(decision[1:])
    assert [action["action"] for action in alone.rows()] == decision.actions[1:].tolist()
    chosen = [action["mean"] for action in whole.rows() if action["is_chosen"]]
    assert [action["mean"] for action in alone.rows()] == pytest.approx(chosen[1:])
    assert {action["is_greedy"] for action in alone.rows()} == {None}


def test_an_explanation_is_a_table_a_dict_and_a_figure(table_agent):
    explanation = table_agent.explain(table_agent.decide(offered(50)), offered(50), num_samples=2)
    found = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    samples = found["rows"][2]["actions"][0]["samples"]
    assert [sample["is_own"] for sample in samples] == [True, True, False, False]
    assert found["model"]["num_samples"] == 9 * TASKS
    table = explanation.table()
    assert len(table) == TASKS * ARMS and table["is_chosen"].sum() == TASKS
    assert len(explanation.sample_rows()) == TASKS * ARMS * 4
    assert len(explanation.figure(2).axes) == 2
    assert "model of now: 27 rewards" in str(explanation)
    for row in (TASKS, -1, True, "0"):
        with pytest.raises(gfucb.InvalidInputError, match="row must be"):
            explanation.figure(row)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda d, c: ("decision", c), "what decide returned"),
        (lambda d, c: (d[[]],), "no rows"),
        (lambda d, c: (d, c.flip(1)), "not the candidates of the decision"),
        (lambda d, c: (d, c[:, :1]), "not the candidates of the decision"),
        (lambda d, c: (d, c[:2]), "rows"),
        (lambda d, c: (d, None, np.ones((TASKS, ARMS), bool)), "available needs candidates"),
        (lambda d, c: (d, c, torch.eye(TASKS, ARMS) == 0), "not available"),
        (lambda d, c: (replace(d, tasks=None), c), "tasks"),
        (lambda d, c: (replace(d, tasks=d.tasks + 1), c), "tasks"),
        (lambda d, c: (replace(d, inputs=d.inputs[:, :1]),), "inputs"),
    ],
)
def test_what_is_no_decision_of_this_agent_is_refused(arguments, message, table_agent):
    candidates = offered(50)
    decision = replace(table_agent.decide(candidates), actions=torch.tensor([0, 1, 2]))
    decision = replace(decision, inputs=candidates[torch.arange(TASKS), decision.actions])
    with pytest.raises(gfucb.InvalidInputError, match=message):
        table_agent.explain(*arguments(decision, candidates))


@pytest.mark.parametrize("number", [-1, 1.5, None, True])
def test_a_number_of_samples_is_an_integer(number, table_agent):
    with pytest.raises(gfucb.InvalidInputError, match="num_samples"):
        table_agent.explain(table_agent.decide(offered(0)), num_samples=number)


def test_agents_of_very_many_tasks_explain_as_others_do(monkeypatch):
    def explained():
        network = DefaultNetworkClass(hidden=8)
        agent = played(gfucb.GFUCB(TASKS, network, seed=0, fit=VariableProjection(steps=2)))
        return agent.explain(agent.decide(offered(99)))

    plain = explained()
    monkeypatch.setattr(statistics_forms, "LARGEST_GRAMS", 10)
    many = explained()
    assert isinstance(many.influences[0][0], tuple) and many.influences[0][0]
    weights = [
        [one.weight for row in found.influences for action in row for one in action]
        for found in (plain, many)
    ]
    assert weights[0] == pytest.approx(weights[1], rel=1e-6)

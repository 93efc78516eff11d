"""Tasks that join a running agent, snapshots, and fits that are made apart from rewards."""

import pytest
import torch
from table_cases import (
    assert_same_state,
    context_and_arm,
    draw,
    items,
    numbers_of_actions,
    play,
    reward_of,
    snapshot,
)

import gfucb
from gfucb import GFUCB, InvalidInputError, LinearClass
from gfucb.exploration import Linearised
from gfucb.models import NeuralClass

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_frequencies")]
OFFERS = {"actions": numbers_of_actions, "arms": context_and_arm, "items": items}


def linear(num_tasks: int) -> GFUCB:
    return GFUCB(num_tasks, LinearClass(4, 2), refit_growth=3.0)


def tangents(num_tasks: int) -> GFUCB:
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh()).double()
    for parameter in network.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    selector = Linearised()
    return GFUCB(num_tasks, NeuralClass(network), refit_growth=3.0, action_selector=selector)


AGENTS = {
    "table": (lambda n: GFUCB(n, refit_growth=3.0), numbers_of_actions),
    "arms": (lambda n: GFUCB(n, refit_growth=3.0), context_and_arm),
    "items": (lambda n: GFUCB(n, refit_growth=3.0), items),
    "linear": (linear, numbers_of_actions),
    "tangents": (tangents, numbers_of_actions),
}


@pytest.fixture(params=AGENTS.values(), ids=AGENTS)
def case(request):
    return request.param


@pytest.mark.parametrize("before", [1, 3])
def test_a_grown_agent_is_saved_and_continues_exactly(case, before, tmp_path):
    make, offer = case
    agent = make(before)
    play(agent, offer, range(4))
    agent.add_tasks(2)
    assert agent.num_tasks == before + 2
    play(agent, offer, range(4, 5))
    agent.add_tasks()
    gfucb.save(agent, tmp_path / "agent")
    again = make(before + 3)
    gfucb.restore(again, tmp_path / "agent")
    assert_same_state(again, snapshot(agent))
    rest = range(5, 12)
    assert torch.equal(play(agent, offer, rest), play(again, offer, rest))
    assert_same_state(again, snapshot(agent))


def test_growth_without_data_is_construction_with_more_tasks(case):
    make, offer = case
    grown, built = make(2), make(5)
    grown.decide(offer(2, 0))
    grown.add_tasks(3)
    rounds = range(5)
    assert torch.equal(play(grown, offer, rounds), play(built, offer, rounds))
    assert_same_state(grown, snapshot(built))


def test_the_heads_of_other_tasks_do_not_change(case):
    make, offer = case
    agent = make(3)
    play(agent, offer, range(4))
    before = agent.decide(offer(3, 9))
    agent.add_tasks(2)
    after = agent.decide(offer(3, 9), tasks=[0, 1, 2])
    assert torch.equal(before.prediction.mean, after.prediction.mean)
    assert torch.allclose(before.prediction.variance, after.prediction.variance)


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
def test_a_new_task_starts_from_what_the_others_have_in_common(offer):
    """All tasks have the same rewards: after 40 rounds a new one chooses better than chance."""
    agent = GFUCB(4)
    play(agent, offer, range(40))
    agent.add_tasks(1)
    candidates = offer(60, 99)
    decision = agent.decide(candidates, tasks=[4] * 60)
    chosen = reward_of(decision.inputs, 99)
    every = torch.stack([reward_of(candidates[:, k], 99) for k in range(candidates.shape[1])])
    assert chosen.mean() > every.mean() + 0.6 * (every.max(0).values - every.mean(0)).mean()


def test_features_of_a_table_follow_the_number_of_tasks_at_the_next_fit():
    agent = GFUCB(1)
    play(agent, numbers_of_actions, range(5))
    agent.add_tasks(7)
    play(agent, numbers_of_actions, range(5, 15))
    fresh = GFUCB(8)
    play(fresh, numbers_of_actions, range(5))
    names = ("table.layout", "table.frequencies")
    assert all(torch.equal(agent.state()[n], fresh.state()[n]) for n in names)
    assert agent.state()["table.scales"][-1] > 0  # the mean of heads is not zero any more


def test_a_snapshot_and_its_origin_do_not_change_each_other(case):
    make, offer = case
    agent = make(3)
    play(agent, offer, range(4))
    state, other = snapshot(agent), agent.snapshot()
    actions = play(agent, offer, range(4, 9))
    agent.add_tasks()
    assert_same_state(other, state)
    assert torch.equal(play(other, offer, range(4, 9)), actions)


def test_deferred_fits_are_made_by_refit(case):
    make, offer = case
    agent = make(3)
    agent.learner.defers_fits = True
    assert not agent.learner.is_fit_due
    play(agent, offer, range(6))
    fits = agent.learner.num_fits
    assert fits <= 1 and agent.learner.is_fit_due  # a posterior needs a first fit
    agent.refit()
    assert agent.learner.num_fits == fits + 1 and not agent.learner.is_fit_due
    play(agent, offer, range(6, 8))
    assert agent.learner.num_fits == fits + 1


def test_deferred_fits_are_due_when_a_reward_leaves_the_range():
    agent = GFUCB(2)
    agent.learner.defers_fits = True
    play(agent, numbers_of_actions, range(10))
    agent.refit()
    assert not agent.learner.is_fit_due
    decision = agent.decide(numbers_of_actions(2, 20))
    agent.observe(decision, [500.0, 0.0])
    assert agent.learner.is_fit_due
    agent.refit()
    assert not agent.learner.is_fit_due


@pytest.mark.parametrize("count", [0, -1, 1.5, "two", None, True])
def test_counts_that_are_no_numbers_of_tasks_are_refused(count):
    agent = GFUCB(2)
    with pytest.raises(InvalidInputError, match="count must be an integer of at least 1"):
        agent.add_tasks(count)
    assert agent.num_tasks == 2


def test_refit_without_data_changes_nothing(case):
    make, _ = case
    agent = make(2)
    agent.refit()
    assert agent.state() == {} and agent.learner.num_fits == 0
    agent.decide(draw("candidates", 2, 3, 4))

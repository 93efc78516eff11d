"""Saved states of the default agent on tables and items: exact, checked, and other kinds."""

import pytest
import torch
from table_cases import (
    assert_refused,
    assert_same_state,
    changed,
    context_and_arm,
    damaged_states,
    draw,
    items,
    numbers_of_actions,
    play,
    prices,
    snapshot,
)

import gfucb
from gfucb import GFUCB
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.models import DefaultNetworkClass

pytestmark = [pytest.mark.usefixtures("few_frequencies"), pytest.mark.slow]
OFFERS = {"actions": numbers_of_actions, "arms": context_and_arm, "prices": prices, "items": items}


def wide(num_tasks: int, index: int) -> torch.Tensor:
    """More columns than the features use: they are projected."""
    return draw("wide", num_tasks, 3, 390, index=index)


@pytest.mark.parametrize("num_tasks", [1, 3])
@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
class TestContinuation:
    """Data grows by a factor of three between fits, so that updates and fits both occur."""

    def agents(self, num_tasks: int, offer) -> tuple[GFUCB, GFUCB]:
        agent, again = (GFUCB(num_tasks, refit_growth=3.0, seed=5) for _ in range(2))
        play(agent, offer, range(6))
        return agent, again

    def test_of_a_state_is_exact(self, num_tasks, offer):
        agent, again = self.agents(num_tasks, offer)
        again.load_state(snapshot(agent))
        assert_same_state(again, snapshot(agent))
        rest = range(6, 12)
        assert torch.equal(play(agent, offer, rest), play(again, offer, rest))
        assert_same_state(again, snapshot(agent))

    def test_of_a_file_is_exact(self, num_tasks, offer, tmp_path):
        """A file stores tensors in one memory layout; products in another one round differently."""
        agent, again = self.agents(num_tasks, offer)
        gfucb.save(agent, tmp_path / "agent")
        gfucb.restore(again, tmp_path / "agent")
        rest = range(6, 12)
        assert torch.equal(play(agent, offer, rest), play(again, offer, rest))
        assert_same_state(again, snapshot(agent))


def test_projected_columns_are_restored_from_a_file(tmp_path):
    agent, again = GFUCB(2), GFUCB(2)
    play(agent, wide, range(4))
    assert "table.projection" in agent.state()
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(again, tmp_path / "agent")
    assert torch.equal(play(agent, wide, range(4, 7)), play(again, wide, range(4, 7)))
    assert_same_state(again, snapshot(agent))


@pytest.mark.parametrize("value_range", [None, (-1.0, 2.0)])
@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
def test_other_ranges_of_rewards_are_restored(offer, value_range, tmp_path):
    agent, again = (GFUCB(2, value_range=value_range) for _ in range(2))
    play(agent, offer, range(6))
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(again, tmp_path / "agent")
    assert torch.equal(play(agent, offer, range(6, 10)), play(again, offer, range(6, 10)))


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
def test_an_empty_state_forgets_everything(offer):
    agent = GFUCB(2)
    play(agent, offer, range(20, 23))
    agent.load_state({})
    assert agent.state() == {} and agent.learner.num_fits == 0
    assert torch.equal(play(agent, offer, range(4)), play(GFUCB(2), offer, range(4)))


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
def test_damaged_states_are_refused_and_change_nothing(offer):
    agent, other = GFUCB(2), GFUCB(2)
    play(agent, offer, range(2))
    play(other, offer, range(20, 26))
    assert_refused(agent, damaged_states(snapshot(other)), offer(2, 99))


def test_tables_that_no_fit_can_have_are_refused():
    agent, other = GFUCB(2), GFUCB(2)
    play(agent, context_and_arm, range(2))
    play(other, context_and_arm, range(20, 26))
    state = snapshot(other)
    state["table.factor"] = torch.eye(len(state["posterior.mean"]), dtype=torch.float64)
    GFUCB(2).load_state(state)
    cases = [
        ("table.spread", 0, 0.0),
        ("table.scales", 3, 0.0),  # length
        ("table.scales", 4, 1.5),  # shared
        ("table.scales", 5, 0.0),  # mean_ratio
        ("table.scales", 0, -1.0),
        ("table.factor", 0, -1.0),
        ("table.factor", 1, 1.0),  # above the diagonal
        ("table.layout", 4, 0),
        ("table.layout", 4, 4),
        ("table.layout", 0, 8),
        ("table.layout", 1, 5),
        ("table.layout", 2, 2),
        ("posterior.numbers", 2, 0.0),
    ]
    found = [(f"{n} {i}", state | {n: changed(state[n], i, value)}) for n, i, value in cases]
    negative = {"posterior.mean_covariance": -state["posterior.mean_covariance"]}
    assert_refused(agent, [*found, ("negative", state | negative)], context_and_arm(2, 99))


def test_continuous_actions_that_no_fit_can_have_are_refused():
    agent, other = GFUCB(2), GFUCB(2)
    play(agent, prices, range(2))
    play(other, prices, range(20, 26))
    state, name = snapshot(other), "table.continuous"
    columns, center, half_range = state[name][:, 0].tolist()
    cases = [
        ("another column", [[5.0], [center], [half_range]]),
        ("a fraction", [[0.5], [center], [half_range]]),
        ("no range", [[columns], [center], [0.0]]),
        ("three", [[0.0, 1.0, 2.0], [center] * 3, [half_range] * 3]),
    ]
    found = [(why, state | {name: torch.tensor(rows).double()}) for why, rows in cases]
    older = {key: value for key, value in state.items() if key != name}
    assert_refused(agent, [*found, ("an older state", older)], prices(2, 99))


def test_catalogues_that_no_fit_can_have_are_refused():
    agent, other = GFUCB(2), GFUCB(2)
    play(agent, items, range(2))
    play(other, items, range(20, 26))
    state = snapshot(other)
    ids = state["catalogue.ids"]
    wrong = [
        ("descending", state | {"catalogue.ids": ids.flip(0)}),
        ("repeated", state | {"catalogue.ids": changed(ids, 1, int(ids[0]))}),
        ("floats", state | {"catalogue.ids": ids.double()}),
        ("too few", state | {"catalogue.ids": ids[:-1]}),
    ]
    assert_refused(agent, wrong, items(2, 99))


class TestOtherKinds:
    def test_an_agent_continues_from_any_kind_of_default_learner(self):
        table, catalogue = GFUCB(2), GFUCB(2)
        play(table, context_and_arm, range(5))
        play(catalogue, items, range(5))
        table.load_state(snapshot(catalogue))
        assert_same_state(table, snapshot(catalogue))
        rest = range(5, 12)
        assert torch.equal(play(table, items, rest), play(catalogue, items, rest))

    def test_two_kinds_in_one_state_are_refused(self):
        table, catalogue = GFUCB(2), GFUCB(2)
        play(table, context_and_arm, range(5))
        play(catalogue, items, range(5))
        both = [
            ("one", snapshot(catalogue) | snapshot(table)),
            ("two", table.state() | catalogue.state()),
        ]
        assert_refused(table, both, context_and_arm(2, 99))

    def test_an_agent_on_a_network_refuses_a_table(self):
        table, network = GFUCB(2), GFUCB(2, DefaultNetworkClass())
        play(table, numbers_of_actions, range(5))
        with pytest.raises(InvalidInputError):
            network.load_state(snapshot(table))
        assert network.state() == {}

    def test_another_number_of_tasks_is_refused(self):
        table = GFUCB(3)
        play(table, numbers_of_actions, range(5))
        agent = GFUCB(2)
        play(agent, numbers_of_actions, range(2))
        assert_refused(agent, [("three tasks", snapshot(table))], numbers_of_actions(2, 99))


@pytest.mark.slow
def test_a_function_of_all_tasks_is_saved_and_checked(tmp_path):
    draws = random_stream(0, "pooled state")
    tasks = torch.arange(40).repeat_interleave(60)
    inputs = torch.randn(len(tasks), 2, generator=draws, dtype=torch.float64)
    rewards = torch.sin(3 * inputs[:, 0]) * inputs[:, 1]
    agent, again = GFUCB(1000), GFUCB(1000)
    agent.learn(tasks, inputs, rewards)
    assert "table.pooled_weights" in agent.state()
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(again, tmp_path / "agent")
    candidates = torch.randn(30, 5, 2, generator=draws, dtype=torch.float64)
    for learner in (agent, again):
        decision = learner.decide(candidates, tasks=range(900, 930))
        learner.observe(decision, torch.sin(decision.inputs[:, 0]))
    assert_same_state(again, snapshot(agent))
    state = snapshot(agent)
    for name, value in (("weights", torch.nan), ("scales", 0.0), ("frequencies", torch.inf)):
        wrong = changed(state[f"table.pooled_{name}"], 0, value)
        with pytest.raises(InvalidInputError, match=f"pooled_{name}"):
            GFUCB(1000).load_state(state | {f"table.pooled_{name}": wrong})
    with pytest.raises(InvalidInputError):
        GFUCB(1000).load_state({n: t for n, t in state.items() if n != "table.pooled_scales"})

"""Wide tables: which model decides, and that both are saved, grow and start again together."""

import math

import pytest
import torch

import gfucb
from gfucb.bandits import table_or_network
from gfucb.bandits.learner import Learner
from gfucb.bandits.table_learner import WIDE_TABLE, TableLearner
from gfucb.bandits.table_or_network import ErrorComparison
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.models.nn.networks import StandardisedColumns

TASKS, ACTIONS = 2, 4


def offer(round_index: int, columns: int = WIDE_TABLE) -> torch.Tensor:
    draws = random_stream(round_index, "wide")
    inputs = torch.randn(TASKS, ACTIONS, columns, generator=draws, dtype=torch.float64)
    return 1e4 + 30 * inputs  # a scale that a network does not read well


def play(agent: gfucb.GFUCB, rounds: range, columns: int = WIDE_TABLE) -> torch.Tensor:
    actions = []
    for index in rounds:
        decision = agent.decide(offer(index, columns), tasks=range(TASKS))
        standardised = (decision.inputs - 1e4) / 30
        agent.observe(decision, torch.sin(3 * standardised[:, 0]))
        actions.append(decision.actions)
    return torch.stack(actions)


@pytest.fixture
def early(monkeypatch):
    """A network that starts at once, and decides whatever its errors are."""
    monkeypatch.setattr(table_or_network, "FIRST_SAMPLES", 8)
    monkeypatch.setattr(table_or_network, "FEWEST_ERRORS", 4)
    monkeypatch.setattr(table_or_network, "BETTER", math.inf)


def constant(count: int, value: float) -> torch.Tensor:
    return torch.full((count,), value, dtype=torch.float64)


class TestErrorComparison:
    def test_the_network_must_be_better_by_a_tenth_to_decide_and_no_worse_to_stay(self):
        start = ErrorComparison()
        few = table_or_network.FEWEST_ERRORS - 1
        assert not start.after(constant(few, 1.0), constant(few, 0.1), few).uses_network
        assert not start.after(constant(200, 1.0), constant(200, 0.97), 200).uses_network
        better = start.after(constant(200, 1.0), constant(200, 0.9), 200)
        assert better.uses_network
        longer = better.after(constant(5000, 1.0), constant(5000, 0.99), 5200)
        assert longer.uses_network
        assert not longer.after(constant(5000, 1.0), constant(5000, 1.01), 10_200).uses_network

    def test_old_errors_are_forgotten(self):
        before = ErrorComparison().after(constant(1000, 1.0), constant(1000, 9.0), 1000)
        assert before.after(constant(5000, 1.0), constant(5000, 0.5), 6000).uses_network

    def test_a_worse_network_is_given_up_but_not_early(self):
        errors = constant(200, 1.0), constant(200, 1.1)
        assert not ErrorComparison().after(*errors, table_or_network.LAST_SAMPLES - 1).has_given_up
        assert ErrorComparison().after(*errors, table_or_network.LAST_SAMPLES).has_given_up

    def test_is_restored_exactly(self):
        found = ErrorComparison().after(constant(200, 1.0), constant(200, 0.3), 200)
        assert ErrorComparison.restored({"comparison": found.tensor()}) == found


@pytest.mark.slow
def test_a_network_starts_beside_wide_tables_only(early):
    wide, narrow = gfucb.GFUCB(TASKS), gfucb.GFUCB(TASKS)
    play(wide, range(8))
    play(narrow, range(8), columns=WIDE_TABLE - 1)
    assert isinstance(wide.learner.chosen, Learner)
    assert isinstance(narrow.learner.chosen, TableLearner)
    assert narrow.learner.tables.network.num_samples == 0
    assert wide.learner.num_samples == 16 == wide.learner.tables.network.num_samples


@pytest.mark.slow
@pytest.mark.parametrize("num_rounds", [3, 5, 9], ids=["no network", "network", "decides"])
def test_a_restored_agent_continues_exactly(early, tmp_path, num_rounds):
    agent, again = gfucb.GFUCB(TASKS), gfucb.GFUCB(TASKS)
    play(agent, range(num_rounds))
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(again, tmp_path / "agent")
    rest = range(num_rounds, num_rounds + 6)
    assert torch.equal(play(agent, rest), play(again, rest))
    one, other = agent.state(), again.state()
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_snapshots_new_tasks_and_fits_include_both(early):
    agent = gfucb.GFUCB(TASKS)
    play(agent, range(8))
    other = agent.snapshot()
    actions = play(agent, range(8, 12))
    assert torch.equal(play(other, range(8, 12)), actions)
    agent.add_tasks()
    decision = agent.decide(offer(50)[:1], tasks=[TASKS])
    agent.observe(decision, [0.5])
    fits = agent.learner.num_fits
    agent.learner.refit()
    assert agent.learner.num_fits == fits + 2


@pytest.mark.slow
def test_deferred_fits_also_start_the_network(early):
    agent = gfucb.GFUCB(TASKS)
    agent.learner.defers_fits = True
    play(agent, range(6))
    assert agent.learner.tables.network.num_samples == 0 and agent.learner.is_fit_due
    agent.learner.refit()
    assert agent.learner.tables.network.num_samples == 12


@pytest.mark.slow
def test_after_a_failed_call_the_agent_decides_as_before(early, monkeypatch):
    agent, other = gfucb.GFUCB(TASKS), gfucb.GFUCB(TASKS)
    play(agent, range(5))
    decision = agent.decide(offer(5), tasks=range(TASKS))

    def fail(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TableLearner, "fit_all", fail)
        patch.setattr(TableLearner, "_has_grown", lambda self, count: True)
        with pytest.raises(KeyboardInterrupt):
            agent.observe(decision, [0.1, 0.2])
    assert agent.learner.num_samples == 10
    assert agent.learner.tables.network.num_samples == 0
    play(other, range(5))
    other.learner.tables._drop_network()
    assert torch.equal(play(agent, range(5, 9)), play(other, range(5, 9)))


@pytest.mark.slow
def test_a_network_that_is_given_up_is_dropped_and_does_not_return(early, monkeypatch, tmp_path):
    monkeypatch.setattr(table_or_network, "LAST_SAMPLES", 14)
    wrong = constant(TASKS, 1e6)
    after = ErrorComparison.after
    patched = lambda self, table, network, count: after(self, table, wrong, count)  # noqa: E731
    monkeypatch.setattr(ErrorComparison, "after", patched)
    agent, again = gfucb.GFUCB(TASKS), gfucb.GFUCB(TASKS)
    play(agent, range(10))
    assert agent.learner.tables.comparison.has_given_up
    assert not agent.learner.tables.has_network
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(again, tmp_path / "agent")
    play(again, range(10, 14))
    assert not again.learner.tables.has_network


@pytest.mark.slow
def test_states_that_contradict_themselves_are_refused(early):
    agent, other = gfucb.GFUCB(TASKS), gfucb.GFUCB(TASKS)
    play(agent, range(9))
    state = agent.state()
    without = {name: t for name, t in state.items() if not name.startswith("network.")}
    flags = state["comparison"].clone()
    flags[3] = 0.5
    for wrong in (without, state | {"comparison": flags}, state | {"network.heads": flags}):
        with pytest.raises(InvalidInputError):
            other.load_state(wrong)
    assert other.learner.num_samples == 0


def test_columns_are_standardised_whatever_their_scale():
    inputs = torch.stack([torch.arange(9.0), 1e6 + torch.arange(9.0), torch.full((9,), 7.0)], 1)
    found = StandardisedColumns(inputs)(inputs.float())
    torch.testing.assert_close(found.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.std(0, correction=0), torch.tensor([1.0, 1.0, 0.0]))
    far = StandardisedColumns(inputs)(torch.tensor([[1e9, 0.0, 7.0]]))
    assert far.abs().max() == 5

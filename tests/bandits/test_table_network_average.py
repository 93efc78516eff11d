"""Wide tables: the average of both models, and that both are saved, grow and start together."""

import pytest
import torch

import gfucb
from gfucb.bandits import table_network_average as average
from gfucb.bandits.influences import SampleInfluences
from gfucb.bandits.table_learner import WIDE_TABLE, TableLearner
from gfucb.bandits.table_network_average import ErrorComparison
from gfucb.core.errors import InvalidInputError
from gfucb.core.features import features_of
from gfucb.core.random import random_stream
from gfucb.models.nn.networks import StandardisedColumns
from gfucb.models.reward_weights import PosteriorWeights

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
    """A network that starts at once, and whose share follows from few errors."""
    monkeypatch.setattr(average, "FIRST_SAMPLES", 8)
    monkeypatch.setattr(average, "PRIOR_ERRORS", 1.0)


def normal(name: str, count: int = 4000) -> torch.Tensor:
    return torch.randn(count, generator=random_stream(0, name), dtype=torch.float64)


class TestErrorComparison:
    def test_the_share_minimises_the_squared_errors_of_the_average(self, monkeypatch):
        monkeypatch.setattr(average, "HORIZON", 1e9)
        monkeypatch.setattr(average, "PRIOR_ERRORS", 0.0)
        common, table, network = normal("common"), normal("table"), 0.5 * normal("network")
        table, network = common + table, common + network
        found = ErrorComparison().after(table, network, len(table))

        def error(share: float) -> float:
            return float(((1 - share) * table + share * network).square().sum())

        assert 0.5 < found.share < 1
        for other in (0.0, 1.0, found.share - 0.01, found.share + 0.01):
            assert error(found.share) < error(other)
        assert found.error_ratio == pytest.approx(error(found.share) / error(0.0))

    def test_a_network_whose_errors_are_those_of_the_table_and_more_has_no_share(self):
        table = normal("table")
        found = ErrorComparison().after(table, table + 0.5 * normal("network"), len(table))
        assert found.share < 0.06 and found.error_ratio > 0.98
        assert ErrorComparison().after(table, 2 * table, len(table)).share == 0
        assert ErrorComparison().after(table, table, len(table)).share == 0

    def test_few_errors_change_little_and_old_ones_are_forgotten(self):
        table, right = normal("table"), torch.zeros(4000, dtype=torch.float64)
        few = ErrorComparison().after(table[:5], right[:5], 5)
        assert few.share == pytest.approx(0.2, abs=0.01)
        many = ErrorComparison().after(table, right, 4000)
        assert many.share > 0.9
        assert many.after(right, table, 8000).share < 0.1

    def test_a_network_without_share_is_given_up_but_not_early(self):
        errors = normal("table"), 3 * normal("table")
        assert not ErrorComparison().after(*errors, average.LAST_SAMPLES - 1).has_given_up
        assert ErrorComparison().after(*errors, average.LAST_SAMPLES).has_given_up
        right = ErrorComparison().after(errors[0], 0 * errors[0], average.LAST_SAMPLES)
        assert not right.has_given_up

    def test_is_restored_exactly(self):
        found = ErrorComparison().after(normal("table"), -0.3 * normal("network"), 200)
        assert ErrorComparison.restored({"comparison": found.tensor()}) == found


@pytest.fixture
def averaging(early, monkeypatch):
    """An agent whose predictions are averages; the share of the network is 0.4."""
    agent = gfucb.GFUCB(TASKS)
    play(agent, range(8))
    monkeypatch.setattr(ErrorComparison, "share", 0.4)
    monkeypatch.setattr(ErrorComparison, "error_ratio", 0.25)
    return agent


@pytest.mark.slow
def test_predictions_are_averages_of_both_models(averaging):
    tables, inputs = averaging.learner.tables, offer(99).flatten(0, 1)
    tasks = torch.arange(TASKS).repeat_interleave(ACTIONS)

    def values(learner):
        return learner.fit_state(inputs)[0].values(inputs, tasks)

    expected = 0.6 * values(tables.table) + 0.4 * values(tables.network)
    torch.testing.assert_close(values(averaging.learner), expected)
    found = averaging.predict(offer(99))
    torch.testing.assert_close(found.mean.flatten(), expected)
    # The uncertainty is that of the table model, with a quarter of its squared radius.
    own = tables.table.fit_state(inputs)[2]
    features = tables.table.fit_state(inputs)[0].representation(inputs)
    widths = own.squared_widths(features.unflatten(0, (TASKS, ACTIONS)), torch.arange(TASKS))
    half = (0.25 * own.squared_radius * widths).sqrt()
    torch.testing.assert_close(found.upper - found.mean, half)


@pytest.mark.slow
@pytest.mark.parametrize("joint", [True, False])
def test_selectors_with_one_radius_use_the_average(averaging, joint):
    agent = gfucb.GFUCB(TASKS, action_selector=gfucb.LastLayer(joint=joint))
    agent.load_state(averaging.state())
    agent.decide(offer(99))
    selection = agent.last_selection
    assert selection.squared_distance <= selection.squared_radius * (1 + 1e-6)


@pytest.mark.slow
def test_weights_of_rewards_are_averages_too(averaging):
    tables, candidates = averaging.learner.tables, offer(99)[0]
    confidence_set = averaging.confidence_set(candidates)
    weights = SampleInfluences.of(confidence_set, averaging.learner).weights
    data, samples = tables.table.data, tables.table.samples_at_fit

    def features(learner, inputs):
        return features_of(learner.fit_state(candidates)[0].representation, inputs)

    of_table = PosteriorWeights(
        confidence_set.posterior, features(tables.table, data.inputs), data.tasks, samples
    )
    expected = 0.6 * of_table.of(features(tables.table, candidates), 0)
    own = data.tasks == 0
    phi = features(tables.network, data.inputs[own])
    gram = phi.T @ phi + torch.eye(phi.shape[1], dtype=torch.float64)
    of_network = features(tables.network, candidates) @ torch.linalg.solve(gram, phi.T)
    expected[:, own] += 0.4 * of_network
    joined = features_of(confidence_set.center.representation, candidates)
    torch.testing.assert_close(weights.of(joined, 0), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_network_starts_beside_wide_tables_only(early):
    wide, narrow = gfucb.GFUCB(TASKS), gfucb.GFUCB(TASKS)
    play(wide, range(8))
    play(narrow, range(8), columns=WIDE_TABLE - 1)
    assert wide.learner.averaged is wide.learner.tables
    assert narrow.learner.averaged is None
    assert narrow.learner.tables.network.num_samples == 0
    assert wide.learner.num_samples == 16 == wide.learner.tables.network.num_samples


@pytest.mark.slow
@pytest.mark.parametrize("num_rounds", [3, 5, 9], ids=["no network", "network", "later"])
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
    monkeypatch.setattr(average, "LAST_SAMPLES", 14)
    after = ErrorComparison.after
    patched = lambda self, table, network, *rest: after(self, table, 9 * table, *rest)  # noqa: E731
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
    flags[4] = 0.5
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

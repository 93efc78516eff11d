"""Tables and catalogues in several shards are those of one process."""

import functools

import pytest
import torch
from sharded_problem import require_same
from thread_shards import in_threads

import gfucb
from gfucb.core.shards import num_own_tasks
from gfucb.distributed import Shard
from gfucb.estimation import pooled_fit, table_samples
from gfucb.models import table_features, table_sizes
from gfucb.models.table_layout import TableLayout

TASKS, ACTIONS, COLUMNS, ITEMS, ROUNDS = 11, 4, 3, 9, 7


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Heads with few features, so that fits take little time."""
    monkeypatch.setattr(table_sizes, "MOST_FEATURES", 30)
    monkeypatch.setattr(table_sizes, "FEWEST_FREQUENCIES", 2)


def normal(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def columns(index):
    """Candidates whose columns all differ, [task, action, column], and means [task, action]."""
    inputs = normal(index, TASKS, ACTIONS, COLUMNS)
    return inputs, ((inputs @ normal(90, COLUMNS, 3)).sin() * normal(91, TASKS, 1, 3)).sum(-1)


def prices(index):
    """A context and one of some prices: a continuous action."""
    context = normal(index, TASKS, 1, 2).expand(-1, ACTIONS, -1)
    values = torch.linspace(0, 1, ACTIONS).double().expand(TASKS, -1)
    slopes = 1 + (context * normal(99, TASKS, 1, 2)).sum(-1)
    return torch.cat([context, values[..., None]], dim=-1), values * (slopes - values)


def arms(index):
    """A context and a one-hot action."""
    context = normal(index, TASKS, 1, 2).expand(-1, ACTIONS, -1)
    inputs = torch.cat([context, torch.eye(ACTIONS).double().expand(TASKS, -1, -1)], dim=-1)
    means = (context * (normal(92, ACTIONS, 2) + 0.3 * normal(93, TASKS, ACTIONS, 2))).sum(-1)
    return inputs, means.sin()


def wide(index):
    """Sixteen columns: there is a network beside the table model."""
    inputs = normal(index, TASKS, ACTIONS, 16)
    return inputs, ((inputs @ normal(94, 16, 2)).tanh() * normal(95, TASKS, 1, 2)).sum(-1)


def items(index):
    """Ids from a catalogue."""
    generator = torch.Generator().manual_seed(index)
    rows = [torch.randperm(ITEMS, generator=generator)[:ACTIONS] for _ in range(TASKS)]
    ids = torch.stack(rows)
    values = normal(96, TASKS, 2) @ normal(97, 2, ITEMS) + normal(98, ITEMS)
    return (7 * ids + 3).unsqueeze(-1), values.gather(1, ids)


def active_tasks(index):
    draws = torch.Generator().manual_seed(1000 + index)
    return (torch.rand(TASKS, generator=draws) < 0.6).nonzero().squeeze(1)


def play(kind, shards, rounds=ROUNDS):
    """The agent of a shard, or of one process without shards; actions and values by task."""
    count, number = (1, 0) if shards is None else (shards.count, shards.index)
    agent = gfucb.GFUCB(num_own_tasks(TASKS, number, count), seed=4)
    shard = None if shards is None else Shard(agent, shards)
    made = {}
    for index in range(rounds):
        candidates, means = kind(index)
        own = active_tasks(index)
        own = own[own % count == number]
        if shard is None:
            decision = agent.decide(candidates[own], own)
        else:
            available = torch.ones(len(own), ACTIONS, dtype=torch.bool)
            decision = shard.decide(candidates[own], own // count, available)
        rewards = means[own, decision.actions] + 0.1 * normal(500 + index, TASKS)[own]
        (agent if shard is None else shard).observe(decision, rewards)
        for row, task in enumerate(own.tolist()):
            value = float(decision.optimistic_values[row])
            made[index, task] = int(decision.actions[row]), value
    return agent, made


def rounds_of(kind):
    """A fit of items has hundreds of exchanges between threads, so that few rounds must do."""
    return 3 if kind is items else ROUNDS


@functools.cache
def alone(kind):
    return play(kind, None, rounds_of(kind))


def heads_of(agents, count):
    """The heads of the agents of all shards, by task of all."""
    parts = [agent.state()["posterior.heads"] for agent in agents]
    heads = torch.empty(TASKS, parts[0].shape[1], dtype=torch.float64)
    for index, part in enumerate(parts):
        heads[index::count] = part
    return heads


def weights_of_network(agent):
    state = agent.state()
    names = [name for name in state if name.startswith("network.representation.")]
    return torch.cat([state[name].flatten() for name in sorted(names)])


def require_equal(found, expected, count):
    agent, made = expected
    agents = [other for other, _ in found]
    assert all(other.learner.num_fits == agent.learner.num_fits for other in agents)
    require_same({key: value for _, own in found for key, value in own.items()}, made)
    heads = heads_of([agent], 1)
    assert float((heads_of(agents, count) - heads).abs().max()) < 1e-9 * float(heads.abs().max())


@pytest.mark.parametrize("count", [2, 4, 8])
@pytest.mark.parametrize("kind", [columns, prices, arms, items])
def test_shards_have_the_model_and_the_decisions_of_one_process(kind, count):
    found = in_threads(count, functools.partial(play, kind, rounds=rounds_of(kind)))
    assert alone(kind)[0].learner.num_fits >= 3
    require_equal(found, alone(kind), count)


@pytest.fixture
def bounded(monkeypatch):
    """Searches have fewer samples than there are, and so has the function of all tasks."""
    monkeypatch.setattr(table_samples, "MOST_SEARCH_SAMPLES", 20)
    monkeypatch.setattr(pooled_fit, "MOST_SEARCH_SAMPLES", 25)
    monkeypatch.setattr(pooled_fit, "SAMPLES_PER_FREQUENCY", 1)
    monkeypatch.setattr(pooled_fit, "MOST_FITTED", 30)
    monkeypatch.setattr(pooled_fit, "FREQUENCY_RATIO", 0)
    monkeypatch.setattr("gfucb.estimation.table_fit.MOST_FITTED", 30)


def test_random_parts_of_the_samples_do_not_depend_on_the_number_of_shards(bounded):
    found = [in_threads(count, functools.partial(play, columns)) for count in (2, 4)]
    made = [{key: value for _, own in part for key, value in own.items()} for part in found]
    require_same(made[1], made[0])
    heads = [heads_of([a for a, _ in part], n) for part, n in zip(found, (2, 4), strict=True)]
    assert float((heads[0] - heads[1]).abs().max()) < 1e-9


def test_a_network_beside_a_wide_table_is_that_of_all_shards():
    (expected,) = in_threads(1, functools.partial(play, wide, rounds=6))
    found = in_threads(2, functools.partial(play, wide, rounds=6))
    share = expected[0].learner.averaged.share
    weights = weights_of_network(expected[0])
    for agent, _ in found:
        # The network has single precision, so its fits differ by more than rounding of doubles.
        assert agent.learner.averaged.share == pytest.approx(share, rel=1e-2)
        assert torch.equal(weights_of_network(agent), weights_of_network(found[0][0]))
        assert float((weights_of_network(agent) - weights).abs().max()) < 1e-2
    values = {key: value for _, own in found for key, (_, value) in own.items()}
    assert values == pytest.approx({key: v for key, (_, v) in expected[1].items()}, abs=2e-2)


@pytest.mark.parametrize("kind", [columns, prices, arms, items])
@pytest.mark.parametrize("count", [2, 8])
def test_shards_continue_from_their_saved_states(kind, count):
    def restored(shards):
        agent, _ = play(kind, shards, rounds=1)  # with eight shards some have no samples
        same = gfucb.GFUCB(agent.num_tasks, seed=4)
        Shard(same, shards)
        same.load_state(agent.state())
        return agent, same

    for agent, same in in_threads(count, restored):
        assert same.learner.num_samples == agent.learner.num_samples
        state = agent.state()
        assert all(torch.equal(x, same.state()[name]) for name, x in state.items())


@pytest.mark.parametrize("kind", [columns, arms, items])
def test_many_tasks_without_matrices_are_those_with_them(kind, monkeypatch):
    monkeypatch.setattr(table_sizes, "MANY_TASKS", TASKS - 1)
    monkeypatch.setattr(table_samples, "MANY_TASKS", TASKS - 1)
    monkeypatch.setattr("gfucb.estimation.table_fit.MANY_TASKS", TASKS - 1)
    monkeypatch.setattr("gfucb.bandits.catalogue_learner.MANY_TASKS", TASKS - 1)
    compact = play(kind, None)
    assert "posterior.covariances.features" in compact[0].state()
    found = in_threads(2, functools.partial(play, kind))
    require_equal(found, compact, 2)


@pytest.mark.parametrize("count", [2, 3])
def test_shards_give_columns_the_units_of_one_process(count):
    """Also a shard without samples, and counts whose zeros are most of all samples only."""
    rows = normal(3, 9, 3)
    rows[:, 1] = torch.tensor([0, 0, 0, 0, 0, 3, 2, 0, 4]).double()
    rows[:, 2] = torch.tensor([1, 1, 1, 1, 1, 1, 1, 1, 0]).double()
    parts = [rows[:6], rows[6:], rows[:0]][:count]
    layout = TableLayout(3)

    def units(inputs, *shards):
        generator = torch.Generator().manual_seed(0)
        return table_features.TableColumns.of(layout, inputs, 1, generator, *shards).spread

    found = in_threads(count, lambda shards: units(parts[shards.index], shards))
    for own in found:
        torch.testing.assert_close(own, units(rows), rtol=1e-12, atol=0)
    assert units(rows)[1:].tolist() == [2.0, 0.5]

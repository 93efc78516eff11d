"""Statistics by samples are those by Gram matrices, in less memory."""

import pytest
import torch

from gfucb import GFUCB
from gfucb.core.errors import InvalidInputError
from gfucb.core.shards import ONE_SHARD
from gfucb.models import HeadPenalty, HeadStatistics
from gfucb.models import statistics_forms as form
from gfucb.models.sample_statistics import SampleStatistics
from gfucb.models.statistics_forms import empty_statistics, statistics_of

TASKS, SIZE, RIDGE = 9, 4, 0.7
PENALTY = HeadPenalty(RIDGE)


def samples(count, seed=0, tasks=TASKS - 2):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, SIZE, generator=generator)  # of a network in single precision
    rows = torch.randint(tasks, (count,), generator=generator)
    return features.double(), rows, torch.randn(count, generator=generator, dtype=torch.float64)


def both(count):
    """The same statistics in both forms; with 60 samples most tasks have Gram matrices."""
    given = samples(count)
    return SampleStatistics.of_samples(*given, TASKS), HeadStatistics.of(*given, TASKS)


def require_same(found, expected):
    assert torch.allclose(found.grams, expected.grams, atol=1e-12)
    assert torch.allclose(found.moments, expected.moments, atol=1e-12)
    assert torch.allclose(found.heads(PENALTY), expected.heads(PENALTY), atol=1e-12)
    generator = torch.Generator().manual_seed(1)
    candidates = torch.randn(3, 5, SIZE, generator=generator, dtype=torch.float64)
    tasks = torch.tensor([8, 0, 3])
    one, other = (
        own.ellipsoid(expected.heads(PENALTY), RIDGE, 2.0, None, ONE_SHARD)
        for own in (found, expected)
    )
    for method in ("squared_widths", "value_covariances"):
        first, second = (getattr(own, method)(candidates, tasks) for own in (one, other))
        assert torch.allclose(first, second, atol=1e-12)
    directions = torch.zeros(TASKS, SIZE, dtype=torch.float64)
    directions[tasks] = candidates[:, 0]
    heads = other.farthest_heads(directions)
    assert torch.allclose(one.farthest_heads(directions), heads, atol=1e-12)
    assert one.squared_distance(heads) == pytest.approx(other.squared_distance(heads))
    assert torch.allclose(one.cholesky, other.cholesky, atol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 12, 60])
def test_all_forms_have_the_same_heads_and_widths(count):
    require_same(*both(count))


def test_samples_that_come_later_are_added():
    found, expected = both(12)
    for seed in range(1, 7):  # tasks grow beyond the number of features
        more = samples(8, seed)
        (found, changed), (expected, others) = found.after(*more), expected.after(*more)
        assert torch.equal(changed, others)
        require_same(found, expected)
        heads = torch.zeros(TASKS, SIZE, dtype=torch.float64)
        one, other = (own.heads_solved_at(changed, PENALTY, heads) for own in (found, expected))
        assert torch.allclose(one, other, atol=1e-12)
    assert len(found.matrices) > 3


def test_values_that_share_rows_do_not_change_each_other():
    found, expected = both(12)
    first, second = samples(5, 1), samples(5, 2)
    one, other = found.after(*first)[0], found.after(*second)[0]
    require_same(one, expected.after(*first)[0])
    require_same(other, expected.after(*second)[0])
    require_same(found, expected)


def test_samples_of_tasks_are_replaced_and_tasks_added():
    for count in (12, 60):
        found, expected = both(count)
        tasks, few = torch.tensor([1, 4]), samples(3, 5, tasks=2)
        one, other = (own.with_samples_at(tasks, *few) for own in (found, expected))
        require_same(one, other)
        one, other = found.with_tasks(2), expected.with_tasks(2)
        assert torch.allclose(one.heads(PENALTY), other.heads(PENALTY), atol=1e-12)


def test_saved_statistics_continue_and_have_no_more_than_the_samples():
    for count in (12, 60):
        found, _ = both(count)
        found, _ = found.after(*samples(9, 3))
        again = SampleStatistics.restored({n: x.clone() for n, x in found.tensors().items()})
        assert torch.equal(again.heads(PENALTY), found.heads(PENALTY))
        assert torch.equal(again.grams, found.grams)
        assert again.tensors()["features"].dtype == torch.float32
    many, _, targets = samples(3)
    third = SampleStatistics.of_samples(many / 3, torch.arange(3), targets, TASKS)
    assert third.tensors()["features"].dtype == torch.float64  # single precision would round


def test_a_bound_on_the_norm_holds():
    found, expected = both(40)
    bounded = HeadPenalty(RIDGE, 0.05)
    assert torch.allclose(found.heads(bounded), expected.heads(bounded), atol=1e-10)
    assert float(found.heads(bounded).norm(dim=1).max()) <= 0.05 + 1e-9


@pytest.fixture
def small_grams(monkeypatch):
    monkeypatch.setattr(form, "LARGEST_GRAMS", 100)


def test_the_form_depends_on_the_memory(small_grams):
    assert isinstance(empty_statistics(TASKS, SIZE, "cpu"), SampleStatistics)
    assert not isinstance(empty_statistics(6, SIZE, "cpu"), SampleStatistics)
    assert isinstance(statistics_of(*samples(20), TASKS), SampleStatistics)
    assert not isinstance(statistics_of(*samples(200), TASKS), SampleStatistics)


def play(num_rounds, agent=None):
    network = torch.nn.Linear(3, SIZE, bias=False)
    with torch.no_grad():
        network.weight.copy_(torch.arange(12.0).reshape(SIZE, 3).sin())
    agent = GFUCB(TASKS, network, seed=0) if agent is None else agent
    generator = torch.Generator().manual_seed(7)
    actions = []
    for _ in range(num_rounds):
        decision = agent.decide(torch.randn(TASKS, 3, 3, generator=generator))
        agent.observe(decision, decision.inputs.sum(1).sin())
        actions.append(decision.actions)
    return agent, torch.stack(actions)


def test_an_agent_decides_alike_with_both_forms(small_grams, monkeypatch):
    agent, actions = play(7)
    assert isinstance(agent.network_learner._statistics, SampleStatistics)
    copy = GFUCB(TASKS, torch.nn.Linear(3, SIZE, bias=False), seed=0)
    copy.load_state(agent.state())
    state = agent.state()
    assert all(torch.equal(x, state[name]) for name, x in copy.state().items())
    assert torch.equal(play(2, copy)[1], play(2, agent)[1])
    for rounds, name in ((3, "statistics.features"), (7, "statistics.grams")):
        state = play(rounds)[0].state()
        with pytest.raises(InvalidInputError, match="do not follow"):
            copy.load_state(state | {name: 9 * state[name]})
    monkeypatch.undo()
    assert torch.equal(play(7)[1], actions)

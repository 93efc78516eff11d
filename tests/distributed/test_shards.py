"""An agent in several shards is the agent of one process."""

import numpy as np
import pytest
import torch
from sharded_problem import make_agent, play_shard, require_same, weights_of
from thread_shards import in_threads

from gfucb.core.shards import ONE_SHARD, in_any, largest, totals
from gfucb.estimation.reward_check import standardised_gain
from gfucb.estimation.reward_scale import robust_range
from gfucb.exploration.joint_choice import choose_jointly
from gfucb.models import LinearRepresentation, MultitaskDataset


@pytest.fixture(scope="module")
def alone():
    return in_threads(1, play_shard)[0]


@pytest.mark.parametrize("count", [2, 4, 8])
def test_fits_and_decisions_do_not_depend_on_the_number_of_shards(alone, count):
    agent, expected = alone
    found = in_threads(count, play_shard)
    assert agent.learner.num_fits > 3
    for other, _ in found:
        assert other.learner.num_fits == agent.learner.num_fits
        assert float((weights_of(other) - weights_of(agent)).abs().max()) < 1e-9
    require_same({key: made for _, part in found for key, made in part.items()}, expected)


def test_heads_and_radius_are_those_of_one_process(alone):
    agent, _ = alone
    found = in_threads(2, play_shard)
    heads = agent.state()["heads"]
    for index, (other, _) in enumerate(found):
        assert torch.allclose(other.state()["heads"], heads[index::2], atol=1e-9)
        assert torch.allclose(other.radius_state.scores, agent.radius_state.scores, atol=1e-9)
        assert other.learner.scale == agent.learner.scale


def test_a_shard_continues_from_its_saved_state():
    def play(shards):
        agent, _ = play_shard(shards)
        copy = make_agent(agent.num_tasks)
        copy.network_learner.shards = shards
        copy.load_state(agent.state())
        return agent, copy

    for agent, copy in in_threads(2, play):
        assert all(torch.equal(x, copy.state()[name]) for name, x in agent.state().items())
        assert copy.learner.num_samples == agent.learner.num_samples


@pytest.mark.parametrize("count", [2, 3])
def test_the_joint_choice_is_that_of_one_process(count):
    generator = np.random.default_rng(0)
    for _ in range(25):
        groups, options = generator.integers(1, 9), generator.integers(1, 6)
        means = generator.normal(size=(groups, options)).round(1)
        widths = generator.exponential(size=(groups, options)).round(1)
        expected = choose_jointly(means, widths, 2.0)

        def choose(shards, means=means, widths=widths):
            own = slice(shards.index, None, shards.count)
            return choose_jointly(means[own], widths[own], 2.0, shards)

        parts = in_threads(count, choose)
        assert all(part.value == pytest.approx(expected.value, abs=1e-12) for part in parts)
        chosen = np.empty(groups, dtype=int)
        for index, part in enumerate(parts):
            chosen[index::count] = part.options
        mean, width = (x[np.arange(groups), chosen].sum() for x in (means, widths))
        assert mean + np.sqrt(2.0 * width) == pytest.approx(expected.value, abs=1e-12)
        assert all(part.is_exact == expected.is_exact for part in parts)


def test_the_range_of_rewards_is_that_of_all_shards():
    rewards = torch.cat([torch.linspace(0, 1, 30, dtype=torch.float64), torch.tensor([900.0])])
    order = torch.randperm(len(rewards), generator=torch.Generator().manual_seed(0))
    rewards = rewards[order]
    found = in_threads(3, lambda s: robust_range(rewards[s.index :: 3], s))
    assert found == [robust_range(rewards)] * 3 == [(0.0, 1.0)] * 3


def test_one_shard_changes_nothing():
    values = torch.tensor([1.0, 2.0])
    assert ONE_SHARD.sum(values) is values and ONE_SHARD.gather(values) is values
    assert totals(ONE_SHARD, 1.0, 2.0) == (1.0, 2.0) == largest(ONE_SHARD, 1.0, 2.0)
    assert in_any(ONE_SHARD, True) and not in_any(ONE_SHARD, False)


def test_the_check_of_self_supervision_compares_the_errors_of_all_shards():
    generator = torch.Generator().manual_seed(0)
    tasks = torch.arange(6).repeat(12)
    inputs = torch.randn(len(tasks), 4, generator=generator, dtype=torch.float64)
    phis = [LinearRepresentation(torch.eye(4, dtype=torch.float64)[:k]) for k in (2, 4)]

    def gain(shards):
        own = tasks % shards.count == shards.index
        data = MultitaskDataset(6, (4,), torch.float64, shards=shards)
        data.append(tasks[own] // shards.count, inputs[own], inputs[own].sum(1))
        return standardised_gain(*phis, data, offset=0.0, ridge=1.0)

    expected = gain(ONE_SHARD)
    assert expected > 1
    assert in_threads(2, gain) == pytest.approx([expected] * 2)
    # A shard without samples counts as well.
    assert in_threads(7, gain) == pytest.approx([expected] * 7)

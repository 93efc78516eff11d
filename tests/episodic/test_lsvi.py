"""LSVI-UCB: the textbook algorithm, and the implementation in numpy."""

import tracemalloc

import numpy as np
import pytest
import torch
from episodic_cases import ONE_HOT, check_continuation

import gfucb
from gfucb import ConstantRadius, EpisodicGFUCB
from gfucb.core.errors import InvalidInputError
from gfucb.environments import linear_mdps, tabular_lock, tabular_mdps
from gfucb.episodic import LSVIUCB, greedy_policy
from gfucb.runs.loop import play_episode


class TextbookLSVI:
    """Tabular LSVI-UCB with lambda = 1, by counting: w(s,a) = sum of targets / (n + 1)."""

    def __init__(self, num_states, num_actions, horizon, beta):
        self.shape, self.horizon, self.beta = (num_states, num_actions), horizon, beta
        self.history = [[] for _ in range(horizon)]

    def plan(self):
        tables, following = [], np.zeros(self.shape[0])
        for stage in reversed(range(self.horizon)):
            counts, sums = np.zeros(self.shape), np.zeros(self.shape)
            for state, action, reward, successor in self.history[stage]:
                counts[state, action] += 1
                last = stage == self.horizon - 1
                sums[state, action] += reward + (0.0 if last else following[successor])
            table = sums / (counts + 1) + self.beta / np.sqrt(counts + 1)
            tables.insert(0, table)
            following = np.clip(table.max(axis=1), 0, 1)
        return tables


def test_one_hot_features_give_textbook_lsvi_ucb():
    generator = np.random.default_rng(0)
    transitions = generator.dirichlet(np.ones(4), size=(3, 4, 2))
    environment = tabular_mdps(
        [transitions],
        [generator.uniform(0, 1 / 3, (3, 4, 2))],
        reward_range=(0.0, 1 / 3),
        reward_noise="bernoulli",
        value_range=(0.0, 1.0),
        seed=3,
    )
    agent = EpisodicGFUCB(
        1, 3, ONE_HOT, squared_radius=ConstantRadius(0.6**2), ridge=1.0, replan="every"
    )
    textbook = TextbookLSVI(4, 2, 3, beta=0.6)
    everywhere = torch.zeros(4, dtype=torch.int64)
    for index in range(1, 61):
        episode = environment.episode(index)
        agent.plan(episode.offered()[1])
        tables = textbook.plan()
        for stage in range(3):
            action_sets = agent.decide(stage, environment.inputs, everywhere)
            assert action_sets.actions.tolist() == tables[stage].argmax(1).tolist()
            values = np.clip(tables[stage].max(1), 0, 1)
            np.testing.assert_allclose(action_sets.optimistic_values, values, rtol=0, atol=1e-12)
        for stage in range(3):
            state = int(episode.states[0])
            decision = agent.decide(stage, episode.offered()[1])
            outcome = episode.play(decision.actions)
            agent.observe(stage, decision, outcome.rewards, outcome.next_candidates, outcome.ended)
            successor = int(episode.states[0])
            textbook.history[stage].append(
                (state, int(decision.actions[0]), float(outcome.rewards[0]), successor)
            )


@pytest.mark.parametrize("num_tasks", [1, 3])
def test_numpy_lsvi_ucb_equals_lsvi_ucb_of_gfucb(num_tasks):
    environment = linear_mdps(num_tasks=num_tasks, horizon=3, num_states=5, seed=1)
    fast = gfucb.episodic.LSVIUCB(num_tasks, 3)
    reference = gfucb.episodic.lsvi_ucb(num_tasks, 3)
    for index in range(1, 41):
        episode = environment.episode(index)
        for agent in (fast, reference):
            agent.plan(episode.offered()[1])
        assert fast.plan_index == reference.plan_index
        for stage in range(3):
            candidates = episode.offered()[1]
            decision, other = (
                fast.decide(stage, candidates),
                reference.decide(stage, candidates),
            )
            torch.testing.assert_close(decision.optimistic_values, other.optimistic_values)
            outcome = episode.play(other.actions)
            for agent in (fast, reference):
                agent.observe(stage, other, outcome.rewards, outcome.next_candidates, outcome.ended)


def test_numpy_lsvi_ucb_equals_lsvi_ucb_on_a_range_above_zero():
    environment = tabular_lock(horizon=3)
    shifted = {"value_range": (5.0, 10.0)}
    fast = LSVIUCB(1, 3, beta=1.5, ridge=0.1, replan_growth=1.0, **shifted)
    reference = gfucb.episodic.lsvi_ucb(1, 3, beta=1.5, ridge=0.1, replan="every", **shifted)
    for agent in (fast, reference):
        for index in range(1, 20):
            play_episode(agent, environment.episode(index), 3, 1)
    everyone = torch.zeros(environment.num_states, dtype=torch.int64)
    for stage in range(3):
        one, other = (a.decide(stage, environment.inputs, everyone) for a in (fast, reference))
        torch.testing.assert_close(one.optimistic_values, other.optimistic_values)


def test_continues_from_its_state(tmp_path):
    environment = tabular_lock(horizon=4, seed=2)
    check_continuation(lambda: gfucb.episodic.LSVIUCB(1, 4), environment, tmp_path, episodes=20)
    with pytest.raises(InvalidInputError, match="no plan yet"):
        gfucb.episodic.LSVIUCB(1, 4).decide(0, environment.inputs[:1])
    with pytest.raises(InvalidInputError, match="one row for each"):
        gfucb.episodic.LSVIUCB(2, 4).plan(environment.inputs[:1])


def test_a_plan_of_several_tasks_holds_no_factor_for_each_row():
    num_tasks, num_actions, feature_dim, episodes = 2, 4, 48, 80
    agent, generator = LSVIUCB(num_tasks, 2), torch.Generator().manual_seed(0)
    shape = (num_tasks, num_actions, feature_dim)
    for _ in range(episodes):
        candidates = torch.rand(shape, generator=generator, dtype=torch.float64)
        following = torch.rand(shape, generator=generator, dtype=torch.float64)
        agent.plan(candidates)
        agent.observe(0, agent.decide(0, candidates), [0.0, 0.0], following)
        agent.observe(1, agent.decide(1, following), [1.0, 0.5])
    rows = num_tasks * num_actions * episodes
    tracemalloc.start()
    greedy_policy(agent)  # plans from all transitions
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * rows * feature_dim * 6  # a few copies of all rows

"""The default episodic agent: cells of observations, counts, optimistic values on them."""

import numpy as np
import pytest
import torch
from benchmarks.episodic.joining import JoiningTask
from episodic_cases import states_equal

from gfucb import EpisodicGFUCB, InvalidInputError, with_actions
from gfucb.checks import check_episodic_agent
from gfucb.core.errors import GFUCBWarning
from gfucb.environments import combination_lock
from gfucb.episodic.cell_clusters import Clusters, _joined, are_apart, fit_clusters
from gfucb.episodic.cell_counts import CellCounts
from gfucb.episodic.cell_decoder import ClusterCells
from gfucb.episodic.cell_values import StageValues
from gfucb.episodic.input_layout import InputLayout

HORIZON, TASKS = 4, 2


def play(agent, environment, episodes):
    """Play episodes; return whether each task reached the goal in each, [episode, task]."""
    reached = []
    for index in episodes:
        episode = environment.episode(index)
        tasks, candidates = episode.offered()
        agent.plan(candidates, tasks)
        for stage in range(environment.horizon):
            tasks, candidates = episode.offered()
            decision = agent.decide(stage, candidates, tasks)
            outcome = episode.play(decision.actions)
            agent.observe(stage, decision, outcome.rewards, outcome.next_candidates, outcome.ended)
        reached.append(episode.reached_goal)
    return np.stack(reached)


@pytest.fixture(scope="module")
def opened():
    """An agent with no further arguments after 70 episodes of a lock, and its successes."""
    environment = combination_lock(HORIZON, 5, num_tasks=TASKS, seed=2100)
    agent = EpisodicGFUCB(TASKS, HORIZON)
    return environment, agent, play(agent, environment, range(1, 71))


def test_the_bare_default_opens_a_lock_with_fresh_noise(opened):
    _, agent, reached = opened
    assert reached[-10:].all()
    # Two good states and a dead one in each stage but the first, and none of it was given.
    assert agent.diagnostics()["cells"] == 3 * HORIZON - 1


def test_an_agent_restored_in_mid_episode_continues_like_the_saved_one(opened):
    environment, agent, _ = opened
    restored = EpisodicGFUCB(TASKS, HORIZON)
    restored.load_state({name: tensor.clone() for name, tensor in agent.state().items()})
    assert states_equal(agent.state(), restored.state())
    episode = environment.episode(500)
    tasks, candidates = episode.offered()
    for stage in range(HORIZON):
        decisions = [each.decide(stage, candidates, tasks) for each in (agent, restored)]
        assert torch.equal(decisions[0].actions, decisions[1].actions)
        assert torch.equal(decisions[0].optimistic_values, decisions[1].optimistic_values)
        candidates = episode.play(decisions[0].actions).next_candidates


def test_a_task_that_joins_reads_an_emission_that_is_known_already():
    agent = EpisodicGFUCB(TASKS + 1, HORIZON)
    play(agent, combination_lock(HORIZON, 5, num_tasks=TASKS, seed=2100), range(1, 61))
    known = agent.diagnostics()
    codes = combination_lock(HORIZON, 5, num_tasks=1, seed=2101)
    joined = play(JoiningTask(agent, TASKS), codes, range(1, 41))
    # No state had to be found again, and the lock opens.
    assert agent.diagnostics()["cells"] == known["cells"] == 3 * HORIZON - 1
    assert joined[-5:].all()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("1/cells", lambda t: t + 1, "do not follow|cells"),
        ("1/keys", lambda t: t * np.nan, "must be finite"),
        ("0/next_observations", lambda t: t + 10_000, "must lie between"),
        ("known_cells", lambda t: t + 1000, "the plan of the state has"),
        ("fit_sizes", lambda t: t + 10_000, "larger than its tables"),
    ],
)
def test_changed_states_are_refused(opened, name, change, message):
    agent = opened[1]
    state = {key: tensor.clone() for key, tensor in agent.state().items()}
    state[name] = change(state[name])
    other = EpisodicGFUCB(TASKS, HORIZON)
    with pytest.raises(InvalidInputError, match=message):
        other.load_state(state)
    assert not other.state()


@pytest.mark.parametrize(
    "inputs",
    [with_actions(torch.arange(12.0).reshape(3, 4), 2), torch.arange(30.0).reshape(3, 2, 5)],
    ids=["observation and action", "pairs"],
)
def test_both_layouts_pass_the_checks_of_agents(inputs):
    check_episodic_agent(lambda: EpisodicGFUCB(2, 3, value_range=(0, 3)), inputs)


def test_one_hot_states_are_not_clusters():
    stages = [np.eye(12), np.eye(12)]
    clusters = fit_clusters(stages)
    assert clusters is None or not are_apart(stages, clusters.labels)


@pytest.mark.parametrize("noise_scale", [0.05, 0.1, 0.2])
def test_clusters_are_the_states_of_each_stage_whatever_the_noise(noise_scale):
    rng = np.random.default_rng(3)
    mixing = rng.normal(size=(16, 16))
    states = [rng.integers(2 + (stage > 0), size=60) for stage in range(6)]
    stages = []
    for stage, own in enumerate(states):
        coordinates = noise_scale * rng.normal(size=(60, 16))
        coordinates[np.arange(60), own] += 1
        coordinates[:, 4 + stage] += 1
        stages.append(coordinates @ mixing)
    clusters = fit_clusters(stages)
    for found, expected in zip(clusters.labels, states, strict=True):
        pairs = set(zip(found.tolist(), expected.tolist(), strict=True))
        # Each cell has one state; a rare outlier may have a cell of its own.
        assert len(pairs) == len(set(found.tolist()))
        assert len(set(expected.tolist())) <= len(pairs) <= len(set(expected.tolist())) + 1


def test_a_state_that_was_cut_in_two_is_joined_again():
    rng = np.random.default_rng(7)
    states = np.repeat([0, 1], 80)
    rows = rng.normal(size=(160, 2)) + 9.0 * states[:, None]
    cut = np.where(states == 0, 0, 1 + (rows[:, 0] > 9.0))  # state 1 is cells 1 and 2
    joined = _joined(rows, cut, scale=1.0)
    np.testing.assert_array_equal(joined == joined[-1], states == 1)
    assert set(joined.tolist()) == {0, 1}


def test_a_lone_outlier_does_not_take_observations_of_a_large_cell():
    rows = np.concatenate([np.random.default_rng(1).normal(size=(60, 1)), [[9.0]]])
    rows[:60] -= rows[:60].mean()
    labels = np.repeat([0, 1], [60, 1])
    decoder = ClusterCells(Clusters(np.eye(1), np.eye(1), [labels]), [rows])
    # 4.2 standard deviations from the mean of 60 observations, 4.8 from the outlier; 8.5 and 0.5.
    np.testing.assert_array_equal(decoder.find(0, np.array([[4.2], [8.5]]), known=2), [0, 1])


def test_inputs_split_into_observation_and_action_only_if_all_do():
    factored = with_actions(torch.rand(3, 2, generator=torch.Generator()), 4).numpy()
    layout = InputLayout.of(factored)
    assert layout.is_factored and layout.keys(factored).shape == (3, 1, 2)
    np.testing.assert_array_equal(layout.candidates(layout.keys(factored)[:, 0], 4), factored)
    changed = factored.copy()
    changed[1, :, 2] += 1
    assert not layout.accepts(changed) and not InputLayout.of(changed).is_factored


def test_rewards_that_contradict_the_value_range_are_named_once():
    agent = EpisodicGFUCB(1, 1)
    candidates = with_actions([[0.0]], 2)
    agent.plan(candidates)
    with pytest.warns(GFUCBWarning, match=r"sum to 5, but value_range.*\[0, 1\]"):
        agent.observe(0, agent.decide(0, candidates), [5.0])
    agent.observe(0, agent.decide(0, candidates), [5.0])  # no second warning
    agent.plan(candidates)
    assert agent.range_of(0) == (0.0, 5.0)


def test_an_agent_with_cells_refuses_questions_about_functions():
    with pytest.raises(InvalidInputError, match="build it with a representation"):
        EpisodicGFUCB(1, 2).confidence_set(0)


def test_raw_observations_are_refused_with_the_way_to_append_actions():
    agent = EpisodicGFUCB(1, 2)
    with pytest.raises(InvalidInputError, match=r"got \[1, 5\]; .* gfucb.with_actions"):
        agent.plan(torch.zeros(1, 5))
    assert not agent.state()


def test_a_pair_that_was_unlucky_twice_is_tried_again():
    agent = EpisodicGFUCB(1, 1)
    candidates = with_actions([[0.0]], 2)
    tried = []
    for _ in range(60):
        agent.plan(candidates)
        decision = agent.decide(0, candidates)
        action = int(decision.actions)
        tried.append(action)
        # Action 1 pays 1 from its third time on, action 0 always 0.1.
        agent.observe(0, decision, [0.1 if action == 0 else float(tried.count(1) > 2)])
    assert tried[-10:] == [1] * 10


def stage_values(transitions, num_states, following, num_actions=3, are_regions=False):
    """Values of a stage with range [0, 1] from (task, state, action, next state) without reward."""
    counts = CellCounts()
    rows = np.array(transitions, dtype=np.int64).reshape(-1, 4)
    pairs = rows[:, 1] * num_actions + rows[:, 2]
    counts.add(rows[:, 0], pairs, rows[:, 3], np.zeros(len(rows)))
    state_pairs = np.arange(num_states * num_actions).reshape(num_states, num_actions)
    size = state_pairs.size
    return StageValues.of(counts, state_pairs, size, following, (0.0, 1.0), are_regions=are_regions)


def test_an_unlucky_pair_becomes_attractive_again_without_visits_of_its_state():
    end = StageValues.after_the_last(2)
    unlucky = [(0, 0, 0, -1)] * 4 + [(1, 0, 0, -1)] * 4  # state 0 of both tasks paid nothing
    before = stage_values(unlucky, 2, end)
    # The first task then visits only state 1.
    after = stage_values(unlucky + [(0, 1, 0, -1)] * 300, 2, end)
    assert after.upper[0, 0] > 2 * before.upper[0, 0]
    assert after.upper[1, 0] == before.upper[1, 0]


def test_bonuses_of_regions_grow_with_visits_of_the_region_alone():
    end = StageValues.after_the_last(1)
    few = [(0, 0, action % 2, -1) for action in range(8)]
    before = stage_values(few, 2, end, are_regions=True)
    elsewhere = stage_values(few + [(0, 1, 0, -1)] * 300, 2, end, are_regions=True)
    assert elsewhere.upper[0, 0] == before.upper[0, 0]
    visited = stage_values(few + [(0, 0, 1, -1)] * 300, 2, end, are_regions=True)
    assert visited.upper[0, 0] > 2 * before.upper[0, 0]


def test_between_equal_values_the_way_to_what_is_unknown_comes_first():
    end = StageValues.after_the_last(1)
    # State 0 of the last stage was visited ten times, state 1 once; both have an untried action.
    last = stage_values([(0, 0, action % 2, -1) for action in range(10)] + [(0, 1, 0, -1)], 2, end)
    assert last.novelty[0, 1] > last.novelty[0, 0]
    # In the state before, action 0 led to the first, action 1 to the second, action 2 is untried.
    known_way = stage_values([(0, 0, 0, 0)] * 6 + [(0, 0, 1, 1)] * 3, 1, last)
    np.testing.assert_array_equal(known_way.upper, 1.0)
    assert known_way.preference[0].argmax() == 1
    # Two stages before, the only known action has the novelty of the best way on.
    first = stage_values([(0, 0, 0, 0)], 1, known_way)
    assert first.preference[0, 0] == pytest.approx(last.novelty[0, 1], abs=1e-5)


def test_other_tasks_tell_what_an_unknown_action_typically_does():
    # All tasks have entered state 0 (dead) twice with action 0. It ends in states 0, which are
    # well known; only in the second case have other tasks also tried its other actions.
    last = stage_values(
        [(task, 0, 0, -1) for task in range(4)] * 9, 1, StageValues.after_the_last(4)
    )
    own = [(task, 0, 0, 0) for task in range(4)] * 2
    others = [(task, 0, action, 0) for task in (1, 2, 3) for action in (1, 2)]
    alone, informed = stage_values(own, 1, last), stage_values(own + others, 1, last)
    # The optimism of the first task is the same, but what it has not tried promises less.
    np.testing.assert_array_equal(alone.upper[0], informed.upper[0])
    np.testing.assert_array_equal(alone.upper[0, 1:], 1.0)
    assert (informed.preference[0, 1:] < alone.preference[0, 1:]).all()
    assert informed.novelty[0, 0] < alone.novelty[0, 0]

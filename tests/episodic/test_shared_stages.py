"""States of finite environments that stages share, and inputs that are products."""

import numpy as np
import pytest
import torch
from benchmarks.episodic.finite_problems import gridworld
from benchmarks.episodic.solving import exact_evaluation
from episodic_cases import states_equal

from gfucb import EpisodicGFUCB, InvalidInputError, LinearClass, with_actions
from gfucb.environments import combination_lock, tabular_mdps
from gfucb.episodic import evaluate_greedy
from gfucb.episodic.cell_clusters import fit_clusters
from gfucb.episodic.cell_counts import CellCounts
from gfucb.episodic.cell_values import StageValues
from gfucb.episodic.input_layout import InputLayout
from gfucb.episodic.observation_table import DistinctVectors
from gfucb.runs.episode_loop import play_episode

HORIZON, STATES = 8, 5


def chain(changes_with_stage=False, inputs=None):
    """A walk to the right end of a chain, where the last reward is; left is the other action."""
    transitions = np.zeros((HORIZON, STATES, 2, STATES))
    for stage in range(HORIZON):
        flip = stage % 2 if changes_with_stage else 0
        for state in range(STATES):
            transitions[stage, state, flip, max(state - 1, 0)] = 1.0
            transitions[stage, state, 1 - flip, min(state + 1, STATES - 1)] = 1.0
    rewards = np.zeros((HORIZON, STATES, 2))
    rewards[:, -1] = 1 / HORIZON
    return tabular_mdps([transitions] * 2, [rewards] * 2, inputs=inputs, value_range=(0.0, 1.0))


def trained(environment, episodes=12):
    agent = EpisodicGFUCB(2, HORIZON)
    for index in range(1, episodes + 1):
        play_episode(agent, environment.episode(index), HORIZON, 2)
    return agent


@pytest.mark.parametrize("inputs", [None, with_actions(torch.eye(STATES), 2)])
def test_stages_share_states_unless_data_tell_them_apart(inputs):
    for changes, is_shared in ((False, True), (True, False)):
        agent = trained(chain(changes, inputs))
        model = agent.learner.cells.model
        assert model.layout.is_factored and model.layout.is_product == (inputs is None)
        assert (model.num_shared == STATES) == is_shared


def test_few_episodes_share_nothing():
    few = trained(chain(), 7)  # of two tasks
    assert few.learner.cells.model.num_shared == 0


def test_shared_states_are_learned_once():
    environment = chain()
    agent = trained(environment)
    # Alone, each of the eight stages would have to try both actions in each of its states.
    found = evaluate_greedy(agent, environment, episodes=1).returns
    np.testing.assert_allclose(found, environment.optimal_values[0, 0, 0])


def square(size, horizon):
    """A walk from one corner of a square to the opposite one, where the only reward is."""
    number = size**2
    transitions, rewards = np.zeros((number, 4, number)), np.zeros((number, 4))
    for place in range(number):
        row, column = divmod(place, size)
        for action, (down, right) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
            moved = np.clip([row + down, column + right], 0, size - 1)
            transitions[place, action, moved[0] * size + moved[1]] = 1.0
    rewards[-1] = 1.0
    inputs = with_actions(torch.eye(number), 4)
    return tabular_mdps(
        [transitions], [rewards], horizon=horizon, inputs=inputs, value_range=(0.0, horizon)
    )


def test_what_is_unknown_is_tried_before_the_last_stage():
    """The last stage does not show what follows, and is the only one that reaches the goal."""
    horizon = 11
    environment = square(6, horizon)
    agent = EpisodicGFUCB(1, horizon, value_range=(0.0, horizon))
    for index in range(1, 61):
        play_episode(agent, environment.episode(index), horizon, 1)
    assert agent.learner.cells.model.num_shared == 36
    found = evaluate_greedy(agent, environment, episodes=1).returns
    np.testing.assert_allclose(found, environment.optimal_values[0, 0, 0])


def test_an_agent_with_shared_states_continues_from_its_state():
    environment = chain()
    agent = trained(environment, 9)
    assert agent.learner.cells.model.num_shared == STATES
    episode = environment.episode(50)
    tasks, candidates = episode.offered()
    agent.plan(candidates, tasks)
    for stage in range(3):
        decision = agent.decide(stage, candidates, tasks)
        outcome = episode.play(decision.actions)
        agent.observe(stage, decision, outcome.rewards, outcome.next_candidates, outcome.ended)
        candidates = outcome.next_candidates
    state = {name: tensor.clone() for name, tensor in agent.state().items()}
    restored = EpisodicGFUCB(2, HORIZON)
    restored.load_state(state)
    assert restored.learner.cells.model.num_shared and states_equal(state, restored.state())
    for stage in range(3, HORIZON):
        decisions = [each.decide(stage, candidates, tasks) for each in (agent, restored)]
        assert torch.equal(decisions[0].actions, decisions[1].actions)
        assert torch.equal(decisions[0].optimistic_values, decisions[1].optimistic_values)
    state["1/cells"] = state["1/cells"] + 1
    with pytest.raises(InvalidInputError, match="do not follow"):
        EpisodicGFUCB(2, HORIZON).load_state(state)


def test_products_of_observation_and_action_are_stored_as_observations():
    observations = np.random.default_rng(0).normal(size=(4, 3))
    products = np.einsum("rs,ab->rasb", observations, np.eye(2)).reshape(4, 2, 6)
    layout = InputLayout.of(products)
    assert layout.is_product and layout.is_factored and layout.accepts(products)
    np.testing.assert_array_equal(layout.keys(products)[:, 0], observations)
    np.testing.assert_array_equal(layout.keys_of_inputs(products[:, 1], 2), observations)
    np.testing.assert_array_equal(layout.candidates(observations, 2), products)
    changed = products.copy()
    changed[0, 0, 1] = 1.0
    assert not layout.accepts(changed) and not InputLayout.of(changed).is_factored


def test_zeros_of_both_signs_are_one_observation():
    vectors = DistinctVectors(2, np.dtype(np.float64))
    np.testing.assert_array_equal(vectors.add(np.array([[0.0, 1.0], [-0.0, 1.0]])), [0, 0])


def test_observations_without_any_noise_have_no_clusters_to_fit():
    assert fit_clusters([np.repeat([[0.0, 1.0], [1.0, 0.0]], 4, axis=0)]) is None
    environment = combination_lock(
        4, 3, num_tasks=2, noise_scale=0.0, emission="identity", seed=2100
    )
    agent = EpisodicGFUCB(2, 4)
    for index in range(1, 41):
        episode = environment.episode(index)
        play_episode(agent, episode, 4, 2)
    assert episode.reached_goal.all()


@pytest.mark.parametrize("representation", [None, LinearClass(4, 2)])
@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.float16, torch.bfloat16, torch.int64]
)
def test_observations_of_any_real_type_are_learned_from(dtype, representation):
    agent = EpisodicGFUCB(2, 2, representation)
    candidates = with_actions(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), 2).to(dtype)
    agent.plan(candidates)
    agent.observe(0, agent.decide(0, candidates), [0.0, 0.0], candidates)
    agent.observe(1, agent.decide(1, candidates), [0.0, 1.0])
    assert agent.learner.num_transitions == 4
    with pytest.raises(
        InvalidInputError, match=r"\[row, action, \*input\] = \[2, action, 4\], got"
    ):
        agent.observe(0, agent.decide(0, candidates), [0.0, 0.0], candidates[..., :2])


@pytest.mark.parametrize("value_range", [(-4.0, -3.0), None])
def test_rewards_below_zero_do_not_hide_the_goal(value_range):
    """A reward of -1 in every stage: the values of later stages exceed the sum of an episode."""
    environment = combination_lock(4, 3, num_tasks=2, seed=2100)
    agent = EpisodicGFUCB(2, 4, value_range=value_range)
    for index in range(1, 51):
        episode = environment.episode(index)
        tasks, candidates = episode.offered()
        agent.plan(candidates, tasks)
        for stage in range(4):
            tasks, candidates = episode.offered()
            decision = agent.decide(stage, candidates, tasks)
            outcome = episode.play(decision.actions)
            agent.observe(stage, decision, outcome.rewards - 1, outcome.next_candidates)
    assert episode.reached_goal.all()


def test_states_that_recur_are_not_merged_into_regions():
    """Coordinates of a grid, of which the stage tells where in its region a state is."""
    environment = gridworld(5, 9, num_tasks=3, seed=2000)
    agent = EpisodicGFUCB(3, 9, seed=2000)
    for index in range(1, 181):
        play_episode(agent, environment.episode(index), 9, 3)
    assert agent.learner.cells.model.num_shared == 26
    assert exact_evaluation(agent, environment).successes.all()


def test_of_equal_means_the_one_whose_rewards_come_first_is_best():
    # In state 0 action 0 stays, and action 1 goes to state 1, which pays 1 and ends.
    counts = CellCounts()
    zeros, pairs, next_states = np.zeros(4, dtype=np.int64), np.arange(4), np.array([0, 1, -1, -1])
    counts.add(zeros, pairs, next_states, np.array([0.0, 0.0, 1.0, 1.0]))
    means = {}
    for are_shared in (False, True):
        values = StageValues.after_the_last(1, 2)
        for _ in range(4):
            state_pairs = np.arange(4).reshape(2, 2)
            values = StageValues.of(
                counts, state_pairs, 4, values, (0.0, 1.0), are_shared=are_shared
            )
        means[are_shared] = values.means[0]
    np.testing.assert_array_equal(means[False], 1.0)
    assert means[True].argmax() >= 2 and means[True][1] > means[True][0] > 1 - 1e-5


def test_what_is_unknown_is_tried_early_where_stages_share_states():
    # In state 0 action 0 stays, and action 1 goes to state 1, where action 1 was never tried.
    counts, state_pairs = CellCounts(), np.arange(4).reshape(2, 2)
    zeros = np.zeros(3, dtype=np.int64)
    counts.add(zeros, np.arange(3), np.array([0, 1, 1]), np.zeros(3))
    gains = {}
    for are_shared in (False, True):
        values = StageValues.after_the_last(1, 2)
        for _ in range(5):
            values = StageValues.of(
                counts, state_pairs, 4, values, (0.0, 1.0), are_shared=are_shared
            )
        stays, goes = values.preference[0, :2]
        gains[are_shared] = goes - stays
    assert gains[False] < 0.001  # it can be reached later as well, up to the last stage
    assert gains[True] > 0.01

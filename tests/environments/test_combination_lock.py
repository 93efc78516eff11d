"""The combination lock of the literature: emission, latent MDP, exact values and gaps."""

import numpy as np
import pytest
import torch
from scipy.linalg import hadamard

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.environments import Emission, RichObservationMDPs, combination_lock, tabular_mdps
from gfucb.episodic import UCBVI, EpisodicEpsilonGreedy, lsvi_ucb
from gfucb.runs import CombinationLockConfig, EpisodicAgentConfig, make_agent, make_environment
from gfucb.runs.loop import play


def right_actions(environment):
    """The right action of each task, stage and latent state; any in the dead state."""
    return environment.latent.transitions[..., 2].argmin(-1)


def play_told(environment, policy, index):
    """Follow a policy [task, stage, state] that observes the latent state."""
    episode, tasks = environment.episode(index), np.arange(environment.num_tasks)
    returns = np.zeros(environment.num_tasks)
    for stage in range(environment.horizon):
        actions = torch.from_numpy(policy[tasks, stage, episode.states])
        returns += episode.play(actions).rewards.numpy()
    return returns, episode


def random_policy(environment, seed):
    shape = (environment.num_tasks, environment.horizon, 3)
    generator = random_stream(seed, "policy")
    return torch.randint(environment.num_actions, shape, generator=generator).numpy()


@pytest.mark.parametrize(("horizon", "dim"), [(6, 16), (12, 16), (13, 32), (25, 32), (100, 128)])
def test_observations_have_the_length_of_the_literature(horizon, dim):
    environment = combination_lock(horizon)
    assert environment.observation_dim == dim
    assert environment.episode(1).offered()[1].shape == (1, 10, dim + 10)


def test_an_observation_is_a_rotated_one_hot_state_and_stage_with_fresh_noise():
    environment = combination_lock(5, num_tasks=4, seed=2)
    episode = environment.episode(3)
    seen = []
    for stage in range(5):
        observations = episode.offered()[1][:, 0, :16].double().numpy()
        coordinates = observations @ hadamard(16) / 16
        expected = np.zeros((4, 16))
        expected[np.arange(4), episode.states] = 1
        expected[:, 3 + stage] = 1
        noise = coordinates - expected
        assert np.abs(noise[:, 9:]).max() < 1e-5  # only state and stage are noisy
        seen.append(noise[:, :9])
        episode.play(torch.zeros(4, dtype=torch.int64))
    assert 0.08 < np.std(seen) < 0.12
    assert len({round(float(x), 5) for x in np.ravel(seen)}) == 4 * 5 * 9


@pytest.mark.parametrize("emission", ["hadamard", "nonlinear", "identity"])
def test_emissions_separate_states_and_are_shared_by_tasks(emission):
    environment = combination_lock(6, num_tasks=3, emission=emission, seed=1)
    states, noise = np.repeat(np.arange(3), 50), random_stream(0, "noise")
    draws = torch.randn(150, 10, generator=noise, dtype=torch.float64).numpy()
    seen = environment.emission(states, 2, draws)
    centers = environment.emission(np.arange(3), 2, np.zeros((3, 10)))
    nearest = ((seen[:, None] - centers) ** 2).sum(-1).argmin(1)
    assert (nearest == states).mean() > 0.98
    other = combination_lock(6, emission=emission, seed=5, emission_seed=1)
    assert np.array_equal(other.emission(np.arange(3), 2, np.zeros((3, 10))), centers)


def test_a_right_code_pays_one_and_a_wrong_action_pays_the_anti_reward_at_random():
    environment = combination_lock(4, num_tasks=3, seed=7)
    right = right_actions(environment)
    assert np.allclose(environment.optimal_values[:, :2], 1.0)
    assert np.allclose(environment.policy_values(right)[:, :2], 1.0)
    wrong, paid = (right + 1) % 10, []
    for index in range(1, 101):
        returns, episode = play_told(environment, right, index)
        assert (returns == 1).all() and episode.reached_goal.all() and not episode.gaps.any()
        returns, episode = play_told(environment, wrong, index)
        paid.append(returns)
        assert (episode.states == 2).all() and np.allclose(episode.gaps, 0.95)
    assert set(np.unique(paid)) == {0.0, 0.1}
    assert 0.42 < np.mean(np.array(paid) > 0) < 0.58


def test_right_actions_switch_between_the_good_states():
    environment = combination_lock(30, num_tasks=10, switch_probability=0.25, seed=1)
    right = right_actions(environment)
    episode, states = environment.episode(1), []
    for stage in range(30):
        states.append(episode.states)
        episode.play(torch.from_numpy(right[np.arange(10), stage, episode.states]))
    switched = np.mean(np.diff(states, axis=0) != 0)
    assert 0.17 < switched < 0.33


def test_dense_locks_pay_right_actions():
    environment = combination_lock(5, dense=True, num_tasks=2, seed=3)
    right = right_actions(environment)
    returns, episode = play_told(environment, right, 1)
    assert np.allclose(returns, 1.4) and environment.values_lie_in == pytest.approx((0, 1.4))
    assert np.allclose(environment.optimal_values[:, :2], 1.4) and not episode.gaps.any()
    assert play_told(environment, (right + 1) % 10, 1)[0].max() == 0


@pytest.mark.parametrize("temperature", [None, 0.2])
def test_the_mean_of_the_gaps_is_the_regret_of_a_policy(temperature):
    environment = combination_lock(2, 3, num_tasks=40, temperature=temperature, seed=0)
    policy = random_policy(environment, 1)
    exact = environment.policy_values(policy)
    optimal, start = environment.optimal_values, environment.latent.start
    regret = ((optimal - exact) * start).sum(1).mean()
    gaps, returns = [], []
    for index in range(1, 151):
        earned, episode = play_told(environment, policy, index)
        gaps.append(episode.gaps)
        returns.append(earned)
    # A policy that is told the state is better than its gaps if observations do not show it.
    assert np.mean(returns) == pytest.approx((exact * start).sum(1).mean(), abs=0.02)
    if temperature is None:
        assert np.mean(gaps) == pytest.approx(regret, abs=0.02)


def test_without_blocks_the_optimal_policy_is_that_of_the_state_probabilities():
    environment = combination_lock(3, 3, num_tasks=30, temperature=0.5, seed=0)
    optimal = float((environment.latent.start * environment.optimal_values).sum(1).mean())
    shown, returns, gaps = environment.with_true_features(), [], []
    assert isinstance(shown, RichObservationMDPs)
    values = environment.optimal_action_values
    for index in range(1, 301):
        episode, total = shown.episode(index), np.zeros(30)
        for stage in range(3):
            features = episode.offered()[1].numpy()  # [task, action, state * action]
            probabilities = features.reshape(30, 3, 3, 3).sum((1, 3))
            actions = (probabilities[:, None] @ values[:, stage])[:, 0].argmax(-1)
            total += episode.play(torch.from_numpy(actions)).rewards.numpy()
        returns.append(total)
        gaps.append(episode.gaps)
    assert optimal < 0.9  # the state is not known
    assert np.mean(returns) == pytest.approx(optimal, abs=0.02)
    assert np.abs(gaps).max() < 1e-12


def test_an_oracle_sees_the_same_draws():
    environment = combination_lock(4, 3, num_tasks=2, seed=4)
    latent = environment.with_true_features()
    assert latent is environment.latent
    for index in (1, 2):
        seen, told = environment.episode(index), latent.episode(index)
        for action in (0, 1, 2, 0):
            actions = torch.full((2,), action)
            assert np.array_equal(seen.states, told.states)
            assert torch.equal(seen.play(actions).rewards, told.play(actions).rewards)


def test_the_loop_reports_gaps_and_goals_and_oracles_open_the_lock():
    environment = combination_lock(3, 4, num_tasks=2, seed=1)
    uniform = EpisodicEpsilonGreedy(UCBVI(2, 3, value_range=(0, 1)), epsilon=1.0, seed=0)
    rows = list(play(uniform, environment, num_rounds=30))
    assert {"reward", "regret", "cumulative_regret", "goals"} <= set(rows[0])
    assert np.mean([row["regret"] for row in rows]) > 0.7
    oracle = lsvi_ucb(2, 3, beta=0.3, ridge=0.1, value_range=(0, 1))
    rows = list(play(oracle, environment, num_rounds=80, uses_true_features=True))
    assert np.mean([row["goals"] for row in rows[-10:]]) == 1.0


def test_it_is_registered_with_its_settings():
    config = CombinationLockConfig(num_tasks=2, horizon=3, num_actions=4, dense=True)
    environment = make_environment(config, 5)
    assert environment.values_lie_in[1] == pytest.approx(1.2) and environment.seed == 5
    for name in ("gfucb-mdp", "oracle-lsvi-ucb", "fitted-q", "randomised-lsvi", "ucbvi"):
        agent = make_agent(EpisodicAgentConfig(name=name), environment, 0)
        assert agent.num_tasks == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: combination_lock(0), "horizon must be an integer of at least 1"),
        (lambda: combination_lock(3, 1), "num_actions must be an integer of at least 2"),
        (lambda: combination_lock(3, emission="photo"), "'hadamard', 'nonlinear' or 'identity'"),
        (lambda: combination_lock(3, temperature=0.0), "temperature must be positive"),
        (lambda: combination_lock(3, switch_probability=1.5), "switch_probability must lie"),
        (lambda: combination_lock(3, noise_scale=-1), "noise_scale must be"),
        (lambda: RichObservationMDPs(combination_lock(3).latent, Emission(3, 4)), "must agree"),
        (
            lambda: tabular_mdps(
                [np.eye(2)[:, None]],
                [[[0.5], [0.5]]],
                horizon=1,
                reward_noise="bernoulli",
                high_rewards=np.full((1, 1, 2, 1), 0.4),
            ),
            "high_rewards must be at least the mean rewards",
        ),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()

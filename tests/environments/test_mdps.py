"""Finite MDPs: exact values, paired draws, and refused tables."""

import numpy as np
import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.environments import linear_mdps, rich_lock, tabular_lock
from gfucb.theory import (
    LinearValueClass,
    inherent_bellman_error,
    multitask_bellman_error,
    stage_tables,
)

ENVIRONMENTS = {
    "lock": lambda seed: tabular_lock(horizon=4, num_tasks=2, num_actions=3, seed=seed),
    "rich lock": lambda seed: rich_lock(horizon=3, num_tasks=2, bank_size=3, seed=seed),
    "linear": lambda seed: linear_mdps(num_tasks=2, horizon=3, num_states=6, seed=seed),
    "mixed": lambda seed: linear_mdps(num_tasks=2, horizon=3, num_states=6, mix=0.3, seed=seed),
}


def naive_values(environment, task, policy=None):
    """Backward induction by loops over states, actions and next states."""
    following = [0.0] * environment.num_states
    for stage in reversed(range(environment.horizon)):
        values = []
        for state in range(environment.num_states):
            by_action = []
            for action in range(environment.num_actions):
                total = environment.rewards[task, stage, state, action]
                for successor in range(environment.num_states):
                    chance = environment.transitions[task, stage, state, action, successor]
                    total += chance * following[successor]
                by_action.append(total)
            best = max(by_action) if policy is None else by_action[policy[task, stage, state]]
            values.append(best)
        following = values
    return following


def random_policy(environment, seed):
    shape = (environment.num_tasks, environment.horizon, environment.num_states)
    generator = random_stream(seed, "policy")
    return torch.randint(environment.num_actions, shape, generator=generator).numpy()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_values_equal_an_independent_backward_induction(name):
    environment = ENVIRONMENTS[name](3)
    policy = random_policy(environment, 1)
    evaluated = environment.policy_values(policy)
    for task in range(environment.num_tasks):
        np.testing.assert_allclose(
            environment.optimal_values[task, 0], naive_values(environment, task)
        )
        np.testing.assert_allclose(evaluated[task], naive_values(environment, task, policy))
    assert (evaluated <= environment.optimal_values[:, 0] + 1e-12).all()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_optimal_policy_has_no_regret_and_no_gap(name):
    environment = ENVIRONMENTS[name](5)
    policy = environment.optimal_action_values.argmax(-1)
    np.testing.assert_allclose(environment.policy_values(policy), environment.optimal_values[:, 0])
    episode = environment.episode(1)
    for stage in range(environment.horizon):
        episode.play(torch.from_numpy(policy[[0, 1], stage, episode.states]))
    np.testing.assert_allclose(episode.gaps, 0, atol=1e-12)


def test_stochastic_policy_is_evaluated():
    environment = ENVIRONMENTS["linear"](0)
    policy = random_policy(environment, 2)
    table = np.eye(environment.num_actions)[policy]
    np.testing.assert_allclose(environment.policy_values(table), environment.policy_values(policy))
    half = 0.5 * table + 0.5 * np.eye(environment.num_actions)[random_policy(environment, 3)]
    assert environment.policy_values(half).shape == (2, 6)


def test_mean_of_the_gaps_of_an_episode_is_the_regret():
    environment = tabular_lock(horizon=3, num_actions=2, seed=1)
    policy = random_policy(environment, 0)
    policy[:, :, 0] = environment.optimal_action_values.argmax(-1)[:, :, 0]
    gaps, regrets = [], []
    values = environment.policy_values(policy)
    for index in range(1, 2001):
        episode = environment.episode(index)
        first = episode.first_states[0]
        regrets.append(environment.optimal_values[0, 0, first] - values[0, first])
        for stage in range(3):
            episode.play(torch.from_numpy(policy[[0], stage, episode.states]))
        gaps.append(episode.gaps[0])
    error = np.std(gaps) / np.sqrt(len(gaps))
    assert np.std(regrets) > 0 or error > 0
    assert abs(np.mean(gaps) - np.mean(regrets)) < 4 * error


def test_rewards_have_the_frequencies_of_the_tables():
    environment = tabular_lock(horizon=1, num_actions=2, seed=0)
    right = int(environment.goal[0, 0, 0].argmax())
    rewards = [
        float(environment.episode(index).play(torch.tensor([right])).rewards[0])
        for index in range(1, 401)
        if environment.episode(index).states[0] == 0
    ]
    assert set(rewards) == {0.0, 1.0}
    assert abs(np.mean(rewards) - 0.5) < 4 * 0.5 / np.sqrt(len(rewards))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_episode_is_a_function_of_seed_and_index(name):
    def trace(environment, index):
        episode, seen = environment.episode(index), []
        for _ in range(environment.horizon):
            outcome = episode.play(torch.zeros(2, dtype=torch.int64))
            seen.append((episode.states.tolist(), outcome.rewards.tolist()))
        return seen, bool(outcome.ended.all())

    environment = ENVIRONMENTS[name](0)
    first, ended = trace(environment, 1)
    trace(environment, 2)
    assert ended and trace(environment, 1)[0] == first == trace(ENVIRONMENTS[name](0), 1)[0]
    many = [trace(environment, index)[0] for index in range(1, 8)]
    assert any(one != many[0] for one in many)
    with pytest.raises(InvalidInputError, match="has ended"):
        episode = environment.episode(1)
        for _ in range(environment.horizon + 1):
            episode.play(torch.zeros(2, dtype=torch.int64))


def test_lock_opens_only_for_its_code():
    environment = tabular_lock(horizon=6, num_tasks=3, num_actions=3, seed=2)
    np.testing.assert_allclose(environment.optimal_values[:, 0, :2], 0.5)
    code = environment.optimal_action_values.argmax(-1)
    for stage in range(6):
        wrong = code.copy()
        wrong[:, stage] = (wrong[:, stage] + 1) % 3
        np.testing.assert_allclose(environment.policy_values(wrong)[:, :2], 0.1)
    assert len({code[task].tobytes() for task in range(3)}) == 3


def test_rich_lock_emissions_are_shared_and_decodable():
    environment = rich_lock(num_tasks=3, bank_size=8, seed=4)
    observations = environment.inputs[:, 0, :16].double()
    # The inverse rotation recovers the latent state; no single coordinate does.
    from scipy.linalg import hadamard

    coordinates = observations @ torch.from_numpy(hadamard(16) / 4.0)
    assert (coordinates[:, :3].argmax(1).numpy() == environment.decoding).all()
    np.testing.assert_allclose(environment.optimal_values[:, 0, environment.decoding != 2], 0.5)
    latent = environment.true_features.argmax(-1)[:, 0] // environment.num_actions
    assert (latent.numpy() == environment.decoding).all()


def test_linear_mdps_have_zero_bellman_error():
    environment = linear_mdps(
        num_tasks=2, horizon=2, num_states=4, num_actions=2, feature_dim=2, seed=1
    )
    current = LinearValueClass(environment.true_features.numpy(), head_bound=2.0)
    following = LinearValueClass(environment.true_features.numpy(), head_bound=1.0)
    for stage in stage_tables(environment.transitions, environment.rewards, 0):
        assert inherent_bellman_error(stage, current, following).error < 1e-8
    shared = multitask_bellman_error(
        stage_tables(environment.transitions, environment.rewards, 0), [current], [following]
    )
    assert shared.upper < 1e-8


def test_mix_scales_the_bellman_error():
    errors = []
    for mix in (0.0, 0.2, 0.4):
        environment = linear_mdps(
            num_tasks=1,
            horizon=2,
            num_states=4,
            num_actions=2,
            feature_dim=2,
            mix=mix,
            seed=1,
        )
        features = environment.true_features.numpy()
        following = LinearValueClass(features, head_bound=1.0, value_range=0.5)
        stage = stage_tables(environment.transitions, environment.rewards, 0)[0]
        errors.append(inherent_bellman_error(stage, LinearValueClass(features), following).error)
    assert errors[0] < 1e-8 < 0.01 < errors[1] <= 0.2
    assert errors[2] == pytest.approx(2 * errors[1], rel=1e-6)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, -1], r"numbered 0 to 2, got \[0, -1\]"),
        ([3, 0], r"numbered 0 to 2, got \[3, 0\]"),
        ([0], r"shape \[2\].* got int64 of shape \[1\]"),
        ([0, 0, 0], r"got int64 of shape \[3\]"),
        ([[0, 0]], r"got int64 of shape \[1, 2\]"),
        ([0.0, 1.0], "integers .* got float32"),
        ([True, False], "integers .* got bool"),
    ],
)
def test_invalid_actions_are_refused_before_any_change(actions, message):
    environment = tabular_lock(horizon=4, num_tasks=2, num_actions=3, seed=1)
    episode, twin = environment.episode(1), environment.episode(1)
    with pytest.raises(InvalidInputError, match=message):
        episode.play(torch.tensor(actions))
    assert episode.stage == 0 and (episode.gaps == 0).all() and not episode.reached_goal.any()
    for _ in range(4):
        outcome, other = (e.play(torch.tensor([2, 0])) for e in (episode, twin))
        assert torch.equal(outcome.rewards, other.rewards)
    assert (episode.states == twin.states).all() and (episode.gaps == twin.gaps).all()


def test_small_integer_types_are_valid_actions():
    environment = tabular_lock(horizon=2, num_tasks=2, num_actions=3, seed=1)
    for dtype in (torch.int8, torch.uint8, torch.int32):
        environment.episode(1).play(torch.tensor([2, 0], dtype=dtype))
        with pytest.raises(InvalidInputError, match="numbered 0 to 2"):
            environment.episode(1).play(torch.tensor([2, -1]).to(dtype))

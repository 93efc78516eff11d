"""Gymnasium environments as tasks, and tasks as Gymnasium environments."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import gfucb
from gfucb.core.errors import InvalidInputError
from gfucb.environments import rich_lock, tabular_lock, with_actions
from gfucb.environments.gymnasium import (
    REGISTERED,
    GymnasiumMDPs,
    TaskEnv,
    register_environments,
)
from gfucb.models.nn.actionwise import Actionwise
from gfucb.runs.loop import play


def lakes(horizon=12, seed=0):
    maps = (["SF", "FG"], ["SFF", "HFG"])
    made = [gymnasium.make("FrozenLake-v1", desc=m, is_slippery=False) for m in maps[:1] * 2]
    return GymnasiumMDPs(made, horizon=horizon, seed=seed)


def test_two_frozen_lakes_are_learned():
    environment = lakes(horizon=4)
    agent = gfucb.episodic.lsvi_ucb(environment.num_tasks, environment.horizon)
    rows = list(play(agent, environment, num_rounds=60))
    assert "regret" not in rows[0]
    assert np.mean([row["reward"] for row in rows[-10:]]) == 1.0
    assert np.mean([row["reward"] for row in rows[:5]]) < 1.0


def binned(observation):
    """Angle and angular velocity of the pole in three bins each: nine cases, one-hot."""
    lean, turn = (
        np.digitize(observation[2], [-0.03, 0.03]),
        np.digitize(observation[3], [-0.3, 0.3]),
    )
    return np.eye(9)[3 * lean + turn]


@pytest.mark.slow
def test_cart_pole_is_learned():
    made = [gymnasium.make("CartPole-v1") for _ in range(2)]
    environment = GymnasiumMDPs(made, horizon=15, observe=binned)
    agent = gfucb.EpisodicGFUCB(
        2,
        15,
        gfucb.FiniteClass([Actionwise(torch.nn.Identity(), 2)]),
        value_range=(0.0, 15.0),
        reward_range=(0.0, 1.0),
    )
    returns = [row["reward"] for row in play(agent, environment, num_rounds=50)]
    # With a constant action the pole falls after nine or ten steps.
    assert np.mean(returns[:3]) < 11
    assert np.mean(returns[-15:]) > 13.5


def test_episodes_are_functions_of_seed_and_index():
    def trace(environment, index):
        episode = environment.episode(index)
        seen = [episode.offered()[1]]
        while len(episode.offered()[0]):
            outcome = episode.play(torch.ones(len(episode.offered()[0]), dtype=torch.int64))
            seen.append(outcome.rewards)
        return seen

    made = [gymnasium.make("CartPole-v1") for _ in range(2)]
    environment = GymnasiumMDPs(made, horizon=40)
    first, again, other = trace(environment, 1), trace(environment, 1), trace(environment, 2)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])
    assert not torch.equal(first[0][0], first[0][1])


def test_tasks_leave_the_episode_when_they_end():
    environment = lakes()
    episode = environment.episode(1)
    episode.play(torch.tensor([1, 0]))  # down; against the wall
    outcome = episode.play(torch.tensor([2, 0]))  # right, to the goal; the wall again
    assert outcome.rewards.tolist() == [1.0, 0.0] and outcome.ended.tolist() == [True, False]
    assert episode.offered()[0].tolist() == [1]
    for _ in range(10):
        outcome = episode.play(torch.tensor([0]))
    assert outcome.ended.tolist() == [True] and len(episode.offered()[0]) == 0
    with pytest.raises(InvalidInputError, match="ended in all tasks"):
        episode.play(torch.tensor([]))


@pytest.mark.parametrize("name", REGISTERED)
def test_registered_environments_pass_the_gymnasium_check(name):
    register_environments()
    check_env(gymnasium.make(name, disable_env_checker=True).unwrapped, skip_render_check=True)


def test_task_env_follows_the_tables():
    environment = tabular_lock(horizon=3, num_tasks=2, seed=1)
    env = TaskEnv(environment, task=1)
    state, _ = env.reset(seed=0)
    total = 0.0
    for stage in range(3):
        action = int(environment.optimal_action_values[1, stage, state].argmax())
        state, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        assert not terminated and truncated == (stage == 2)
    assert total in (0.0, 1.0)
    with pytest.raises(InvalidInputError, match="ended after 3 steps"):
        env.step(0)
    with pytest.raises(InvalidInputError, match="numbered 0 to 1"):
        TaskEnv(environment, task=2)


def test_registered_environments_as_tasks():
    register_environments()
    made = [gymnasium.make("gfucb/Lock-v0", horizon=3, num_tasks=2, task=i) for i in range(2)]
    environment = GymnasiumMDPs(made, horizon=3)
    agent = gfucb.episodic.lsvi_ucb(2, 3)
    rewards = [row["reward"] for row in play(agent, environment, num_rounds=40)]
    assert np.mean(rewards[-20:]) > 0.3


def test_unsuitable_environments_are_refused():
    pendulum = gymnasium.make("Pendulum-v1")
    with pytest.raises(InvalidInputError, match=r"discrete actions .* got Box"):
        GymnasiumMDPs([pendulum], horizon=5)
    lake, pole = gymnasium.make("FrozenLake-v1"), gymnasium.make("CartPole-v1")
    with pytest.raises(InvalidInputError, match=r"same actions, got environments with \[4, 2\]"):
        GymnasiumMDPs([lake, pole], horizon=5)
    with pytest.raises(InvalidInputError, match="horizon must be an integer of at least 1"):
        GymnasiumMDPs([lake], horizon=0)
    with pytest.raises(InvalidInputError, match="at least one environment"):
        GymnasiumMDPs([], horizon=3)
    for given, message in (
        (lake, "a list of environments, one object for each task, got TimeLimit"),
        (["FrozenLake-v1"], r"pass gymnasium.make\('FrozenLake-v1'\)"),
        ([type(lake.unwrapped)], "make an object of it"),
        ([object()], "task 0 must be a gymnasium.Env, got"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            GymnasiumMDPs(given, horizon=3)
    with pytest.raises(InvalidInputError, match=r"got TimeLimit; pass .* as GymnasiumMDPs"):
        gfucb.compare(lake, ["gfucb"])


class Observer(gymnasium.Env):
    """Shows what it is given."""

    def __init__(self, space, shown=None, step=None):
        self.observation_space, self.action_space = space, spaces.Discrete(2)
        self.shown, self.returned = shown, step

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.shown, {}

    def step(self, action):
        return self.returned


def test_observations_of_several_parts_are_flattened():
    parts = spaces.Dict({"state": spaces.Discrete(3), "speed": spaces.Box(-1, 1, (2,))})
    shown = {"state": 2, "speed": np.array([0.5, -0.5], dtype=np.float32)}
    candidates = GymnasiumMDPs([Observer(parts, shown)], horizon=2).episode(1).offered()[1]
    assert candidates[0, 1].tolist() == [0.5, -0.5, 0.0, 0.0, 1.0, 0.0, 1.0]


def test_observations_and_calls_of_another_form_are_refused():
    three = spaces.Discrete(3)
    for space, shown in ((three, 7), (three, -1), (three, None), (spaces.Box(0, 1, (2,)), "x")):
        environment = GymnasiumMDPs([Observer(space, shown)], horizon=2)
        with pytest.raises(InvalidInputError, match=f"the observation {shown}|got 'x' as an"):
            environment.episode(1)
    with pytest.raises(InvalidInputError, match="observe="):
        GymnasiumMDPs([Observer(spaces.Text(3))], horizon=2)
    episode = GymnasiumMDPs([Observer(three, 0, (0, 1.0, True, {}))], horizon=2).episode(1)
    with pytest.raises(InvalidInputError, match=r"interface reset.*returned \(0, 1.0, True, {}\)"):
        episode.play(torch.tensor([0]))


def lake(size):
    return gymnasium.make("FrozenLake-v1", map_name=size, is_slippery=False)


class Drifting(gymnasium.Env):
    """An environment whose observations are not those of its space."""

    action_space = spaces.Discrete(2)

    def __init__(self, space, *observations):
        self.observation_space, self.observations = space, observations

    def reset(self, *, seed=None, options=None):
        return self.observations[0], {}

    def step(self, action):
        return self.observations[1], 0.0, False, False, {}


def test_observations_that_are_not_those_of_the_space_are_refused():
    box, both = spaces.Box(0, 1, (3,)), spaces.Dict({"a": spaces.Discrete(2)})
    made = [Drifting(box, np.zeros(3), np.zeros(3)), Drifting(box, np.zeros(3), np.zeros(4))]
    episode = GymnasiumMDPs(made, horizon=3).episode(1)
    with pytest.raises(InvalidInputError, match="task 1 must give observations of one length"):
        episode.play(torch.zeros(2, dtype=torch.int64))
    for wrong in (np.zeros(3), {"b": 1}, {"a": None}):
        with pytest.raises(InvalidInputError, match="as an observation of Dict"):
            GymnasiumMDPs([Drifting(both, wrong)], horizon=3).episode(1)


def test_different_observations_are_refused():
    with pytest.raises(InvalidInputError, match=r"Discrete\(16\) in task 0 and Discrete\(64\) in"):
        GymnasiumMDPs([lake("4x4"), lake("8x8")], horizon=5)
    with pytest.raises(InvalidInputError, match="pass observe="):
        GymnasiumMDPs([lake("8x8"), lake("8x8"), lake("4x4")], horizon=5)
    car, acrobot = gymnasium.make("MountainCar-v0"), gymnasium.make("Acrobot-v1")
    with pytest.raises(InvalidInputError, match="same kind of observations"):
        GymnasiumMDPs([car, acrobot], horizon=5)


def test_observe_maps_different_observations_to_one_length():
    car, acrobot = gymnasium.make("MountainCar-v0"), gymnasium.make("Acrobot-v1")
    environment = GymnasiumMDPs(
        [car, acrobot], horizon=5, observe=lambda observation: observation[:2]
    )
    assert tuple(environment.episode(1).offered()[1].shape) == (2, 3, 5)
    uneven = GymnasiumMDPs([car, acrobot], horizon=5, observe=lambda observation: observation)
    with pytest.raises(InvalidInputError, match=r"one length, .* \[\(3, 5\), \(3, 9\)\]"):
        uneven.episode(1)


def test_one_object_for_two_tasks_is_refused():
    pole = gymnasium.make("CartPole-v1")
    with pytest.raises(InvalidInputError, match="same one for tasks 0 and 2"):
        GymnasiumMDPs([pole, gymnasium.make("CartPole-v1"), pole], horizon=5)
    with pytest.raises(InvalidInputError, match="same one for tasks 0 and 1"):
        GymnasiumMDPs([pole, gymnasium.wrappers.TimeLimit(pole.unwrapped, 9)], horizon=5)


@pytest.mark.parametrize("horizon", [2.5, 0, -1, True, "3", None])
def test_horizon_must_be_a_positive_integer(horizon):
    with pytest.raises(InvalidInputError, match="horizon must be an integer of at least 1"):
        GymnasiumMDPs([lake("4x4")], horizon=horizon)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([1, 4], r"numbered 0 to 3, got \[1, 4\]"),
        ([1, -1], "numbered 0 to 3"),
        ([1], r"shape \[2\].* got int64 of shape \[1\]"),
        ([1, 1, 1], r"got int64 of shape \[3\]"),
        ([1.0, 1.0], "integers .* got float32"),
    ],
)
def test_invalid_actions_are_refused_before_any_step(actions, message):
    environment = lakes()
    episode = environment.episode(1)
    before = episode.offered()[1]
    with pytest.raises(InvalidInputError, match=message):
        episode.play(torch.tensor(actions))
    assert episode.stage == 0 and torch.equal(episode.offered()[1], before)
    assert [env.unwrapped.s for env in environment.environments] == [0, 0]


@pytest.mark.parametrize("action", [-1, 2, 0.5, "left", None])
def test_task_env_refuses_invalid_actions(action):
    environment = tabular_lock(horizon=3, num_tasks=2, seed=1)
    env, twin = TaskEnv(environment), TaskEnv(environment)
    env.reset(seed=0), twin.reset(seed=0)
    with pytest.raises(InvalidInputError, match=r"integers from 0 to 1, got .*sample\(\)"):
        env.step(action)
    for _ in range(3):
        assert env.step(np.int64(1)) == twin.step(1)


def test_task_env_of_a_rich_lock_emits_observations():
    environment = rich_lock(horizon=3, num_tasks=2, observation_dim=8, bank_size=4, seed=0)
    env = TaskEnv(environment, task=1)
    seen, _ = env.reset(seed=0)
    assert seen.shape == (8,) and env.observation_space.contains(seen)
    offered = with_actions(torch.from_numpy(seen)[None], environment.num_actions)
    states = (environment.inputs == offered).flatten(1).all(1).nonzero()
    assert len(states) == 1  # an observation of exactly one state of the environment
    check_env(env, skip_render_check=True)


@pytest.mark.parametrize("temperature", [None, 0.2])
def test_task_env_of_a_combination_lock_emits_fresh_observations(temperature):
    register_environments()
    settings = {"horizon": 4, "num_tasks": 2, "task": 1, "temperature": temperature}
    env = gymnasium.make("gfucb/CombinationLock-v0", **settings).unwrapped
    first, _ = env.reset(seed=0)
    again, _ = env.reset()
    assert first.shape == (8,) and not np.array_equal(first, again)
    check_env(env, skip_render_check=True)
    env.reset(seed=1)
    rewards = [env.step(0)[1:4] for _ in range(4)]
    assert [truncated for _, _, truncated in rewards] == [False, False, False, True]
    assert {reward for reward, _, _ in rewards} <= {0.0, 0.1, 1.0}


class PaysNothing(gymnasium.Env):
    observation_space, action_space = spaces.Discrete(1), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, None, False, False, {}


def test_rewards_that_are_no_numbers_name_the_task():
    episode = GymnasiumMDPs([PaysNothing()], horizon=2).episode(1)
    with pytest.raises(InvalidInputError, match="task 0 must give finite numbers as rewards"):
        episode.play(torch.tensor([0]))


def test_agents_with_fewer_stages_and_bare_environments_are_refused_before_the_first_episode():
    agent = gfucb.EpisodicGFUCB(num_tasks=1, horizon=5, seed=0)
    with pytest.raises(InvalidInputError, match="up to 8 stages, but the agent plans 5"):
        list(play(agent, GymnasiumMDPs([lake("4x4")], horizon=8), num_rounds=1))
    assert agent.diagnostics()["plans"] == 0
    with pytest.raises(InvalidInputError, match=r"got \w+; pass environments of Gymnasium as"):
        list(play(agent, lake("4x4"), num_rounds=1))
    with pytest.raises(InvalidInputError, match=r"pass value_range=\(low, high\) to it"):
        gfucb.compare(GymnasiumMDPs([lake("4x4")], 8), ["lsvi-ucb"], seeds=[0], num_rounds=1)

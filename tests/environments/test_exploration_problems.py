"""Problems of bsuite as finite MDPs, and mountain cars with a fixed horizon."""

import numpy as np
import pytest
import torch

from gfucb.checks import check_episodic_environment
from gfucb.core.errors import InvalidInputError
from gfucb.environments import deep_sea, discounting_chain, umbrella_chain
from gfucb.episodic import LSVIUCB, evaluate_greedy
from gfucb.runs import ENVIRONMENTS, EpisodicAgentConfig, make_agent, make_environment
from gfucb.runs.loop import play

PROBLEMS = {
    "deep sea": lambda seed: deep_sea(4, num_tasks=2, seed=seed),
    "stochastic deep sea": lambda seed: deep_sea(4, num_tasks=2, stochastic=True, seed=seed),
    "umbrella chain": lambda seed: umbrella_chain(4, num_tasks=2, seed=seed),
    "discounting chain": lambda seed: discounting_chain(10, num_tasks=2, seed=seed),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_they_pass_the_check(name):
    check_episodic_environment(PROBLEMS[name])


def follow(environment, policy, index):
    episode, tasks = environment.episode(index), np.arange(environment.num_tasks)
    total = np.zeros(environment.num_tasks)
    for stage in range(environment.horizon):
        actions = torch.from_numpy(policy[tasks, stage, episode.states])
        total += episode.play(actions).rewards.numpy()
    return total, episode


def test_deep_sea_rewards_only_the_right_actions():
    environment = deep_sea(6, num_tasks=3, seed=1)
    assert np.allclose(environment.optimal_values[:, 0, 0], 0.99)
    best = environment.optimal_action_values.argmax(-1)
    total, episode = follow(environment, best, 1)
    assert np.allclose(total, 0.99) and episode.reached_goal.all()
    assert (episode.states == 5).all()
    for stage in range(6):  # any wrong action on the way loses the treasure
        wrong = best.copy()
        wrong[:, stage] = 1 - wrong[:, stage]
        total, episode = follow(environment, wrong, 1)
        assert (total <= 0).all() and not episode.reached_goal.any()
    maps = environment.rewards[..., 0] < 0
    assert len({m.tobytes() for m in maps}) == 3  # tasks differ


def test_stochastic_deep_sea_fails_at_times_and_has_noise_in_the_corners():
    size = 5
    environment = deep_sea(size, num_tasks=40, stochastic=True, seed=0)
    arrives = (1 - 1 / size) ** (size - 1)  # the last "right" pays before it moves
    # After a failure it saves the cost of further moves, which bsuite does not count.
    optimal = environment.optimal_values[:, 0, 0]
    assert (arrives - 0.01 < optimal).all() and (optimal < arrives).all()
    best = environment.optimal_action_values.argmax(-1)
    played = [follow(environment, best, index) for index in range(1, 41)]
    reached = np.mean([episode.reached_goal for _, episode in played])
    assert reached == pytest.approx(arrives, abs=0.05)
    totals = np.stack([total for total, _ in played])[
        np.stack([episode.reached_goal for _, episode in played])
    ]
    assert 0.85 < totals.std() < 1.15


def test_the_umbrella_is_decided_by_the_first_action():
    environment = umbrella_chain(5, num_tasks=6, seed=2)
    assert np.allclose(environment.optimal_values[:, 0], 1.0)
    best = environment.optimal_action_values.argmax(-1)
    totals = []
    for index in range(1, 61):
        total, episode = follow(environment, best, index)
        totals.append(total)
        assert episode.reached_goal.all()
        wrong = best.copy()
        wrong[:, 0] = 1 - wrong[:, 0]
        assert not follow(environment, wrong, index)[1].reached_goal.any()
        wrong = best.copy()
        wrong[:, 1:] = 1 - wrong[:, 1:]  # later actions have no effect
        assert np.array_equal(follow(environment, wrong, index)[0], total)
    assert np.mean(totals) == pytest.approx(1.0, abs=0.3)  # noise of 4 rewards
    assert set(np.unique(totals)) == {-3.0, -1.0, 1.0, 3.0, 5.0}
    takes = environment.transitions[:, 0, 0, 0].argmax(-1)
    assert set(takes) == {0, 1}  # the action that takes it depends on the task


def test_the_chains_of_different_delays_pay_once():
    environment = discounting_chain(100, num_tasks=5, seed=3)
    assert np.allclose(environment.optimal_values[:, 0, 0], 1.1)
    times = []
    for chain in range(5):
        policy = np.full((5, 100, 6), chain)
        episode, rewards = environment.episode(1), []
        for _ in range(100):
            rewards.append(episode.play(torch.from_numpy(policy[:, 0, 0])).rewards.numpy())
        paid = np.array(rewards)
        assert ((paid > 0).sum(0) == 1).all()
        assert np.allclose(paid.sum(0), np.where(episode.reached_goal, 1.1, 1.0))
        times.append(int(paid[:, 0].argmax()) + 1)
    assert times == [1, 3, 10, 30, 100]


def test_optimism_finds_the_treasure():
    environment = deep_sea(5, num_tasks=2, seed=0)
    agent = LSVIUCB(2, 5, beta=0.3, ridge=0.1)
    list(play(agent, environment, num_rounds=60, uses_true_features=True))
    from gfucb.runs.policy_evaluator import with_true_features

    evaluation = evaluate_greedy(agent, with_true_features(environment), episodes=3)
    assert evaluation.success_rate == 1.0 and evaluation.mean_return == pytest.approx(0.99)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: deep_sea(1), "size must be an integer of at least 2"),
        (lambda: deep_sea(3, stochastic=1), "stochastic must be True or False"),
        (lambda: umbrella_chain(1), "horizon must be an integer of at least 2"),
        (lambda: discounting_chain(0), "horizon must be"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


NAMES = ("deep-sea", "umbrella-chain", "discounting-chain", "mountain-car", "combination-lock")


@pytest.mark.parametrize("name", NAMES)
def test_they_are_registered_and_agents_are_built_for_them(name):
    if name == "mountain-car":
        pytest.importorskip("gymnasium")
    environment = make_environment(ENVIRONMENTS[name].config(name=name), 0)
    for settings in ({"name": "gfucb-mdp", "representation": "network"}, {"name": "lsvi-ucb"}):
        agent = make_agent(EpisodicAgentConfig(**settings), environment, 0)
        tasks, candidates = environment.episode(1).offered()
        agent.plan(candidates, tasks)
        assert len(agent.decide(0, candidates, tasks).actions) == environment.num_tasks


# Mountain cars.


def test_mountain_cars_reach_the_goal_by_swinging_and_not_by_driving_right():
    pytest.importorskip("gymnasium")
    from gfucb.environments.mountain_car import mountain_cars

    environment = mountain_cars(num_tasks=6, seed=1)
    gravities = {round(car.unwrapped.gravity, 6) for car in environment.environments}
    assert len(gravities) == 6 and 0.0025 in gravities
    for swings, expected in ((True, 1.0), (False, 0.0)):
        episode, total = environment.episode(1), np.zeros(6)
        for _ in range(environment.horizon):
            tasks, candidates = episode.offered()
            if not len(tasks):
                break
            assert candidates.abs().max() <= 1
            right = (candidates[:, 0, 1] >= 0) | (not swings)
            total[tasks.numpy()] += episode.play(torch.where(right, 2, 0)).rewards.numpy()
        assert (total == expected).all()  # so V* = 1


def test_mountain_cars_pass_the_check():
    pytest.importorskip("gymnasium")
    from gfucb.environments.mountain_car import mountain_cars

    check_episodic_environment(lambda seed: mountain_cars(4, num_tasks=2, seed=seed))

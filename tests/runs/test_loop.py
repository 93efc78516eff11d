"""The loop: one row format for bandits, episodes and batches."""

from dataclasses import replace
from itertools import islice

import pytest

import gfucb
from gfucb.bandits import Uniform
from gfucb.core.errors import InvalidInputError
from gfucb.environments import finite_bandit, tabular_lock
from gfucb.runs.loop import play, play_episode
from gfucb.runs.policy_evaluator import PolicyEvaluator, with_true_features

SHARED = ["round", "reward", "regret", "cumulative_regret"]


def test_bandit_rounds_and_episodes_share_their_columns():
    bandit = next(play(Uniform(2), finite_bandit(num_tasks=2), num_rounds=1))
    lock = tabular_lock(horizon=3, num_tasks=1)
    episode = next(play(gfucb.episodic.UCBVI(1, 3), lock, num_rounds=1))
    assert [name for name in bandit if name in SHARED] == SHARED
    assert [name for name in episode if name in SHARED] == SHARED


def test_an_agent_in_the_wrong_kind_of_environment_is_refused():
    lock = tabular_lock(horizon=3)
    with pytest.raises(InvalidInputError, match="Uniform cannot play in TabularMDPs"):
        next(play(Uniform(1), lock, num_rounds=1))
    with pytest.raises(InvalidInputError, match="UCBVI cannot play in SyntheticBandit"):
        next(play(gfucb.episodic.UCBVI(1, 3), finite_bandit(num_tasks=1), num_rounds=1))


def test_a_loop_continues_after_the_rounds_done():
    environment = finite_bandit(num_tasks=2)
    agent = Uniform(2)
    rows = list(islice(play(agent, environment, num_rounds=6), 4))
    rest = play(
        agent,
        environment,
        num_rounds=6,
        rounds_done=4,
        cumulative_regret=rows[-1]["cumulative_regret"],
    )
    assert rows + list(rest) == list(play(Uniform(2), environment, num_rounds=6))


def test_the_regret_of_a_markov_agent_is_that_of_its_policy():
    """Played without the evaluator, the same agent makes the same decisions."""
    lock = tabular_lock(horizon=3, num_tasks=1, seed=1)
    evaluated, alone = gfucb.episodic.UCBVI(1, 3), gfucb.episodic.UCBVI(1, 3)
    evaluator = PolicyEvaluator(evaluated, lock)
    for index in range(1, 8):
        row = evaluator.play(index)
        returns = play_episode(alone, lock.episode(index), 3, 1)
        assert row["reward"] == returns.mean()
        assert 0 <= row["regret"] <= lock.optimal_values[0, 0].max()


def test_environments_without_true_features_are_refused_for_oracles():
    lock = tabular_lock(horizon=3)
    with pytest.raises(InvalidInputError, match="no true features"):
        with_true_features(replace(lock, true_features=None))

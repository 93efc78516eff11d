"""Stages of small MDPs: the generator with a known Bellman error, and refusals."""

import numpy as np
import pytest
from bellman_problems import normal, table

from gfucb.core.errors import InvalidInputError
from gfucb.theory.bellman import inherent_bellman_error
from gfucb.theory.linear_values import LinearValueClass
from gfucb.theory.small_mdp import MDPStage, linear_mdp_stage

MIXES = [0.0, 0.1, 0.3, 0.6, 1.0]
HALVES = np.full((2, 2, 2), 0.5)
REWARDS = np.zeros((2, 2))


def random_next(seed: int) -> LinearValueClass:
    """Next values whose features are unrelated to those of the stage."""
    return LinearValueClass(np.abs(normal(seed, 4, 3, 3)), 1.0, 0.5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bounds", [(None, None), (1.0, 1.0)])
def test_a_linear_mdp_has_no_bellman_error(seed, bounds):
    drawn = linear_mdp_stage(num_states=4, num_actions=3, feature_dim=3, num_tasks=2, seed=seed)
    current, following = LinearValueClass(drawn.features, *bounds), random_next(seed)
    for stage in drawn.tasks:
        assert inherent_bellman_error(stage, current, following).error < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_error_is_proportional_to_the_mix_and_below_it(seed):
    errors, bounded_errors = [], []
    for mix in MIXES:
        drawn = linear_mdp_stage(
            num_states=4, num_actions=3, feature_dim=3, mix=mix, seed=seed, reward_range=0.5
        )
        free = LinearValueClass(drawn.features)
        bounded = LinearValueClass(drawn.features, 1.0, 1.0)
        following = random_next(seed)
        errors.append(inherent_bellman_error(drawn.tasks[0], free, following).error)
        bounded_errors.append(inherent_bellman_error(drawn.tasks[0], bounded, following).error)
    np.testing.assert_allclose(errors, errors[-1] * np.array(MIXES), atol=1e-9)
    assert errors[-1] > 0.02
    assert (np.diff(bounded_errors) > 0).all()
    assert (np.array(bounded_errors) <= np.array(MIXES) + 1e-9).all()
    assert (np.array(errors) <= np.array(bounded_errors) + 1e-9).all()


def test_generated_stages_are_valid_and_depend_on_the_seed():
    sizes = {"num_states": 5, "num_actions": 2, "feature_dim": 3, "num_tasks": 2}
    first, again = (linear_mdp_stage(**sizes, mix=0.4, seed=7) for _ in range(2))
    other = linear_mdp_stage(**sizes, mix=0.4, seed=8)
    np.testing.assert_array_equal(first.tasks[1].transitions, again.tasks[1].transitions)
    assert np.abs(first.tasks[0].rewards - other.tasks[0].rewards).max() > 1e-3
    assert np.abs(first.tasks[0].rewards - first.tasks[1].rewards).max() > 1e-3
    np.testing.assert_allclose(first.features.sum(axis=-1), 1)
    assert first.tasks[0].rewards.min() >= 0 and first.tasks[0].rewards.max() <= 0.5


@pytest.mark.parametrize(
    ("transitions", "rewards", "message"),
    [
        (HALVES * 0.9, REWARDS, "must be probabilities that sum to 1"),
        (HALVES + table([1, -1]), REWARDS, "must not be negative"),
        (HALVES * np.nan, REWARDS, "transitions must be finite"),
        (HALVES, REWARDS + np.inf, "rewards must be finite"),
        (HALVES, REWARDS[:1], "must agree on"),
        (HALVES[0], REWARDS, r"transitions must be a non-empty numpy array.*state action next"),
        (HALVES, [[0, 0], [0, 0]], "rewards must be a non-empty numpy array.*got list"),
    ],
)
def test_a_stage_that_is_not_an_mdp_is_refused(transitions, rewards, message):
    with pytest.raises(InvalidInputError, match=message):
        MDPStage(transitions, rewards)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mix": 1.1}, "mix must be between 0 and 1"),
        ({"mix": float("nan")}, "mix must be between 0 and 1"),
        ({"reward_range": -0.1}, "reward_range must be between 0 and 1"),
        ({"num_tasks": 0}, "num_tasks must be at least 1"),
    ],
)
def test_settings_of_the_generator_out_of_range_are_refused(change, message):
    with pytest.raises(InvalidInputError, match=message):
        linear_mdp_stage(**{"num_states": 2, "num_actions": 2, "feature_dim": 2, **change})

"""Refused tables, settings and policies of finite MDPs."""

import numpy as np
import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.environments import linear_mdps, rich_lock, tabular_lock, tabular_mdps

TRANSITIONS = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
REWARDS = np.array([[0.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([TRANSITIONS * 0.9], [REWARDS], {"horizon": 2}), "sum to 1, one is off by 0.1"),
        (([TRANSITIONS - [[[1, -1]]]], [REWARDS], {"horizon": 2}), "must not be negative"),
        (
            ([TRANSITIONS], [REWARDS * 3], {"horizon": 2}),
            r"reward_range \(0, 1\), but they go from 0 to 3",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 0}),
            "horizon must be an integer of at least 1, got 0",
        ),
        (([TRANSITIONS], [REWARDS], {}), "pass horizon"),
        (
            ([TRANSITIONS, TRANSITIONS[:, :1]], [REWARDS, REWARDS[:, :1]], {"horizon": 2}),
            r"\[2, 1\] actions",
        ),
        (([TRANSITIONS * np.nan], [REWARDS], {"horizon": 2}), "must be finite"),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "start": [0.5, 0.4]}),
            "start must be probabilities",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "inputs": torch.zeros(3, 2, 1)}),
            "inputs must have",
        ),
        (([TRANSITIONS[0]], [REWARDS], {"horizon": 2}), "of a task must be"),
        (([], [], {"horizon": 2}), "at least one task"),
        (([TRANSITIONS], [REWARDS], {"horizon": 2, "reward_noise": "salt"}), "'salt'"),
        (([TRANSITIONS], [REWARDS], {"horizon": 2.5}), "an integer .* got 2.5"),
        (
            ([TRANSITIONS], [REWARDS[:, :1]], {"horizon": 2}),
            r"with \[2\] actions and rewards with \[1\]",
        ),
        (
            ([TRANSITIONS, TRANSITIONS], [REWARDS, REWARDS[:, :1]], {"horizon": 2}),
            r"transitions with \[2, 2\] actions and rewards with \[2, 1\] actions",
        ),
        (([TRANSITIONS], [REWARDS * np.nan], {"horizon": 2}), "rewards must be finite"),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "start": [1.0]}),
            r"\[state\] = \[2\] .* got \[1\]",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "start": [1.0, 0, 0]}),
            r"got \[3\]; give every",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "start": ["a", "b"]}),
            "start must be probabilities",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "start": [np.nan, 1.0]}),
            "start must be finite",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "inputs": torch.full((2, 2, 1), torch.nan)}),
            "inputs must be finite",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "value_range": (2, 0)}),
            "value_range .* low < high",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "value_range": (0, np.nan)}),
            "value_range .* low < high",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "value_range": 3}),
            r"value_range must be \(low, high\)",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "value_range": (0, 1.5)}),
            "go from 0 to 2; widen",
        ),
        (([TRANSITIONS], [REWARDS], {"horizon": 2, "value_range": (0.5, 2)}), "go from 0 to 2"),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "reward_range": (1, 0)}),
            "reward_range .* low < high",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "goal": np.zeros((2, 2), bool)}),
            "goal must be a numpy",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "goal": np.zeros((1, 2, 2, 2))}),
            "booleans .* float64",
        ),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "noisy": np.ones((1, 2, 2, 3), bool)}),
            "noisy must be",
        ),
        (([TRANSITIONS], [REWARDS], {"horizon": 2, "noisy": True}), "noisy must be .* got bool"),
        (
            ([TRANSITIONS], [REWARDS], {"horizon": 2, "true_features": torch.zeros(2, 3, 1)}),
            r"true_features .*\[2, 2, ...\], got torch.float32 of shape \[2, 3, 1\]",
        ),
        (
            (
                [TRANSITIONS],
                [REWARDS],
                {"horizon": 2, "true_features": torch.full((2, 2, 1), torch.nan)},
            ),
            "true_features must be finite",
        ),
    ],
)
def test_invalid_tables_are_refused(arguments, message):
    transitions, rewards, options = arguments
    with pytest.raises(InvalidInputError, match=message):
        tabular_mdps(transitions, rewards, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tabular_lock(horizon=0), "horizon must be an integer of at least 1, got 0"),
        (lambda: tabular_lock(num_actions=1), "num_actions must be an integer of at least 2"),
        (lambda: tabular_lock(anti_reward=0.7), "anti_reward"),
        (lambda: rich_lock(observation_dim=12), "power of two"),
        (
            lambda: linear_mdps(mix=1.5),
            "mix must be a finite number of at least 0 and of at most 1",
        ),
        (lambda: linear_mdps(horizon=0), "horizon must be an integer of at least 1"),
        (lambda: linear_mdps(num_states=None), "num_states must be an integer"),
        (lambda: linear_mdps(sharpness=0.0), "sharpness must be a finite number above 0"),
        (lambda: linear_mdps(seed=None), "seed must be an integer"),
        (lambda: tabular_lock(seed=None), "seed must be an integer"),
        (lambda: tabular_lock(horizon="20"), "horizon must be an integer"),
        (lambda: rich_lock(bank_size=0), "bank_size must be an integer of at least 1"),
        (lambda: rich_lock(noise_scale=-1.0), "noise_scale must be"),
        (lambda: tabular_mdps([TRANSITIONS], [REWARDS], horizon=2, seed="a"), "seed must be"),
    ],
)
def test_invalid_settings_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_invalid_policies_are_refused():
    environment = tabular_mdps([TRANSITIONS], [REWARDS], horizon=2)
    with pytest.raises(InvalidInputError, match="a policy holds actions"):
        environment.policy_values(np.zeros((1, 3, 2), dtype=int))
    with pytest.raises(InvalidInputError, match="numbered 0 to 1"):
        environment.policy_values(np.full((1, 2, 2), 5))

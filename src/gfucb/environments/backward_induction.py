"""Exact values of finite MDPs by backward induction, for all tasks at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.tables import Array, validate_probabilities


def optimal_action_values(transitions: Array, rewards: Array) -> Array:
    """Q* [task, stage, state, action]; costs O(M H S^2 A)."""
    values = np.zeros_like(rewards)
    next_values = np.zeros((len(rewards), rewards.shape[2]))
    for stage in reversed(range(rewards.shape[1])):
        values[:, stage] = _backup(transitions, rewards, stage, next_values)
        next_values = values[:, stage].max(axis=-1)
    return values


def policy_values(transitions: Array, rewards: Array, policy: NDArray[Any]) -> Array:
    """V of a Markov policy at the first stage, [task, state].

    The policy holds actions [task, stage, state], or probabilities [task, stage, state, action].
    """
    if policy.shape == rewards.shape[:3] and policy.dtype.kind in "iu":
        return _values_of_actions(transitions, rewards, policy)
    if policy.shape != rewards.shape:
        raise InvalidInputError(
            "a policy holds actions [task, stage, state] or probabilities [task, stage, state, "
            f"action] for the sizes {rewards.shape}, got {policy.dtype} of shape {policy.shape}"
        )
    validate_probabilities(policy, "the policy")
    probabilities = np.asarray(policy, dtype=np.float64)
    values = np.zeros((len(rewards), rewards.shape[2]))
    for stage in reversed(range(rewards.shape[1])):
        action_values = _backup(transitions, rewards, stage, values)
        values = (action_values * probabilities[:, stage]).sum(axis=-1)
    return values


def _values_of_actions(transitions: Array, rewards: Array, policy: NDArray[np.int64]) -> Array:
    num_tasks, horizon, num_states, num_actions = rewards.shape
    if policy.min() < 0 or policy.max() >= num_actions:
        raise InvalidInputError(
            f"actions are numbered 0 to {num_actions - 1}, got {policy.min()} to {policy.max()}"
        )
    tasks, states = np.arange(num_tasks)[:, None], np.arange(num_states)
    values = np.zeros((num_tasks, num_states))
    for stage in reversed(range(horizon)):
        taken = (tasks, stage, states, policy[:, stage])
        expected = transitions[taken] @ values[:, :, None]
        values = rewards[taken] + expected[..., 0]
    return values


def _backup(transitions: Array, rewards: Array, stage: int, next_values: Array) -> Array:
    """R + P V of one stage: V [task, state] -> [task, state, action]."""
    expected = transitions[:, stage] @ next_values[:, None, :, None]
    return np.asarray(rewards[:, stage] + expected[..., 0])

"""One stage of a small finite MDP, and stages whose inherent Bellman error is known.

Everything here is a plain table in float64, so that errors can be computed exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.validation.tables import Array, validate_probabilities, validate_table


@dataclass(frozen=True, eq=False)
class MDPStage:
    """Transitions and rewards from stage h to stage h + 1 of a finite MDP.

    Attributes:
        transitions: P(s' | s, a), [state, action, next_state]; the rows sum to one.
        rewards: mean rewards r(s, a), [state, action].
    """

    transitions: Array
    rewards: Array

    def __post_init__(self) -> None:
        validate_table(self.transitions, "transitions", "state action next_state")
        validate_table(self.rewards, "rewards", "state action")
        if self.transitions.shape[:2] != self.rewards.shape:
            raise InvalidInputError(
                f"transitions and rewards must agree on [state action], "
                f"got {self.transitions.shape[:2]} and {self.rewards.shape}"
            )
        validate_probabilities(self.transitions, "transitions")

    @property
    def num_next_states(self) -> int:
        """Number of states of stage h + 1, which may differ from that of stage h."""
        return int(self.transitions.shape[2])

    def backups(self, next_values: Array) -> Array:
        """Bellman backups  r + P max_a' Q'.

        Maps Q' [choice, next_state, next_action] to [choice, state, action]; the paper's
        operator T_h, one multiplication of size choices * states * actions * next_states.
        """
        next_state_values = next_values.max(axis=-1)
        backups: Array = self.rewards + np.einsum(
            "sat,ct->csa", self.transitions, next_state_values
        )
        return backups


def stage_tables(transitions: Array, rewards: Array, stage: int) -> list[MDPStage]:
    """One `MDPStage` per task for one stage of finite MDPs.

    Shapes: transitions [task, stage, state, action, next_state], rewards [task, stage, state,
    action], as `gfucb.environments.TabularMDPs` stores them.
    """
    tables = zip(transitions[:, stage], rewards[:, stage], strict=True)
    return [MDPStage(own_transitions, own_rewards) for own_transitions, own_rewards in tables]


@dataclass(frozen=True, eq=False)
class LinearStage:
    """Tasks that share features, and their distance from a linear MDP.

    Attributes:
        features: phi*(s, a) in the simplex, [state, action, feature].
        tasks: one stage per task.
        mix: xi; 0 is a linear MDP, 1 an arbitrary one.
    """

    features: Array
    tasks: tuple[MDPStage, ...]
    mix: float


def linear_mdp_stage(
    *,
    num_states: int,
    num_actions: int,
    feature_dim: int,
    num_tasks: int = 1,
    reward_range: float = 0.5,
    mix: float = 0.0,
    seed: int = 0,
) -> LinearStage:
    """Draw tasks with P = sum_j phi_j mu_j and r = phi^T rho, mixed with arbitrary tasks.

    With features in the simplex, anchor distributions mu_j over next states and rho in
    [0, reward_range]^k, T Q' = phi^T (rho + mu V') for every Q' (Jin et al., 2020): the inherent
    Bellman error is zero for every next class, if heads at this stage may be as large as
    rho + mu V'. With xi = `mix`, (P, r) is replaced by (1 - xi) (P, r) + xi (P', r'), where
    (P', r') is an arbitrary stage that depends on the seed and not on xi. The residual
    xi (T' Q' - T Q') is at most xi when backups stay in [0, 1], that is when the next values are
    at most 1 - reward_range. The error is non-decreasing in xi, and proportional to xi when the
    heads of stage h are not bounded.

    Costs O(tasks * states^2 * actions * features).
    """
    sizes = {"num_states": num_states, "num_actions": num_actions}
    sizes |= {"feature_dim": feature_dim, "num_tasks": num_tasks}
    for name, size in sizes.items():
        if size < 1:
            raise InvalidInputError(f"{name} must be at least 1, got {size}")
    if not 0 <= mix <= 1:
        raise InvalidInputError(f"mix must be between 0 and 1, got {mix}")
    if not 0 <= reward_range <= 1:
        raise InvalidInputError(f"reward_range must be between 0 and 1, got {reward_range}")
    features = _simplex_points((num_states, num_actions, feature_dim), seed, "features")
    tasks = tuple(
        _mixed_stage(features, reward_range, mix, seed, task) for task in range(num_tasks)
    )
    return LinearStage(features, tasks, mix)


def _mixed_stage(
    features: Array, reward_range: float, mix: float, seed: int, task: int
) -> MDPStage:
    """(1 - mix) times a linear stage on `features` plus mix times an arbitrary one."""
    num_states, num_actions, feature_dim = features.shape
    anchors = _simplex_points((feature_dim, num_states), seed, "anchors", task)
    weights = reward_range * _uniform((feature_dim,), seed, "reward weights", task)
    shape = (num_states, num_actions, num_states)
    other_transitions = _simplex_points(shape, seed, "other transitions", task)
    other_rewards = reward_range * _uniform(shape[:2], seed, "other rewards", task)
    transitions = (1 - mix) * (features @ anchors) + mix * other_transitions
    return MDPStage(transitions, (1 - mix) * (features @ weights) + mix * other_rewards)


def _uniform(shape: tuple[int, ...], seed: int, *names: str | int) -> Array:
    generator = random_stream(seed, "small mdp", *names)
    draws: Array = torch.rand(shape, generator=generator, dtype=torch.float64).numpy()
    return draws


def _simplex_points(shape: tuple[int, ...], seed: int, *names: str | int) -> Array:
    """Uniform draws from the simplex along the last axis: normalised exponentials."""
    # One minus the draw, which may be exactly 0, is never 0.
    exponentials = -np.log1p(-_uniform(shape, seed, *names)) + 1e-300
    points: Array = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return points

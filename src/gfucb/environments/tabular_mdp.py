"""M finite MDPs given as tables, with exact optimal values and exact values of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.memory import memory_of_environment
from gfucb.core.random import random_stream
from gfucb.core.validation.settings import (
    validate_not_negative,
    validate_pair,
    validate_seed,
)
from gfucb.core.validation.tables import Array, validate_probabilities, validate_table
from gfucb.environments.backward_induction import optimal_action_values, policy_values
from gfucb.environments.table_validation import (
    require_boolean_table,
    require_finite,
    require_high_rewards,
    require_same_actions,
    require_true_features,
    require_within,
    stack_tasks,
    start_distribution,
    task_tables,
    with_stage_axis,
)
from gfucb.environments.tabular_episode import Integers, TabularEpisode, cumulative, inverse_cdf

RewardNoise = Literal["none", "bernoulli", "gaussian"]


@dataclass(frozen=True, eq=False)
class TabularMDPs:
    """M finite MDPs with the same states, actions and inputs; tables differ between tasks.

    `tabular_mdps` builds one from your own arrays. All randomness of episode t derives from
    (seed, t) and is drawn before any action is known, so agents on one seed are paired.

    Attributes:
        transitions: P(s' | s, a), [task, stage, state, action, next_state].
        rewards: mean rewards, [task, stage, state, action], within `reward_range`.
        start: distribution of the first state, [task, state].
        inputs: what an agent observes of a state and an action, [state, action, *input].
        seed: all randomness of the environment derives from it.
        reward_range: smallest and largest reward that can be received.
        value_range: smallest and largest sum of rewards of an episode; None derives it from
            `reward_range`.
        reward_noise: `none`, `bernoulli` (the top of `reward_range` or its bottom, with the
            probability that gives the mean), or `gaussian` with standard deviation `noise_scale`.
        high_rewards: the larger of the two Bernoulli rewards, [task, stage, state, action]; by
            default the top of `reward_range`.
        noise_scale: standard deviation of Gaussian noise.
        noisy: where the noise acts, [task, stage, state, action]; everywhere by default.
        true_features: phi*(s, a) for oracles, [state, action, feature]; None if there are none.
        goal: pairs that reach the goal of an episode, [task, stage, state, action].
        decoding: the latent state of each state, [state], where states are observations of
            latent states.
    """

    transitions: Array
    rewards: Array
    start: Array
    inputs: Tensor
    seed: int = 0
    reward_range: tuple[float, float] = (0.0, 1.0)
    value_range: tuple[float, float] | None = None
    reward_noise: RewardNoise = "none"
    noise_scale: float = 0.0
    noisy: NDArray[np.bool_] | None = None
    true_features: Tensor | None = None
    goal: NDArray[np.bool_] | None = None
    decoding: Integers | None = None
    high_rewards: Array | None = None

    def __post_init__(self) -> None:
        validate_seed(self.seed)
        self._validate_tables()
        self._validate_rewards()
        self._validate_inputs()
        self._validate_value_range()

    def _validate_tables(self) -> None:
        validate_table(self.transitions, "transitions", "task stage state action next_state")
        validate_table(self.rewards, "rewards", "task stage state action")
        validate_table(self.start, "start", "task state")
        shape = self.transitions.shape
        if self.rewards.shape != shape[:4] or self.start.shape != (shape[0], shape[2]):
            raise InvalidInputError(
                "transitions [task stage state action next_state], rewards [task stage state "
                "action] and start [task state] must agree on their axes, "
                f"got {shape}, {self.rewards.shape} and {self.start.shape}"
            )
        if shape[4] != shape[2]:
            raise InvalidInputError(
                f"the axes state and next_state must have the same length, got {shape[2]} and "
                f"{shape[4]}"
            )
        validate_probabilities(self.transitions, "transitions")
        validate_probabilities(self.start, "start")

    def _validate_rewards(self) -> None:
        advice = "widen reward_range or rescale the rewards"
        bounds = validate_pair(self.reward_range, "reward_range")
        require_within(self.rewards, bounds, "mean rewards", "reward_range", advice)
        if self.reward_noise not in ("none", "bernoulli", "gaussian"):
            raise InvalidInputError(
                f"reward_noise must be 'none', 'bernoulli' or 'gaussian', got {self.reward_noise!r}"
            )
        validate_not_negative(self.noise_scale, "noise_scale")
        require_boolean_table(self.noisy, "noisy", self.rewards.shape)
        require_boolean_table(self.goal, "goal", self.rewards.shape)
        if self.high_rewards is not None:
            validate_table(self.high_rewards, "high_rewards", "task stage state action")
            require_within(self.high_rewards, bounds, "high_rewards", "reward_range", advice)
            require_high_rewards(self.high_rewards, self.rewards)

    def _validate_inputs(self) -> None:
        num_states, num_actions = self.num_states, self.num_actions
        if not isinstance(self.inputs, Tensor):
            raise InvalidInputError(f"inputs must be a tensor, got {type(self.inputs).__name__}")
        if tuple(self.inputs.shape[:2]) != (num_states, num_actions):
            raise InvalidInputError(
                f"inputs must have the shape [state, action, *input] = [{num_states}, "
                f"{num_actions}, ...], got {list(self.inputs.shape)}"
            )
        require_finite(self.inputs, "inputs")
        require_true_features(self.true_features, num_states, num_actions)

    def _validate_value_range(self) -> None:
        if self.value_range is not None:
            advice = "widen it, or leave it out to derive it from reward_range"
            bounds = validate_pair(self.value_range, "value_range")
            require_within(self.optimal_values, bounds, "optimal values", "value_range", advice)

    @property
    def num_tasks(self) -> int:
        """M."""
        return int(self.transitions.shape[0])

    @property
    def horizon(self) -> int:
        """H."""
        return int(self.transitions.shape[1])

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.transitions.shape[2])

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.transitions.shape[3])

    @property
    def observation_dim(self) -> int | None:
        """Length of observations, if inputs are (observation, one-hot action)."""
        return None if self.decoding is None else int(self.inputs.shape[-1]) - self.num_actions

    @property
    def values_lie_in(self) -> tuple[float, float]:
        """`value_range`, or the sums that `reward_range` allows in H stages."""
        low, high = self.reward_range
        return self.value_range or (min(0.0, low * self.horizon), max(0.0, high * self.horizon))

    @cached_property
    def optimal_action_values(self) -> Array:
        """Q*, exact: [task, stage, state, action]."""
        return optimal_action_values(self.transitions, self.rewards)

    @cached_property
    def optimal_values(self) -> Array:
        """V*, exact: [task, stage, state]."""
        return np.asarray(self.optimal_action_values.max(axis=-1))

    @cached_property
    def gaps(self) -> Array:
        """V* - Q*: [task, stage, state, action]."""
        return self.optimal_values[..., None] - self.optimal_action_values

    def policy_values(self, policy: ArrayLike) -> Array:
        """V of a Markov policy at the first stage, exact: [task, state].

        Args:
            policy: actions [task, stage, state], or probabilities [task, stage, state, action].
        """
        return policy_values(self.transitions, self.rewards, np.asarray(policy))

    def episode(self, episode_index: int) -> TabularEpisode:
        """Episode `episode_index`, from 1, with all its random draws."""
        generator = random_stream(self.seed, "episode", episode_index)
        shape = (self.num_tasks, 1 + 2 * self.horizon)
        draws = torch.rand(shape, generator=generator, dtype=torch.float64).numpy()
        noise = np.zeros((self.num_tasks, self.horizon))
        if self.reward_noise == "gaussian":
            normal = torch.randn(noise.shape, generator=generator, dtype=torch.float64)
            noise = self.noise_scale * normal.numpy()
        first_states = inverse_cdf(self._cumulative_start, draws[:, 0])
        return TabularEpisode(self, first_states, draws[:, 1::2], draws[:, 2::2], noise)

    def bernoulli_rewards(self, pairs: tuple[Any, ...]) -> tuple[float, Array | float]:
        """The smaller and the larger Bernoulli reward of these indices of `rewards`."""
        low, high = self.reward_range
        return low, high if self.high_rewards is None else self.high_rewards[pairs]

    @cached_property
    def task_indices(self) -> Integers:
        """0 .. M - 1."""
        return np.arange(self.num_tasks)

    @cached_property
    def cumulative_transitions(self) -> Array:
        """Cumulative sums of `transitions` over next states."""
        return cumulative(self.transitions)

    @cached_property
    def _cumulative_start(self) -> Array:
        return cumulative(self.start)

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {
            "states": self.num_states,
            "actions": self.num_actions,
            "horizon": self.horizon,
            "optimal_value": float((self.start * self.optimal_values[:, 0]).sum(1).mean()),
        }


@memory_of_environment
def tabular_mdps(
    transitions: Sequence[ArrayLike],
    rewards: Sequence[ArrayLike],
    *,
    horizon: int | None = None,
    start: ArrayLike | None = None,
    inputs: ArrayLike | Tensor | None = None,
    **options: Any,
) -> TabularMDPs:
    """Finite MDPs from your own arrays.

    >>> import numpy as np
    >>> stay_or_go = np.array([[[1, 0], [0, 1]], [[0, 1], [0, 1]]])  # [state, action, next]
    >>> environment = tabular_mdps([stay_or_go], [[[0, 0], [1, 1]]], horizon=3)
    >>> float(environment.optimal_values[0, 0, 0])
    2.0

    Args:
        transitions: one table per task, each [state, action, next_state] with `horizon` given,
            or [stage, state, action, next_state].
        rewards: mean rewards per task, each [state, action] or [stage, state, action].
        horizon: H, where the tables have no stage axis.
        start: distribution of the first state, [state] or [task, state]; state 0 by default.
        inputs: what agents observe, [state, action, *input]; by default a one-hot vector for
            each pair, which has no information on the similarity of pairs.
        options: further fields of `TabularMDPs`.
    """
    transition_tables = task_tables(transitions, "transitions", 3)
    reward_tables = task_tables(rewards, "rewards", 2)
    require_same_actions(transition_tables, reward_tables)
    all_transitions = stack_tasks(
        [with_stage_axis(table, 3, horizon) for table in transition_tables], "transitions"
    )
    all_rewards = stack_tasks(
        [with_stage_axis(table, 2, horizon) for table in reward_tables], "rewards"
    )
    num_tasks, _, num_states, num_actions = all_rewards.shape[:4]
    first = np.eye(num_states)[0] if start is None else start
    distribution = start_distribution(first, num_tasks, num_states)
    given = one_hot_inputs(num_states, num_actions) if inputs is None else torch.as_tensor(inputs)
    return TabularMDPs(all_transitions, all_rewards, distribution, given, **options)


def one_hot_inputs(num_states: int, num_actions: int) -> Tensor:
    """A unit vector for every pair of state and action: [state, action, state * action]."""
    pairs = num_states * num_actions
    return torch.eye(pairs, dtype=torch.float64).reshape(num_states, num_actions, pairs)

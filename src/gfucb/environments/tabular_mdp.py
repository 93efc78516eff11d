"""M finite MDPs given as tables, with exact optimal values and exact values of policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError, ordered_pair
from gfucb.core.random import random_stream
from gfucb.core.records import Outcome
from gfucb.environments.mdp_tables import (
    kind_of,
    require_actions,
    require_finite,
    require_probabilities,
    require_same_actions,
    stacked,
    staged,
    start_of,
    task_tables,
)
from gfucb.theory.small_mdp import Array, check_table

Integers = NDArray[np.int64]
RewardNoise = Literal["none", "bernoulli", "gaussian"]
REWARD_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class TabularMDPs:
    """Tasks that share states, actions and what is seen of them; all else may differ.

    Build one from arrays of your own with `tabular_mdps`. All that is random in episode t derives
    from (seed, t) and is drawn before any action is known, so agents on one seed are paired.

    Attributes:
        transitions: P(s' | s, a), [task, stage, state, action, next_state].
        rewards: mean rewards, [task, stage, state, action], within `reward_range`.
        start: distribution of the first state, [task, state].
        inputs: what an agent sees of a state and an action, [state, action, *input].
        reward_range: smallest and largest reward that can be received.
        value_range: smallest and largest sum of rewards an episode can bring.
        reward_noise: `none`, `bernoulli` (the top of the range with the right probability, or
            its bottom), or `gaussian` with `noise_scale`.
        noisy: where the noise acts, [task, stage, state, action]; everywhere by default.
        true_features: phi*(s, a) for oracles, [state, action, feature], if there is one.
        goal: where an episode counts as having reached its goal, [task, stage, state, action].
        decoding: the latent state behind each state, [state], where observations are rich.
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

    def __post_init__(self) -> None:
        check_table(self.transitions, "transitions", "task stage state action next_state")
        check_table(self.rewards, "rewards", "task stage state action")
        check_table(self.start, "start", "task state")
        shape = self.transitions.shape
        if self.rewards.shape != shape[:4] or self.start.shape != (shape[0], shape[2]):
            raise InvalidInputError(
                "transitions [task stage state action next_state], rewards [task stage state "
                "action] and start [task state] must agree on their axes, "
                f"got {shape}, {self.rewards.shape} and {self.start.shape}"
            )
        if shape[4] != shape[2]:
            raise InvalidInputError(
                f"next states are states: expected {shape[2]} of them, got {shape[4]}"
            )
        require_probabilities(self.transitions, "transitions")
        require_probabilities(self.start, "start")
        self._require_rewards()
        if tuple(self.inputs.shape[:2]) != (shape[2], shape[3]):
            raise InvalidInputError(
                f"inputs must have the shape [state, action, *input] = [{shape[2]}, {shape[3]}, "
                f"...], got {list(self.inputs.shape)}"
            )
        require_finite(self.inputs, "inputs")
        self._require_facts()
        self._require_value_range()

    def _require_facts(self) -> None:
        """What a evaluator or an oracle is told has the axes it is looked up by."""
        shape = self.rewards.shape
        for name, table in (("noisy", self.noisy), ("goal", self.goal)):
            is_array = isinstance(table, np.ndarray) and table.dtype == np.bool_
            if table is not None and not (is_array and table.shape == shape):
                raise InvalidInputError(
                    f"{name} must be a numpy array of booleans of shape [task, stage, state, "
                    f"action] = {list(shape)}, got {kind_of(table)}; leave it out if there is none"
                )
        features = self.true_features
        if features is not None:
            is_tensor = isinstance(features, Tensor) and features.ndim == 3
            if not (is_tensor and tuple(features.shape[:2]) == shape[2:]):
                raise InvalidInputError(
                    "true_features must be a tensor of shape [state, action, feature] = "
                    f"[{shape[2]}, {shape[3]}, ...], got {kind_of(features)}; leave it out if "
                    "there is none"
                )
            require_finite(features, "true_features")

    def _require_value_range(self) -> None:
        if self.value_range is None:
            return
        low, high = ordered_pair(self.value_range, "value_range")
        smallest, largest = float(self.optimal_values.min()), float(self.optimal_values.max())
        if smallest < low - REWARD_TOLERANCE or largest > high + REWARD_TOLERANCE:
            raise InvalidInputError(
                "value_range must contain the optimal values of all stages and states, which go "
                f"from {smallest:.6g} to {largest:.6g}, got ({low}, {high}); widen it, or leave it "
                "out and it follows from reward_range"
            )

    def _require_rewards(self) -> None:
        low, high = ordered_pair(self.reward_range, "reward_range")
        smallest, largest = float(self.rewards.min()), float(self.rewards.max())
        if smallest < low - REWARD_TOLERANCE or largest > high + REWARD_TOLERANCE:
            raise InvalidInputError(
                f"mean rewards must lie in the stated reward_range ({low}, {high}), "
                f"got rewards from {smallest} to {largest}"
            )
        if self.reward_noise not in ("none", "bernoulli", "gaussian"):
            raise InvalidInputError(
                f"reward_noise must be 'none', 'bernoulli' or 'gaussian', got {self.reward_noise!r}"
            )
        if not (np.isfinite(self.noise_scale) and self.noise_scale >= 0):
            raise InvalidInputError(
                f"noise_scale must be finite and not negative, got {self.noise_scale}"
            )

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
    def values_lie_in(self) -> tuple[float, float]:
        """`value_range`, or what the reward range allows in H stages."""
        low, high = self.reward_range
        return self.value_range or (min(0.0, low * self.horizon), max(0.0, high * self.horizon))

    @cached_property
    def optimal_action_values(self) -> Array:
        """Q*, exact, by backward induction: [task, stage, state, action].

        Costs O(M H S^2 A).
        """
        values = np.zeros_like(self.rewards)
        following = np.zeros((self.num_tasks, self.num_states))
        for stage in reversed(range(self.horizon)):
            values[:, stage] = self._backup(stage, following)
            following = values[:, stage].max(axis=-1)
        return values

    @cached_property
    def optimal_values(self) -> Array:
        """V*, exact: [task, stage, state]."""
        return np.asarray(self.optimal_action_values.max(axis=-1))

    def policy_values(self, policy: NDArray[Any]) -> Array:
        """V of a Markov policy at the first stage, exact: [task, state].

        Args:
            policy: actions [task, stage, state], or probabilities [task, stage, state, action].
        """
        policy = np.asarray(policy)
        if policy.shape == self.rewards.shape[:3] and policy.dtype.kind in "iu":
            return self._values_of_actions(policy)
        probabilities = self._probabilities(policy)
        following = np.zeros((self.num_tasks, self.num_states))
        for stage in reversed(range(self.horizon)):
            values = self._backup(stage, following)
            following = (values * probabilities[:, stage]).sum(axis=-1)
        return following

    def _values_of_actions(self, policy: Integers) -> Array:
        if policy.min() < 0 or policy.max() >= self.num_actions:
            raise InvalidInputError(
                f"actions are numbered 0 to {self.num_actions - 1}, "
                f"got {policy.min()} to {policy.max()}"
            )
        tasks, states = self._tasks[:, None], np.arange(self.num_states)
        following = np.zeros((self.num_tasks, self.num_states))
        for stage in reversed(range(self.horizon)):
            taken = (tasks, stage, states, policy[:, stage])
            expected = self.transitions[taken] @ following[:, :, None]
            following = self.rewards[taken] + expected[..., 0]
        return following

    def _backup(self, stage: int, next_values: Array) -> Array:
        expected = self.transitions[:, stage] @ next_values[:, None, :, None]
        return np.asarray(self.rewards[:, stage] + expected[..., 0])

    def _probabilities(self, policy: NDArray[Any]) -> Array:
        shape = self.rewards.shape
        if policy.shape != shape:
            raise InvalidInputError(
                "a policy has actions [task, stage, state] or probabilities [task, stage, state, "
                f"action] for the sizes {shape}, got {policy.dtype} of shape {policy.shape}"
            )
        require_probabilities(policy, "the policy")
        return np.asarray(policy, dtype=np.float64)

    def episode(self, episode_index: int) -> TabularEpisode:
        """Episode `episode_index`, from 1: states and rewards follow from draws made here."""
        generator = random_stream(self.seed, "episode", episode_index)
        shape = (self.num_tasks, 1 + 2 * self.horizon)
        draws = torch.rand(shape, generator=generator, dtype=torch.float64).numpy()
        noise = np.zeros((self.num_tasks, self.horizon))
        if self.reward_noise == "gaussian":
            normal = torch.randn(noise.shape, generator=generator, dtype=torch.float64)
            noise = self.noise_scale * normal.numpy()
        first = _inverse_cdf(self._cumulative_start, draws[:, 0])
        return TabularEpisode(self, first, draws[:, 1::2], draws[:, 2::2], noise)

    @cached_property
    def _gaps(self) -> Array:
        """V* - Q*: [task, stage, state, action]."""
        return self.optimal_values[..., None] - self.optimal_action_values

    @cached_property
    def _tasks(self) -> Integers:
        return np.arange(self.num_tasks)

    @cached_property
    def _ended(self) -> tuple[Tensor, Tensor]:
        """Nobody and everybody, [task]."""
        nobody = torch.zeros(self.num_tasks, dtype=torch.bool)
        return nobody, ~nobody

    @cached_property
    def _cumulative_start(self) -> Array:
        return _cumulative(self.start)

    @cached_property
    def _cumulative_transitions(self) -> Array:
        return _cumulative(self.transitions)

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {
            "states": self.num_states,
            "actions": self.num_actions,
            "horizon": self.horizon,
            "optimal_value": float((self.start * self.optimal_values[:, 0]).sum(1).mean()),
        }


class TabularEpisode:
    """One episode of all tasks; keeps what the evaluator wants to know of it.

    Attributes:
        states: where each task is now, [task].
        gaps: V* - Q* of the actions taken so far, summed, [task]. For any way of choosing actions
            its expectation is the regret of the episode.
        reached_goal: whether the goal of the environment was reached, [task].
    """

    def __init__(
        self,
        environment: TabularMDPs,
        first_states: Integers,
        transition_draws: Array,
        reward_draws: Array,
        noise: Array,
    ) -> None:
        self.environment = environment
        self.states = first_states
        self.first_states = first_states
        self.stage = 0
        self.gaps = np.zeros(environment.num_tasks)
        self.reached_goal = np.zeros(environment.num_tasks, dtype=bool)
        self._draws = transition_draws, reward_draws, noise
        self._tasks = environment._tasks
        self._going, self._over = environment._ended

    def offered(self) -> tuple[Tensor, Tensor]:
        """All tasks, and the inputs of their states: [task], [task, action, *input]."""
        inputs = self.environment.inputs.numpy()[self.states]  # faster than torch on so little
        return torch.from_numpy(self._tasks), torch.from_numpy(inputs)

    def play(self, actions: Tensor) -> Outcome:
        """Take actions [task]; the last stage ends the episode of every task."""
        environment, taken = self.environment, actions.cpu().numpy()
        if self.stage >= environment.horizon:
            raise InvalidInputError(f"the episode has ended: it has {environment.horizon} stages")
        require_actions(taken, environment.num_tasks, environment.num_actions)
        here = (self._tasks, self.stage, self.states, taken)
        self.gaps += environment._gaps[here]
        if environment.goal is not None:
            self.reached_goal |= environment.goal[here]
        rewards = environment.rewards[here]
        if environment.reward_noise != "none":
            noisy = True if environment.noisy is None else environment.noisy[here]
            rewards = np.where(noisy, self._noisy(rewards), rewards)
        draws = self._draws[0][:, self.stage]
        self.states = _inverse_cdf(environment._cumulative_transitions[here], draws)
        self.stage += 1
        ended = self._over if self.stage == environment.horizon else self._going
        return Outcome(torch.from_numpy(rewards), self.offered()[1], ended)

    def _noisy(self, means: Array) -> Array:
        _, draws, noise = self._draws
        if self.environment.reward_noise == "bernoulli":
            low, high = self.environment.reward_range
            return np.where(draws[:, self.stage] * (high - low) < means - low, high, low)
        return np.asarray(means + noise[:, self.stage])


def tabular_mdps(
    transitions: Any,
    rewards: Any,
    *,
    horizon: int | None = None,
    start: Any = None,
    inputs: Any = None,
    **options: Any,
) -> TabularMDPs:
    """A environment from arrays of one's own.

    >>> import numpy as np
    >>> stay_or_go = np.array([[[1, 0], [0, 1]], [[0, 1], [0, 1]]])  # [state, action, next]
    >>> environment = tabular_mdps([stay_or_go], [[[0, 0], [1, 1]]], horizon=3)
    >>> float(environment.optimal_values[0, 0, 0])
    2.0

    Args:
        transitions: one table a task, each [state, action, next_state] with `horizon` given, or
            [stage, state, action, next_state].
        rewards: mean rewards, likewise [state, action] or [stage, state, action].
        horizon: H, where the tables have no stage axis.
        start: distribution of the first state, [state] or [task, state]; state 0 by default.
        inputs: what agents see, [state, action, *input]; by default one number for each pair
            (one-hot vectors), which bounds nothing about how pairs resemble each other.
        options: further fields of `TabularMDPs`.
    """
    tables = task_tables(transitions, "transitions", 3)
    means = task_tables(rewards, "rewards", 2)
    require_same_actions(tables, means)
    staged_tables = stacked([staged(t, 3, horizon) for t in tables], "transitions")
    staged_means = stacked([staged(t, 2, horizon) for t in means], "rewards")
    num_tasks, _, num_states, num_actions = staged_means.shape[:4]
    if start is None:
        start = np.eye(num_states)[0]
    start = start_of(start, num_tasks, num_states)
    if inputs is None:
        inputs = one_hot_inputs(num_states, num_actions)
    return TabularMDPs(staged_tables, staged_means, start, torch.as_tensor(inputs), **options)


def one_hot_inputs(num_states: int, num_actions: int) -> Tensor:
    """Every pair of state and action its own unit vector: [state, action, state * action]."""
    pairs = num_states * num_actions
    return torch.eye(pairs, dtype=torch.float64).reshape(num_states, num_actions, pairs)


def _cumulative(rows: Array) -> Array:
    # Rounding must not leave a gap below one that a draw could fall into.
    sums = rows.cumsum(axis=-1)
    sums[..., -1] = 1.0
    return np.asarray(sums)


def _inverse_cdf(cumulative: Array, draws: Array) -> Integers:
    """The first index whose cumulative probability exceeds the draw: [n, state], [n] -> [n]."""
    return np.asarray((cumulative > draws[:, None]).argmax(axis=-1), dtype=np.int64)

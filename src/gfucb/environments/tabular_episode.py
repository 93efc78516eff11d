"""One episode of finite MDPs, with the quantities an exact evaluation needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import Outcome
from gfucb.core.validation.tables import Array
from gfucb.environments.table_validation import require_actions

if TYPE_CHECKING:
    from gfucb.environments.tabular_mdp import TabularMDPs

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


class TabularEpisode:
    """One episode of all tasks.

    Args:
        environment: the tasks.
        first_states: [task].
        transition_draws: uniform draws in [0, 1), from which next states follow, [task, stage].
        reward_draws: uniform draws for Bernoulli rewards, [task, stage].
        noise: Gaussian noise on rewards, already scaled, [task, stage].

    Attributes:
        states: the current state of each task, [task].
        first_states: [task].
        stage: the number of actions taken so far.
        gaps: V* - Q* of the actions taken so far, summed, [task]. For every way of choosing
            actions, its expectation is the regret of the episode.
        reached_goal: whether each task has reached the goal of the environment, [task].
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
        self._transition_draws = transition_draws
        self._reward_draws = reward_draws
        self._noise = noise

    def offered(self) -> tuple[Tensor, Tensor]:
        """All tasks [task], and the inputs of their states [task, action, *input]."""
        # Indexing in numpy: faster than in torch for a few rows.
        inputs = self.environment.inputs.numpy()[self.states]
        return torch.from_numpy(self.environment.task_indices), torch.from_numpy(inputs)

    def play(self, actions: Tensor) -> Outcome:
        """Take actions [task]; the last stage ends the episode of every task."""
        environment, taken = self.environment, actions.cpu().numpy()
        if self.stage >= environment.horizon:
            raise InvalidInputError(f"the episode has ended: it has {environment.horizon} stages")
        require_actions(taken, environment.num_tasks, environment.num_actions)
        pairs = (environment.task_indices, self.stage, self.states, taken)
        self.gaps += environment.gaps[pairs]
        if environment.goal is not None:
            self.reached_goal |= environment.goal[pairs]
        rewards = environment.rewards[pairs]
        if environment.reward_noise != "none":
            noisy = True if environment.noisy is None else environment.noisy[pairs]
            rewards = np.where(noisy, self._noisy(rewards, pairs), rewards)
        draws = self._transition_draws[:, self.stage]
        self.states = inverse_cdf(environment.cumulative_transitions[pairs], draws)
        self.stage += 1
        is_last = self.stage == environment.horizon
        ended = torch.full((environment.num_tasks,), is_last)
        return Outcome(torch.from_numpy(rewards), self.offered()[1], ended)

    def _noisy(self, means: Array, pairs: tuple[Any, ...]) -> Array:
        if self.environment.reward_noise == "bernoulli":
            low, high = self.environment.bernoulli_rewards(pairs)
            draws = self._reward_draws[:, self.stage]
            return np.where(draws * (high - low) < means - low, high, low)
        return np.asarray(means + self._noise[:, self.stage])


def cumulative(probabilities: Array) -> Array:
    """Cumulative sums along the last axis, the last of them exactly 1."""
    # Rounding must not leave a gap below 1 that a draw could fall into.
    sums = probabilities.cumsum(axis=-1)
    sums[..., -1] = 1.0
    return np.asarray(sums)


def inverse_cdf(cumulative_rows: Array, draws: Array) -> Integers:
    """The first index whose cumulative probability exceeds the draw: [n, state], [n] -> [n]."""
    return np.asarray((cumulative_rows > draws[:, None]).argmax(axis=-1), dtype=np.int64)

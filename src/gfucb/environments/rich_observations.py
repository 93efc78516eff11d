"""Finite MDPs behind observations with fresh noise: only the latent states are finite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.records import Outcome
from gfucb.core.validation.tables import Array
from gfucb.environments.backward_induction import policy_values
from gfucb.environments.emissions import Emission
from gfucb.environments.tabular_episode import (
    Booleans,
    Integers,
    TabularEpisode,
    cumulative,
    inverse_cdf,
)
from gfucb.environments.tabular_mdp import TabularMDPs


@dataclass(frozen=True, eq=False)
class RichObservationMDPs:
    """M finite MDPs whose states are seen through an emission that all tasks share.

    Inputs are (observation, one-hot action). No observation is seen twice, so the value of a policy
    over observations cannot be tabulated. Exact are the optimal values, the values of policies
    that observe the latent state, and the gaps along an episode, whose expected sum is the regret
    of whatever policy chose the actions. All randomness of episode t derives from (seed, t) and is
    drawn before any action is known.

    Attributes:
        latent: the MDPs over latent states. In a block MDP they are also the environment of an
            agent that observes the latent state, with the same draws.
        emission: from latent states to observations.
        true_features: for oracles, inputs are outer products of state probabilities and one-hot
            action, in which the environment is a linear MDP.
    """

    latent: TabularMDPs
    emission: Emission
    true_features: bool = False

    def __post_init__(self) -> None:
        sizes = (self.latent.num_states, self.latent.horizon)
        if sizes != (self.emission.num_states, self.emission.horizon):
            raise InvalidInputError(
                f"the latent MDPs have {sizes[0]} states and {sizes[1]} stages, the emission "
                f"{self.emission.num_states} and {self.emission.horizon}; they must agree"
            )

    @property
    def num_tasks(self) -> int:
        """M."""
        return self.latent.num_tasks

    @property
    def horizon(self) -> int:
        """H."""
        return self.latent.horizon

    @property
    def num_actions(self) -> int:
        """A."""
        return self.latent.num_actions

    @property
    def seed(self) -> int:
        """All randomness of the episodes derives from it."""
        return self.latent.seed

    @property
    def observation_dim(self) -> int:
        """Length of an observation, without the action."""
        return self.emission.observation_dim

    @property
    def reward_range(self) -> tuple[float, float]:
        """Smallest and largest reward."""
        return self.latent.reward_range

    @property
    def values_lie_in(self) -> tuple[float, float]:
        """Smallest and largest sum of rewards of an episode."""
        return self.latent.values_lie_in

    @cached_property
    def optimal_action_values(self) -> Array:
        """Q* of an action in a latent state, [task, stage, state, action].

        In a block MDP it is exact. Otherwise the agent does not know the latent state: Q* of an
        observation is the mean under its state probabilities, and expectations over the noise
        of the next observation are means over 4,096 quasi-random points, exact to about 1e-4.
        """
        latent, probabilities = self.latent, self.emission.probability_table
        values, next_values = np.zeros_like(latent.rewards), np.zeros(latent.start.shape)
        for stage in reversed(range(latent.horizon)):
            expected = latent.transitions[:, stage] @ next_values[:, None, :, None]
            values[:, stage] = latent.rewards[:, stage] + expected[..., 0]
            for task, action_values in enumerate(values[:, stage]):
                next_values[task] = (probabilities @ action_values).max(-1).mean(-1)
        return values

    @cached_property
    def optimal_values(self) -> Array:
        """V* of the first latent states, before they are observed: [task, state]."""
        best = self.emission.probability_table @ self.optimal_action_values[:, 0, None]
        return np.asarray(best.max(-1).mean(-1))

    def policy_values(self, policy: ArrayLike) -> Array:
        """V at the first stage of a policy that observes the latent state, exact: [task, state].

        Args:
            policy: actions [task, stage, state], or probabilities [task, stage, state, action].
        """
        seen = self.emission.probability_table.mean(1)  # emitted state -> state that acts
        transitions = self.latent.transitions @ seen
        return policy_values(transitions, self.latent.rewards, np.asarray(policy)) @ seen.T

    def with_true_features(self) -> TabularMDPs | RichObservationMDPs:
        """The tasks of an oracle: latent MDPs, or state probabilities without block structure."""
        if self.emission.temperature is None:
            return self.latent
        return replace(self, true_features=True)

    def inputs_of(self, observations: Array, probabilities: Array) -> Tensor:
        """The inputs of all actions, [row, action, input]."""
        actions = np.eye(self.num_actions)
        if self.true_features:
            features = (
                probabilities[:, None, :, None] * actions[:, None]
            )  # [row, action, state, action]
            return torch.from_numpy(features.reshape(len(probabilities), self.num_actions, -1))
        inputs = np.empty((len(observations), self.num_actions, self._input_dim), dtype=np.float32)
        inputs[:, :, : self.observation_dim] = observations[:, None]
        inputs[:, :, self.observation_dim :] = actions
        return torch.from_numpy(inputs)

    @property
    def _input_dim(self) -> int:
        return self.observation_dim + self.num_actions

    def episode(self, episode_index: int) -> RichObservationEpisode:
        """Episode `episode_index`, from 1, with all its random draws."""
        generator = random_stream(self.seed, "observations", episode_index)
        shape = (self.num_tasks, self.horizon + 1)
        noise = torch.randn(
            (*shape, self.emission.num_coordinates), generator=generator, dtype=torch.float64
        )
        draws = torch.rand(shape, generator=generator, dtype=torch.float64)
        return RichObservationEpisode(
            self, self.latent.episode(episode_index), noise.numpy(), draws.numpy()
        )

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {
            "latent_states": self.latent.num_states,
            "observation_dim": self.observation_dim,
            "emission": self.emission.mixing,
            "actions": self.num_actions,
            "horizon": self.horizon,
            "optimal_value": float((self.latent.start * self.optimal_values).sum(1).mean()),
        }


class RichObservationEpisode:
    """One episode of all tasks.

    Args:
        environment: the tasks.
        latent: the episode of the latent states.
        noise: standard normal draws of the observations, [task, stage + 1, coordinate].
        draws: uniform draws of the latent state given the observation, [task, stage + 1].

    Attributes:
        gaps: V* - Q* of the actions taken so far, summed, [task]. For every way of choosing
            actions, its expectation is the regret of the episode.
    """

    def __init__(
        self, environment: RichObservationMDPs, latent: TabularEpisode, noise: Array, draws: Array
    ) -> None:
        self.environment, self._latent = environment, latent
        self._noise, self._draws = noise, draws
        self.gaps = np.zeros(environment.num_tasks)
        self._observe()

    @property
    def states(self) -> Integers:
        """The current latent state of each task, [task]."""
        return self._latent.states

    @property
    def stage(self) -> int:
        """The number of actions taken so far."""
        return self._latent.stage

    @property
    def reached_goal(self) -> Booleans:
        """Whether each task has reached the goal of the environment, [task]."""
        return self._latent.reached_goal

    def offered(self) -> tuple[Tensor, Tensor]:
        """All tasks [task], and the inputs of their observations [task, action, input]."""
        return torch.from_numpy(self.environment.latent.task_indices), self._inputs

    def play(self, actions: Tensor) -> Outcome:
        """Take actions [task]; the last stage ends the episode of every task."""
        stage, probabilities = self.stage, self._state_probabilities
        outcome = self._latent.play(actions)
        values = self.environment.optimal_action_values[:, stage]
        of_observation = (probabilities[:, None] @ values)[:, 0]  # [task, action]
        taken = of_observation[self.environment.latent.task_indices, actions.cpu().numpy()]
        self.gaps += of_observation.max(-1) - taken
        self._observe()
        return Outcome(outcome.rewards, self._inputs, outcome.ended)

    def _observe(self) -> None:
        """Emit the observations of the current states; without blocks, draw the states given it."""
        emission, stage = self.environment.emission, self.stage
        noise = self._noise[:, stage]
        observations = emission(self.states, stage, noise)
        self._state_probabilities = emission.state_probabilities(self.states, noise)
        if emission.temperature is not None:
            self._latent.states = inverse_cdf(
                cumulative(self._state_probabilities), self._draws[:, stage]
            )
        self._inputs = self.environment.inputs_of(observations, self._state_probabilities)

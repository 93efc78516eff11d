"""One task of a finite MDP as a Gymnasium environment, and its registration."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError
from gfucb.environments.bandit_env import BANDITS
from gfucb.environments.bsuite_problems import deep_sea, discounting_chain, umbrella_chain
from gfucb.environments.combination_lock import combination_lock
from gfucb.environments.linear_mdp import linear_mdps
from gfucb.environments.locks import rich_lock, tabular_lock
from gfucb.environments.rich_observations import RichObservationMDPs
from gfucb.environments.tabular_episode import cumulative, inverse_cdf
from gfucb.environments.tabular_mdp import TabularMDPs

Observation = np.int64 | NDArray[np.float64]


class TaskEnv(gymnasium.Env[Observation, np.int64]):
    """One task of a finite MDP as a Gymnasium environment.

    Observations are state numbers; where states are emissions of latent states, they are the
    emitted vectors. An episode is truncated after H steps and never terminated before.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(
        self, environment: TabularMDPs, task: int = 0, render_mode: str | None = None
    ) -> None:
        if not 0 <= task < environment.num_tasks:
            raise InvalidInputError(
                f"tasks are numbered 0 to {environment.num_tasks - 1}, got task {task}"
            )
        self.environment, self.task, self.render_mode = environment, task, render_mode
        self._emissions = _emissions(environment)
        self.observation_space = (
            spaces.Discrete(environment.num_states)
            if self._emissions is None
            else spaces.Box(self._emissions.min(0), self._emissions.max(0), dtype=np.float64)
        )
        self.action_space = spaces.Discrete(environment.num_actions)
        self._stage, self._state = 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw the first state."""
        super().reset(seed=seed)
        environment, self._stage = self.environment, 0
        self._state = int(
            self.np_random.choice(environment.num_states, p=environment.start[self.task])
        )
        return self._observation(), {}

    def step(
        self, action: np.int64
    ) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Draw the reward and the next state."""
        environment = self.environment
        if self._stage >= environment.horizon:
            raise InvalidInputError(
                f"the episode has ended after {environment.horizon} steps; reset it"
            )
        pair = (self.task, self._stage, self._state, self._action_number(action))
        reward = float(environment.rewards[pair])
        if environment.noisy is None or environment.noisy[pair]:
            reward = self._noisy(reward, pair)
        self._state = int(
            self.np_random.choice(environment.num_states, p=environment.transitions[pair])
        )
        self._stage += 1
        return self._observation(), reward, False, self._stage == environment.horizon, {}

    def _observation(self) -> Observation:
        return (
            np.int64(self._state)
            if self._emissions is None
            else self._emissions[self._state].copy()
        )

    def _action_number(self, action: object) -> int:
        try:
            number = operator.index(action)  # type: ignore[arg-type]
        except TypeError:
            number = -1
        if not 0 <= number < self.environment.num_actions:
            raise InvalidInputError(
                f"actions are integers from 0 to {self.environment.num_actions - 1}, got "
                f"{action!r}; action_space.sample() draws one"
            )
        return number

    def _noisy(self, mean: float, pair: tuple[int, ...]) -> float:
        environment = self.environment
        if environment.reward_noise == "bernoulli":
            low, high = environment.bernoulli_rewards(pair)
            return float(high) if self.np_random.random() * (high - low) < mean - low else low
        if environment.reward_noise == "gaussian":
            return mean + environment.noise_scale * float(self.np_random.standard_normal())
        return mean


def _emissions(environment: TabularMDPs) -> NDArray[np.float64] | None:
    """The emitted vector of each state, [state, observation]; None if states are observed."""
    if (
        environment.decoding is None
        or len(np.unique(environment.decoding)) == environment.num_states
    ):
        return None
    # Inputs are (observation, one-hot action): drop the action.
    inputs = environment.inputs[:, 0, : environment.inputs.shape[-1] - environment.num_actions]
    return inputs.to(torch.float64).numpy()


class RichTaskEnv(TaskEnv):
    """One task behind an emission; observations have fresh noise in every step."""

    def __init__(
        self, environment: RichObservationMDPs, task: int = 0, render_mode: str | None = None
    ) -> None:
        super().__init__(environment.latent, task, render_mode)
        self.emission = environment.emission
        shape, bound = (environment.observation_dim,), environment.emission.bound
        self.observation_space = spaces.Box(-bound, bound, shape, dtype=np.float64)

    def _observation(self) -> Observation:
        emission, states = self.emission, np.array([self._state])
        noise = self.np_random.standard_normal((1, emission.num_coordinates))
        if emission.temperature is not None:
            probabilities = cumulative(emission.state_probabilities(states, noise))
            self._state = int(inverse_cdf(probabilities, self.np_random.random(1))[0])
        return emission(states, self._stage, noise)[0]


def make_task_env(
    make_environment: Callable[..., TabularMDPs | RichObservationMDPs],
    task: int = 0,
    render_mode: str | None = None,
    **settings: Any,
) -> TaskEnv:
    """One task of `make_environment(**settings)` as a Gymnasium environment."""
    environment = make_environment(**settings)
    if isinstance(environment, RichObservationMDPs):
        return RichTaskEnv(environment, task, render_mode)
    return TaskEnv(environment, task, render_mode)


REGISTERED: Mapping[str, Callable[..., TabularMDPs | RichObservationMDPs]] = {
    "gfucb/Lock-v0": tabular_lock,
    "gfucb/RichLock-v0": rich_lock,
    "gfucb/CombinationLock-v0": combination_lock,
    "gfucb/DeepSea-v0": deep_sea,
    "gfucb/UmbrellaChain-v0": umbrella_chain,
    "gfucb/DiscountingChain-v0": discounting_chain,
    "gfucb/LinearMDP-v0": linear_mdps,
}


def register_environments() -> None:
    """Register the environments of this library with `gymnasium.make`.

    >>> import gymnasium
    >>> register_environments()
    >>> gymnasium.make("gfucb/Lock-v0", horizon=5, seed=3).observation_space
    Discrete(3)
    """
    for name, make_environment in REGISTERED.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                "gfucb.environments.gymnasium:make_task_env",
                kwargs={"make_environment": make_environment},
            )
    for name, make_bandit in BANDITS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                "gfucb.environments.gymnasium:BanditEnv",
                kwargs={"make_environment": make_bandit},
            )

"""Mountain cars with a fixed horizon: continuous observations, one hill for each task."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from numpy.typing import NDArray

from gfucb.core.random import random_stream
from gfucb.core.validation.settings import validate_count, validate_seed
from gfucb.environments.gymnasium import GymnasiumMDPs

Observation = NDArray[np.float32]

GRAVITY = 0.0025
# Gravities of tasks differ by up to this factor, in both directions. With the largest one the car
# still needs to swing, and still arrives in time.
SPREAD = 0.15


class SparseMountainCar(gymnasium.Wrapper[Observation, int, Observation, int]):
    """Repeats each action, pays 1 at the goal instead of -1 in every step, scales observations."""

    def __init__(self, env: gymnasium.Env[Observation, int], repeats: int) -> None:
        super().__init__(env)
        self.repeats = repeats
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), dtype=np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw the first position."""
        observation, info = self.env.reset(seed=seed, options=options)
        return _scaled(observation), info

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take the action until the goal is reached, at most `repeats` times."""
        for _ in range(self.repeats):
            observation, _, terminated, truncated, info = self.env.step(action)
            if terminated:
                break
        return _scaled(observation), float(terminated), terminated, truncated, info


def _scaled(observation: Observation) -> Observation:
    """Position and velocity in [-1, 1]."""
    return np.array([(observation[0] + 0.3) / 0.9, observation[1] / 0.07], dtype=np.float32)


def mountain_cars(
    horizon: int = 30, *, num_tasks: int = 1, action_repeat: int = 6, seed: int = 0
) -> GymnasiumMDPs:
    """Mountain cars of Gymnasium that pay 1 at the goal; V* = 1 with the default horizon.

    >>> environment = mountain_cars(num_tasks=3)
    >>> tasks, candidates = environment.episode(1).offered()
    >>> tuple(candidates.shape)  # tasks, actions, position and velocity and a one-hot action
    (3, 3, 5)

    An action (left, none, right) lasts `action_repeat` steps: an episode of 180 steps has 30
    stages. Gravity is that of Gymnasium in the first task; in the others it differs by a factor
    drawn from 0.85 to 1.15, which changes when to turn. The rewards are sparse: an agent that
    does not explore never sees one. Position and velocity are scaled to [-1, 1].

    Args:
        horizon: H.
        num_tasks: M.
        action_repeat: steps of an action.
        seed: gravities and first positions derive from it.
    """
    validate_count(action_repeat, "action_repeat")
    generator = random_stream(validate_seed(seed), "gravity")
    draws = torch.rand(validate_count(num_tasks, "num_tasks"), generator=generator).tolist()
    factors = [1.0, *(1 + SPREAD * (2 * draw - 1) for draw in draws[1:])]
    cars = []
    for factor in factors:
        car = MountainCarEnv()
        car.gravity = GRAVITY * factor
        cars.append(SparseMountainCar(car, action_repeat))
    return GymnasiumMDPs(cars, horizon, seed=seed, value_range=(0.0, 1.0))

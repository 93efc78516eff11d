"""Emissions: from latent states to observations with fresh noise.

The coordinates behind an observation are those of the combination locks of Misra et al. (2020) and
Zhang et al. (2022): a one-hot latent state, a one-hot stage, and Gaussian noise on both. A mixing
hides them: no coordinate of an observation identifies the state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import torch
from scipy.linalg import hadamard

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.validation.settings import (
    validate_count,
    validate_not_negative,
    validate_number,
    validate_seed,
)
from gfucb.core.validation.tables import Array
from gfucb.environments.tabular_episode import Integers

MixingKind = Literal["hadamard", "nonlinear", "identity"]
# Below it a network could not tell the sign of its inputs; at 1 it would be linear.
NEGATIVE_SLOPE = 0.2
QUADRATURE_POINTS = 4096


@dataclass(frozen=True)
class Emission:
    """Observations of latent states, with fresh noise in every step.

    >>> emission = Emission(num_states=3, horizon=12)
    >>> emission.observation_dim
    16

    Args:
        num_states: S, the number of latent states.
        horizon: H; observations show the stages 0 .. H, the last one after the last action.
        mixing: `hadamard` rotates the coordinates by a Hadamard matrix of elements +1 and -1;
            `nonlinear` maps them through a random invertible network; `identity` shows them.
        noise_scale: standard deviation of the noise on every coordinate of state and stage.
        temperature: None if an observation has one latent state, which can be decoded (a block
            MDP). Otherwise the latent state is drawn anew given the observation, with probabilities
            softmax(noisy coordinates of the state / temperature): the simplex features of Zhang
            et al. (2022), which no decoder identifies.
        seed: the weights of the `nonlinear` mixing derive from it.
    """

    num_states: int
    horizon: int
    mixing: MixingKind = "hadamard"
    noise_scale: float = 0.1
    temperature: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        validate_count(self.num_states, "num_states")
        validate_count(self.horizon, "horizon")
        validate_seed(self.seed)
        validate_not_negative(self.noise_scale, "noise_scale")
        if self.mixing not in get_args(MixingKind):
            raise InvalidInputError(
                f"emission must be 'hadamard', 'nonlinear' or 'identity', got {self.mixing!r}"
            )
        if self.temperature is not None and validate_number(self.temperature, "temperature") <= 0:
            raise InvalidInputError(
                f"temperature must be positive, or None for a block MDP, got {self.temperature}"
            )

    @property
    def num_coordinates(self) -> int:
        """S + H + 1: the coordinates of state and stage."""
        return self.num_states + self.horizon + 1

    @property
    def observation_dim(self) -> int:
        """The number of coordinates, rounded up to a power of two."""
        return 1 << (self.num_coordinates - 1).bit_length()

    @property
    def bound(self) -> float:
        """A number that no element of an observation exceeds, but for noise of ten deviations."""
        # No mixing has a norm above the root of the dimension.
        norm = 2**0.5 + 10 * self.noise_scale * self.num_coordinates**0.5
        return float(norm * self.observation_dim**0.5)

    def __call__(self, states: Integers, stage: int, noise: Array) -> Array:
        """The observations [n, observation] of latent states [n] in a stage.

        Args:
            states: latent states, [n].
            stage: from 0 to H.
            noise: standard normal draws, [n, num_coordinates].
        """
        coordinates = np.zeros((len(states), self.observation_dim))
        coordinates[:, : self.num_coordinates] = self.noise_scale * noise
        coordinates[np.arange(len(states)), states] += 1
        coordinates[:, self.num_states + stage] += 1
        return self._mix(coordinates)

    def state_probabilities(self, states: Integers, noise: Array) -> Array:
        """Probabilities of the latent state given the observation, [n, state]."""
        if self.temperature is None:
            return np.eye(self.num_states)[states]
        coordinates = self.noise_scale * noise[:, : self.num_states]
        coordinates[np.arange(len(states)), states] += 1
        logits = coordinates / self.temperature
        weights = np.exp(logits - logits.max(1, keepdims=True))
        return np.asarray(weights / weights.sum(1, keepdims=True))

    @cached_property
    def probability_table(self) -> Array:
        """State probabilities of observations of each latent state, [state, point, state].

        A block MDP has one point. Otherwise the points are a quasi-random sample of the noise, over
        which expectations are means.
        """
        states = np.arange(self.num_states)
        if self.temperature is None:
            return self.state_probabilities(states, np.zeros((self.num_states, 0)))[:, None]
        # Few environments draw these points, and scipy.stats is a large part of what runs load.
        from scipy.stats import qmc

        sample = qmc.MultivariateNormalQMC(np.zeros(self.num_states), seed=0)
        noise = np.asarray(sample.random(QUADRATURE_POINTS))
        return np.stack(
            [self.state_probabilities(np.full(len(noise), state), noise) for state in states]
        )

    @cached_property
    def _mix(self) -> Callable[[Array], Array]:
        if self.mixing == "identity":
            return lambda coordinates: coordinates
        if self.mixing == "hadamard":
            rotation = hadamard(self.observation_dim).astype(np.float64)
            return lambda coordinates: coordinates @ rotation
        first, second = (self._rotation(layer) for layer in ("first layer", "second layer"))
        # Observations have elements of about 1, as those of the Hadamard matrix.
        scale = self.observation_dim**0.5

        def network(coordinates: Array) -> Array:
            hidden = scale * coordinates @ first
            return np.asarray(np.where(hidden > 0, hidden, NEGATIVE_SLOPE * hidden) @ second)

        return network

    def _rotation(self, layer: str) -> Array:
        """A random rotation; invertible, so that the mixing loses nothing."""
        shape = (self.observation_dim, self.observation_dim)
        generator = random_stream(self.seed, "emission", layer)
        normal = torch.randn(shape, generator=generator, dtype=torch.float64)
        return np.asarray(np.linalg.qr(normal.numpy())[0])

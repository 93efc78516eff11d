"""Linear MDPs that share their features, and a mixture with MDPs that are not linear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gfucb.core.memory import memory_of_environment
from gfucb.core.random import random_stream
from gfucb.core.validation.settings import (
    MOST_OBJECTS,
    validate_count,
    validate_number,
    validate_seed,
)
from gfucb.core.validation.tables import Array
from gfucb.environments.tabular_mdp import TabularMDPs
from gfucb.models import FiniteClass, NeuralRepresentation, features_of


@dataclass(frozen=True, eq=False)
class LinearMDPs(TabularMDPs):
    """Finite MDPs that share features phi*(s, a) in the simplex, mixed with arbitrary ones.

    Task i has anchor distributions mu_hj over states and rewards rho_h in [0, 1/H]^k in each stage,
    with P = sum_j phi*_j mu_j and r = <phi*, rho>. The backup of any next values V is therefore
    linear, r + P V = <phi*, rho + mu V>, and the inherent Bellman error is zero for every class
    that contains phi*. With `mix` > 0, (P, r) is replaced by (1 - mix) (P, r) + mix (P', r') with
    arbitrary tables P', r' of the same seed. The error is then at most `mix`, because all backups
    stay in [0, 1].

    Attributes:
        representation_class: the candidate representations that an agent may use; one is true.
        mix: weight of the arbitrary MDPs; 0 is linear, 1 arbitrary.
    """

    representation_class: FiniteClass | None = None
    mix: float = 0.0

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {**super().describe(), "mix": self.mix}


@memory_of_environment
def linear_mdps(
    *,
    num_tasks: int = 10,
    horizon: int = 5,
    num_states: int = 30,
    num_actions: int = 10,
    feature_dim: int = 5,
    input_dim: int = 8,
    num_representations: int = 16,
    sharpness: float = 6.0,
    concentration: float = 0.1,
    noise_scale: float = 0.1,
    mix: float = 0.0,
    seed: int = 0,
) -> LinearMDPs:
    """Draw tasks as described in `LinearMDPs`.

    Inputs x(s, a) are Gaussian; phi*(x) = softmax(sharpness B x / sqrt(input_dim)) with one of
    several random B. Large `sharpness` makes features nearly one-hot. `concentration` is that of
    the Dirichlet distributions of the anchors; small values put an anchor on few states.
    `noise_scale` is the standard deviation of the Gaussian noise on rewards.
    """
    sizes = {"num_tasks": num_tasks, "horizon": horizon, "num_states": num_states}
    sizes |= {"num_actions": num_actions, "feature_dim": feature_dim, "input_dim": input_dim}
    for name, size in sizes.items():
        validate_count(size, name)
    validate_count(num_representations, "num_representations", at_most=MOST_OBJECTS)
    validate_number(mix, "mix", at_least=0.0, at_most=1.0)
    validate_number(sharpness, "sharpness", above=0.0)
    validate_number(concentration, "concentration", above=0.0)
    generator = random_stream(validate_seed(seed), "truth")
    inputs = torch.randn(
        num_states, num_actions, input_dim, generator=generator, dtype=torch.float64
    )
    members = [
        softmax_features(input_dim, feature_dim, sharpness, generator)
        for _ in range(num_representations)
    ]
    true_member = members[int(torch.randint(num_representations, (1,), generator=generator))]
    features = features_of(true_member, inputs.flatten(0, 1)).unflatten(
        0, (num_states, num_actions)
    )
    transitions, rewards = _linear_tables(features, num_tasks, horizon, concentration, seed)
    other_transitions, other_rewards = _arbitrary_tables(rewards.shape, horizon, seed)
    return LinearMDPs(
        (1 - mix) * transitions + mix * other_transitions,
        (1 - mix) * rewards + mix * other_rewards,
        np.full((num_tasks, num_states), 1 / num_states),
        inputs,
        seed=seed,
        reward_range=(0.0, 1 / horizon),
        value_range=(0.0, 1.0),
        reward_noise="gaussian",
        noise_scale=noise_scale,
        true_features=features,
        representation_class=FiniteClass(members),
        mix=mix,
    )


def softmax_features(
    input_dim: int, feature_dim: int, sharpness: float, generator: torch.Generator
) -> NeuralRepresentation:
    """phi(x) = softmax(sharpness B x / sqrt(input_dim)), B Gaussian."""
    weights = torch.randn(feature_dim, input_dim, generator=generator, dtype=torch.float64)
    layer = nn.Linear(input_dim, feature_dim, bias=False, dtype=torch.float64)
    layer.weight.data = sharpness * weights / input_dim**0.5
    return NeuralRepresentation(layer.requires_grad_(False), "simplex")


def _linear_tables(
    features: Tensor, num_tasks: int, horizon: int, concentration: float, seed: int
) -> tuple[Array, Array]:
    num_states, _, feature_dim = features.shape
    phi = features.numpy()
    shape = (num_tasks, horizon, feature_dim, num_states)
    anchors = _dirichlet(shape, concentration, random_stream(seed, "anchors"))
    uniform = torch.rand(shape[:3], generator=random_stream(seed, "rewards"), dtype=torch.float64)
    weights = uniform.numpy() ** 3 / horizon
    transitions = np.einsum("sak,thkn->thsan", phi, anchors)
    return transitions, np.einsum("sak,thk->thsa", phi, weights)


def _arbitrary_tables(shape: tuple[int, ...], horizon: int, seed: int) -> tuple[Array, Array]:
    transitions = _dirichlet((*shape, shape[2]), 1.0, random_stream(seed, "other transitions"))
    generator = random_stream(seed, "other rewards")
    rewards = torch.rand(shape, generator=generator, dtype=torch.float64).numpy() / horizon
    return transitions, rewards


def _dirichlet(shape: tuple[int, ...], concentration: float, generator: torch.Generator) -> Array:
    """Dirichlet draws along the last axis: normalised gamma draws."""
    rates = torch.full(shape, concentration, dtype=torch.float64)
    draws = torch._standard_gamma(rates, generator=generator).numpy() + 1e-300
    rows = draws / draws.sum(axis=-1, keepdims=True)
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))

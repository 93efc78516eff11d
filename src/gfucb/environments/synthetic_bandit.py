"""Synthetic bandits: the true function is a known member of a finite or linear class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.features import feature_dim_of
from gfucb.core.memory import memory_of_environment
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound
from gfucb.core.validation.record_fields import require_type
from gfucb.core.validation.settings import (
    MOST_OBJECTS,
    validate_count,
    validate_number,
    validate_seed,
)
from gfucb.models import (
    FiniteClass,
    LinearClass,
    LinearRepresentation,
    MultiheadFunction,
    NeuralRepresentation,
    features_of,
)


@dataclass(frozen=True, eq=False)
class SyntheticBandit:
    """Candidates on the unit sphere, rewards f*_i(x) + Gaussian noise with |f*| <= 1.

    All randomness of round t derives from (seed, t).

    Attributes:
        true_function: f*; its representation is in `representation_class`, its heads are unit
            vectors.
        representation_class: the class an agent may use.
        num_tasks: M.
        num_actions: K.
        input_dim: length of the inputs.
        noise_scale: standard deviation of the noise.
        seed: rounds derive from it.
        value_range: bounds of f*.
    """

    value_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    true_function: MultiheadFunction
    representation_class: FiniteClass | LinearClass
    num_tasks: int
    num_actions: int
    input_dim: int
    noise_scale: float
    seed: int

    def __post_init__(self) -> None:
        require_type(self.true_function, "true_function", MultiheadFunction)
        for name in ("num_tasks", "num_actions", "input_dim"):
            validate_count(getattr(self, name), name)
        if self.true_function.num_tasks != self.num_tasks:
            raise InvalidInputError(
                f"true_function must have a head for each of {self.num_tasks} tasks, got "
                f"{self.true_function.num_tasks}"
            )
        example = torch.zeros(1, self.input_dim, dtype=torch.float64)
        feature_dim = feature_dim_of(self.true_function.representation, example)
        if feature_dim != self.true_function.heads.shape[1]:
            raise InvalidInputError(
                f"true_function has heads of {self.true_function.heads.shape[1]} numbers for "
                f"{feature_dim} features"
            )
        validate_number(self.noise_scale, "noise_scale", above=0.0)
        validate_seed(self.seed)

    @memory_of_environment
    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1: candidates [task, action, input]."""
        generator = random_stream(self.seed, "round", round_index)
        shape = (self.num_tasks, self.num_actions, self.input_dim)
        candidates = unit_vectors(shape, generator)
        noise = torch.randn(self.num_tasks, generator=generator, dtype=torch.float64)
        features = features_of(self.true_function.representation, candidates.flatten(0, 1))
        features = features.unflatten(0, shape[:2])
        return BanditRound(
            candidates=candidates,
            mean_rewards=self.true_function.values_of_features(
                features, torch.arange(self.num_tasks)[:, None]
            ),
            noise=self.noise_scale * noise,
            true_features=features,
        )

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {
            "actions": self.num_actions,
            "input_dim": self.input_dim,
            "feature_dim": self.true_function.heads.shape[1],
        }


@memory_of_environment
def finite_bandit(
    *,
    num_tasks: int = 4,
    num_actions: int = 5,
    input_dim: int = 6,
    feature_dim: int = 2,
    num_representations: int = 8,
    noise_scale: float = 0.1,
    seed: int = 0,
) -> SyntheticBandit:
    """f* uses one of several random non-linear maps x -> tanh(2 B x) / |tanh(2 B x)|."""
    _validate_counts(
        num_tasks=num_tasks,
        num_actions=num_actions,
        input_dim=input_dim,
        feature_dim=feature_dim,
    )
    validate_count(num_representations, "num_representations", at_most=MOST_OBJECTS)
    generator = random_stream(validate_seed(seed), "truth")
    members = [
        _random_features(input_dim, feature_dim, generator) for _ in range(num_representations)
    ]
    true_member = int(torch.randint(num_representations, (1,), generator=generator))
    heads = unit_vectors((num_tasks, feature_dim), generator)
    true_function = MultiheadFunction(members[true_member], heads)
    return SyntheticBandit(
        true_function, FiniteClass(members), num_tasks, num_actions, input_dim, noise_scale, seed
    )


@memory_of_environment
def linear_bandit(
    *,
    num_tasks: int = 4,
    num_actions: int = 5,
    input_dim: int = 6,
    feature_dim: int = 2,
    noise_scale: float = 0.1,
    seed: int = 0,
) -> SyntheticBandit:
    """f* uses x -> B x with a random B of orthonormal rows."""
    _validate_counts(
        num_tasks=num_tasks, num_actions=num_actions, input_dim=input_dim, feature_dim=feature_dim
    )
    generator = random_stream(validate_seed(seed), "truth")
    known = LinearClass(input_dim, feature_dim)
    raw = torch.randn(input_dim, feature_dim, generator=generator, dtype=torch.float64)
    representation = LinearRepresentation(torch.linalg.qr(raw).Q.T)
    true_function = MultiheadFunction(
        representation, unit_vectors((num_tasks, feature_dim), generator)
    )
    return SyntheticBandit(
        true_function, known, num_tasks, num_actions, input_dim, noise_scale, seed
    )


def unit_vectors(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Uniform on the unit sphere of the last axis."""
    raw = torch.randn(shape, generator=generator, dtype=torch.float64)
    return raw / raw.norm(dim=-1, keepdim=True)


def _validate_counts(**counts: int) -> None:
    for name, count in counts.items():
        validate_count(count, name)


def _random_features(
    input_dim: int, feature_dim: int, generator: torch.Generator
) -> NeuralRepresentation:
    weights = torch.randn(feature_dim, input_dim, generator=generator, dtype=torch.float64)
    layer = nn.Linear(input_dim, feature_dim, bias=False, dtype=torch.float64)
    layer.weight.data = 2 * weights
    return NeuralRepresentation(nn.Sequential(layer, nn.Tanh()), "l2")

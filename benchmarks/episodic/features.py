"""Environments whose inputs are random features, for agents with linear values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.protocols import Episode, EpisodicEnvironment
from gfucb.core.random import random_stream
from gfucb.core.records import Outcome
from gfucb.environments import TabularMDPs

# Features of an input are so many for each action, and at most as many in all.
FEATURES_PER_ACTION, LARGEST_NUMBER = 30, 120


class RandomFeatures:
    """Random Fourier features of the observation for the action that was taken, zeros for others.

    Args:
        observation_dim: inputs are (observation, one-hot action).
        num_actions: A.
        length_scale: of the Gaussian kernel that the features approximate.
    """

    def __init__(self, observation_dim: int, num_actions: int, length_scale: float) -> None:
        self.observation_dim = observation_dim
        self.count = min(FEATURES_PER_ACTION, LARGEST_NUMBER // num_actions)
        generator = random_stream(0, "random features")
        shape = (observation_dim, self.count)
        self.frequencies = torch.randn(shape, generator=generator) / length_scale
        self.phases = 2 * math.pi * torch.rand(self.count, generator=generator)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Features [..., action * feature] of inputs [..., observation + action]."""
        observations = inputs[..., : self.observation_dim].to(torch.float32)
        actions = inputs[..., self.observation_dim :].to(torch.float64)
        waves = torch.cos(observations @ self.frequencies + self.phases).to(torch.float64)
        waves = waves * (2 / self.count) ** 0.5
        return (actions[..., :, None] * waves[..., None, :]).flatten(-2)


def on_random_features(
    environment: EpisodicEnvironment, length_scale: float
) -> EpisodicEnvironment:
    """The environment with random features as inputs; the dynamics do not change."""
    example = environment.episode(1).offered()[1]
    num_actions = environment.num_actions
    features = RandomFeatures(example.shape[-1] - num_actions, num_actions, length_scale)
    if isinstance(environment, TabularMDPs):
        return replace(environment, inputs=features(environment.inputs), decoding=None)
    return FeatureEnvironment(environment, features)


class FeatureEnvironment:
    """Any episodic environment, seen through features."""

    def __init__(self, environment: EpisodicEnvironment, features: RandomFeatures) -> None:
        self.inner, self.features = environment, features
        self.num_tasks, self.num_actions = environment.num_tasks, environment.num_actions
        self.horizon = environment.horizon
        self.concurrent_episodes = getattr(environment, "concurrent_episodes", True)
        self.values_lie_in = getattr(
            environment, "values_lie_in", getattr(environment, "value_range", None)
        )

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment."""
        return self.inner.describe()

    def episode(self, episode_index: int) -> Episode:
        """The same episode."""
        inner = self.inner.episode(episode_index)
        is_counted = hasattr(inner, "reached_goal")
        return (_GoalEpisode if is_counted else _FeatureEpisode)(inner, self.features)


class _FeatureEpisode:
    def __init__(self, inner: Any, features: RandomFeatures) -> None:
        self.inner, self.features = inner, features

    def offered(self) -> tuple[Tensor, Tensor]:
        tasks, candidates = self.inner.offered()
        return tasks, self.features(candidates) if len(tasks) else candidates

    def play(self, actions: Tensor) -> Outcome:
        outcome = self.inner.play(actions)
        return replace(outcome, next_candidates=self.features(outcome.next_candidates))


class _GoalEpisode(_FeatureEpisode):
    @property
    def reached_goal(self) -> NDArray[np.bool_]:
        return np.asarray(self.inner.reached_goal)

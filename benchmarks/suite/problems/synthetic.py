"""Synthetic environments: stores, fixed arms, rare rewards."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gfucb.core.discrete_actions import with_actions
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound

# Text columns of the stores and how many values each has.
TEXT_COLUMNS = {"weekday": 7, "weather": 4, "category": 6}
NUM_NUMBERS = 4  # temperature, price, stock, season
NUM_STORE_COLUMNS = sum(TEXT_COLUMNS.values()) + NUM_NUMBERS


class Stores:
    """Stores choose one of several promotions, given a table row of text and numbers.

    A context has three text columns, one-hot, and four numbers in [-1, 1]. The mean reward of
    promotion a in store i is 1/2 + <w_i, tanh(B_a c + b_a)> / 2 with few shared features and
    |w_i|_1 <= 1; the w_i vary around a common mean. From round `drift_at` + 1 on, stores have
    other w_i.
    """

    value_range = (0.0, 1.0)

    def __init__(
        self,
        *,
        num_tasks: int = 50,
        num_promotions: int = 5,
        feature_dim: int = 4,
        noise_scale: float = 0.1,
        drift_at: int | None = None,
        seed: int = 0,
    ) -> None:
        self.num_tasks, self.discrete_actions, self.seed = num_tasks, num_promotions, seed
        self.noise_scale, self.drift_at = noise_scale, drift_at
        generator = random_stream(seed, "truth")
        shape = (num_promotions, NUM_STORE_COLUMNS, feature_dim)
        self.maps = torch.randn(shape, generator=generator, dtype=torch.float64)
        self.biases = torch.randn(shape[0], 1, shape[2], generator=generator, dtype=torch.float64)
        self.weights = [self._draw_weights(feature_dim, generator) for _ in range(2)]

    def _draw_weights(self, feature_dim: int, generator: torch.Generator) -> Tensor:
        common = torch.randn(1, feature_dim, generator=generator, dtype=torch.float64)
        shape = (self.num_tasks, feature_dim)
        raw = 0.5 * common + torch.randn(shape, generator=generator, dtype=torch.float64)
        return raw / raw.abs().sum(1, keepdim=True)

    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1: candidates [store, promotion, columns + promotions]."""
        generator = random_stream(self.seed, "round", round_index)
        contexts = self._contexts(generator)
        noise = torch.randn(self.num_tasks, generator=generator, dtype=torch.float64)
        features = torch.tanh((contexts @ self.maps + self.biases) / math.sqrt(2)).transpose(0, 1)
        is_later = self.drift_at is not None and round_index > self.drift_at
        weights = self.weights[int(is_later)]
        ones = torch.ones(*features.shape[:2], 1, dtype=torch.float64)
        return BanditRound(
            candidates=with_actions(contexts, self.discrete_actions),
            mean_rewards=0.5 + 0.5 * torch.einsum("taf,tf->ta", features, weights),
            noise=self.noise_scale * noise,
            true_features=torch.cat([features, ones], 2),
        )

    def _contexts(self, generator: torch.Generator) -> Tensor:
        columns = [
            one_hot(torch.randint(size, (self.num_tasks,), generator=generator), size)
            for size in TEXT_COLUMNS.values()
        ]
        shape = (self.num_tasks, NUM_NUMBERS)
        numbers = 2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1
        return torch.cat([*(column.to(torch.float64) for column in columns), numbers], 1)

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"actions": self.discrete_actions, "columns": NUM_STORE_COLUMNS}


class FixedArms:
    """Every task has the same arms in every round, and a best arm of its own.

    Inputs are one-hot arms. The best arm has mean 1/2 + gap, all others 1/2.
    """

    value_range = (0.0, 1.0)
    discrete_actions = None  # there is no context beside the arm

    def __init__(
        self,
        *,
        num_tasks: int = 20,
        num_arms: int = 10,
        gap: float = 0.2,
        noise_scale: float = 0.5,
        seed: int = 0,
    ) -> None:
        self.num_tasks, self.num_arms, self.seed = num_tasks, num_arms, seed
        self.noise_scale = noise_scale
        generator = random_stream(seed, "truth")
        best = torch.randint(num_arms, (num_tasks,), generator=generator)
        self.means = 0.5 + gap * one_hot(best, num_arms).to(torch.float64)

    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1: candidates [task, arm, arm]."""
        generator = random_stream(self.seed, "round", round_index)
        noise = torch.randn(self.num_tasks, generator=generator, dtype=torch.float64)
        arms = torch.eye(self.num_arms, dtype=torch.float64).expand(self.num_tasks, -1, -1)
        return BanditRound(arms, self.means, self.noise_scale * noise, true_features=arms)

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"actions": self.num_arms}


class RareRewards:
    """Rewards 0 or 1, mostly 0: clicks whose probability depends on context and action.

    The probability in task i is sigmoid(intercept + slope <w_i, B_a c>) for contexts c on the unit
    sphere, with shared B_a and unit vectors w_i. With the defaults its mean is about 0.03 and that
    of the best of five actions about 0.08.
    """

    value_range = (0.0, 1.0)

    def __init__(
        self,
        *,
        num_tasks: int = 10,
        num_actions: int = 5,
        context_dim: int = 6,
        feature_dim: int = 3,
        intercept: float = -4.5,
        slope: float = 1.5,
        seed: int = 0,
    ) -> None:
        self.num_tasks, self.discrete_actions, self.seed = num_tasks, num_actions, seed
        self.context_dim, self.intercept, self.slope = context_dim, intercept, slope
        generator = random_stream(seed, "truth")
        shape = (num_actions, context_dim, feature_dim)
        self.maps = torch.randn(shape, generator=generator, dtype=torch.float64)
        weights = torch.randn(num_tasks, feature_dim, generator=generator, dtype=torch.float64)
        self.weights = weights / weights.norm(dim=1, keepdim=True)

    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1: candidates [task, action, context + actions]."""
        generator = random_stream(self.seed, "round", round_index)
        shape = (self.num_tasks, self.context_dim)
        contexts = torch.randn(shape, generator=generator, dtype=torch.float64)
        contexts = contexts / contexts.norm(dim=1, keepdim=True)
        features = (contexts @ self.maps).transpose(0, 1)  # [task, action, feature]
        scores = torch.einsum("taf,tf->ta", features, self.weights)
        means = torch.sigmoid(self.intercept + self.slope * scores)
        draws = torch.rand(self.num_tasks, 1, generator=generator, dtype=torch.float64)
        return BanditRound(
            candidates=with_actions(contexts, self.discrete_actions),
            mean_rewards=means,
            noise=(draws < means).to(torch.float64) - means,
            true_features=means[:, :, None],
        )

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"actions": self.discrete_actions, "context_dim": self.context_dim}

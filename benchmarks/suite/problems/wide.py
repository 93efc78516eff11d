"""Many columns in which rewards are not linear."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound

NUM_HIDDEN = 16


class DeepColumns:
    """Rows of normal columns; rewards are linear in few outputs of a network with two layers.

    The network tanh(relu(x A) B) is random and the same for all tasks.
    """

    value_range = None  # agents are not given the range; baselines know about it
    true_range = (-1.0, 1.0)
    discrete_actions = None

    def __init__(
        self,
        *,
        num_tasks: int = 20,
        num_columns: int = 30,
        num_actions: int = 10,
        feature_dim: int = 4,
        noise_scale: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.num_tasks, self.num_columns, self.num_actions = num_tasks, num_columns, num_actions
        self.noise_scale, self.seed = noise_scale, seed
        generator = random_stream(seed, "truth")

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        self.first = 1.5 * normal(num_columns, NUM_HIDDEN) / math.sqrt(num_columns)
        self.second = normal(NUM_HIDDEN, feature_dim) / 2
        self.weights = normal(num_tasks, feature_dim) / 2

    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1: candidates [task, action, column]."""
        generator = random_stream(self.seed, "round", round_index)
        shape = (self.num_tasks, self.num_actions, self.num_columns)
        rows = torch.randn(shape, generator=generator, dtype=torch.float64)
        noise = torch.randn(self.num_tasks, generator=generator, dtype=torch.float64)
        features = torch.tanh(torch.relu(rows @ self.first) @ self.second)
        return BanditRound(
            candidates=rows,
            mean_rewards=torch.einsum("taf,tf->ta", features, self.weights),
            noise=self.noise_scale * noise,
            true_features=features,
        )

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"actions": self.num_actions, "columns": self.num_columns}

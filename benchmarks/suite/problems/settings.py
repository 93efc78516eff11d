"""Small environments in which contexts do not make an agent explore: prices, doses, steady arms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gfucb.core.discrete_actions import with_actions
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound


class Table(ABC):
    """Candidates with known means and normal noise; subclasses say which."""

    value_range: tuple[float, float] | None = (0.0, 1.0)
    discrete_actions: int | None = None
    num_tasks: int
    noise_scale = 0.1

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self._draw_truth(random_stream(seed, "truth"))

    @abstractmethod
    def _draw_truth(self, generator: torch.Generator) -> None:
        """Draw what the seed determines once."""

    @abstractmethod
    def _inputs(self, generator: torch.Generator) -> Tensor:
        """Candidates [task, action, column], or contexts [task, column] of discrete actions."""

    @abstractmethod
    def _means(self, inputs: Tensor) -> Tensor:
        """[task, action]."""

    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1."""
        generator = random_stream(self.seed, "round", round_index)
        inputs = self._inputs(generator)
        means = self._means(inputs)
        if self.discrete_actions is not None:
            inputs = with_actions(inputs, self.discrete_actions)
        return BanditRound(
            candidates=inputs,
            mean_rewards=means,
            noise=self._noise(inputs, means, generator),
            true_features=means[:, :, None],
        )

    def _noise(self, inputs: Tensor, means: Tensor, generator: torch.Generator) -> Tensor:
        return self.noise_scale * _normal(generator, self.num_tasks)

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"noise": self.noise_scale}


class Prices(Table):
    """Eleven prices p from 0 to 1; a customer of task i buys with probability s(a_i - b_i p).

    The reward is the price, or 0 if the customer does not buy.
    """

    num_tasks = 10

    def _draw_truth(self, generator: torch.Generator) -> None:
        self.levels = 2 + 0.7 * _normal(generator, self.num_tasks, 1)
        self.slopes = 4 + 3 * _uniform(generator, self.num_tasks, 1)
        self.prices = torch.linspace(0, 1, 11, dtype=torch.float64)

    def _inputs(self, generator: torch.Generator) -> Tensor:
        return self.prices[None, :, None].expand(self.num_tasks, -1, -1)

    def _means(self, inputs: Tensor) -> Tensor:
        return self.prices * self._probabilities()

    def _probabilities(self) -> Tensor:
        return torch.sigmoid(self.levels - self.slopes * self.prices)

    def _noise(self, inputs: Tensor, means: Tensor, generator: torch.Generator) -> Tensor:
        is_sold = _uniform(generator, self.num_tasks, 1) < self._probabilities()
        return self.prices * is_sold - means


class Doses(Table):
    """All 64 combinations of three doses with four levels; the best ones are not at the ends."""

    num_tasks = 1

    def _draw_truth(self, generator: torch.Generator) -> None:
        levels = torch.linspace(0, 1, 4, dtype=torch.float64)
        self.combinations = torch.cartesian_prod(levels, levels, levels)
        self.best = 0.2 + 0.6 * _uniform(generator, 3)

    def _inputs(self, generator: torch.Generator) -> Tensor:
        return self.combinations[None]

    def _means(self, inputs: Tensor) -> Tensor:
        return 1 - 0.8 * (inputs - self.best).square().sum(-1)


class SimilarArms(Table):
    """Forty tasks whose eight arms have nearly the same means."""

    num_tasks = 40
    noise_scale = 0.3

    def _draw_truth(self, generator: torch.Generator) -> None:
        common, own = _normal(generator, 1, 8), _normal(generator, self.num_tasks, 8)
        self.means = (0.5 + 0.15 * common + 0.03 * own).clamp(0, 1)

    def _inputs(self, generator: torch.Generator) -> Tensor:
        return torch.eye(8, dtype=torch.float64).expand(self.num_tasks, -1, -1)

    def _means(self, inputs: Tensor) -> Tensor:
        return self.means


class ManyArms(Table):
    """One task with twenty arms, whose means are uniform."""

    num_tasks = 1
    noise_scale = 0.2

    def _draw_truth(self, generator: torch.Generator) -> None:
        self.means = _uniform(generator, 1, 20)

    def _inputs(self, generator: torch.Generator) -> Tensor:
        return torch.eye(20, dtype=torch.float64)[None]

    def _means(self, inputs: Tensor) -> Tensor:
        return self.means


class ShortRun(Table):
    """Ten candidates with five normal columns, in which the rewards of one task are linear."""

    num_tasks = 1

    def _draw_truth(self, generator: torch.Generator) -> None:
        weights = _normal(generator, 5)
        self.weights = weights / weights.norm()

    def _inputs(self, generator: torch.Generator) -> Tensor:
        return _normal(generator, 1, 10, 5)

    def _means(self, inputs: Tensor) -> Tensor:
        return 0.5 + 0.2 * (inputs @ self.weights)


class SteadyContexts(Table):
    """Six arms for each of three tasks, whose contexts hardly vary."""

    num_tasks, discrete_actions = 3, 6
    value_range = None  # agents are not given the range; baselines know about it
    true_range = (0.0, 1.0)

    def _draw_truth(self, generator: torch.Generator) -> None:
        self.centers = _normal(generator, self.num_tasks, 4)
        self.weights = _normal(generator, self.num_tasks, 6, 4) / 2

    def _inputs(self, generator: torch.Generator) -> Tensor:
        return self.centers + 0.05 * _normal(generator, self.num_tasks, 4)

    def _means(self, inputs: Tensor) -> Tensor:
        return 0.5 + 0.25 * torch.einsum("td,tad->ta", inputs, self.weights)


def _normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _uniform(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.rand(*shape, generator=generator, dtype=torch.float64)

"""The wheel bandit (Riquelme, Tucker and Snoek, 2018): rare large rewards at the rim of a disk."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gfucb.core.discrete_actions import with_actions
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound
from gfucb.core.validation.settings import validate_number, validate_seed

NUM_ARMS = 5
SAFE, OTHER, LARGE = 1.2, 1.0, 50.0


class WheelBandit:
    """Tasks are wheels; contexts are uniform in the unit disk, and all tasks have five arms.

    Arm 0 has mean 1.2 everywhere, the others have 1.0, except outside radius delta: there one arm,
    given by the quadrant of the context, has mean 50. An input is the context followed by the
    one-hot arm. All randomness of round t derives from (seed, t).

    Args:
        deltas: the radius of each wheel, in [0, 1]; one task each.
        noise_scale: standard deviation of the Gaussian noise.
        seed: rounds derive from it.
    """

    value_range = (0.0, LARGE)
    discrete_actions = NUM_ARMS

    def __init__(
        self, deltas: Sequence[float], *, noise_scale: float = 0.01, seed: int = 0
    ) -> None:
        if not isinstance(deltas, Collection) or not len(deltas):
            raise InvalidInputError(
                f"deltas must have one radius for each task, such as [0.9, 0.95], got {deltas!r}"
            )
        self.deltas = torch.tensor(
            [validate_number(d, "delta", at_least=0.0, at_most=1.0) for d in deltas],
            dtype=torch.float64,
        )
        self.num_tasks = len(self.deltas)
        self.noise_scale = validate_number(noise_scale, "noise_scale", above=0.0)
        self.seed = validate_seed(seed)

    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1: candidates [task, arm, 2 + arms]."""
        generator = random_stream(self.seed, "round", round_index)
        contexts = uniform_in_disk(self.num_tasks, generator)
        noise = torch.randn(self.num_tasks, generator=generator, dtype=torch.float64)
        means = wheel_means(contexts, self.deltas)
        regions = one_hot(wheel_regions(contexts, self.deltas), NUM_ARMS)
        return BanditRound(
            candidates=with_actions(contexts, NUM_ARMS),
            mean_rewards=means,
            noise=self.noise_scale * noise,
            true_features=arm_interactions(regions, NUM_ARMS),
        )

    def random_log(self, num_samples: int) -> tuple[Tensor, Tensor, Tensor]:
        """A log of every wheel: contexts with an arm drawn at random, and its reward.

        Returns tasks [sample], inputs [sample, 2 + arms] and rewards [sample], `num_samples` of
        each task. They are independent of the rounds.
        """
        generator = random_stream(self.seed, "log")
        tasks = torch.arange(self.num_tasks).repeat_interleave(num_samples)
        contexts = uniform_in_disk(len(tasks), generator)
        arms = torch.randint(NUM_ARMS, (len(tasks),), generator=generator)
        noise = torch.randn(len(tasks), generator=generator, dtype=torch.float64)
        means = wheel_means(contexts, self.deltas[tasks])
        inputs = torch.cat([contexts, one_hot(arms, NUM_ARMS).to(torch.float64)], 1)
        return tasks, inputs, means.gather(1, arms[:, None])[:, 0] + self.noise_scale * noise

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"actions": NUM_ARMS, "deltas": [float(delta) for delta in self.deltas]}


def uniform_in_disk(count: int, generator: torch.Generator) -> Tensor:
    """Points [n, 2], uniform in the unit disk."""
    draws = torch.rand(count, 2, generator=generator, dtype=torch.float64)
    radii, angles = draws[:, 0].sqrt(), 2 * math.pi * draws[:, 1]
    return torch.stack([radii * angles.cos(), radii * angles.sin()], 1)


def wheel_regions(contexts: Tensor, deltas: Tensor) -> Tensor:
    """0 inside radius delta, outside 1 + quadrant: [n, 2], [n] -> [n]."""
    quadrants = 1 + 2 * (contexts[:, 0] <= 0).long() + (contexts[:, 1] <= 0).long()
    return torch.where(contexts.norm(dim=1) > deltas, quadrants, 0)


def wheel_means(contexts: Tensor, deltas: Tensor) -> Tensor:
    """Mean rewards [n, arm] of contexts [n, 2] on wheels of radius deltas [n]."""
    regions = wheel_regions(contexts, deltas)
    means = torch.full((len(contexts), NUM_ARMS), OTHER, dtype=torch.float64)
    means[:, 0] = SAFE
    large = one_hot(regions, NUM_ARMS).to(torch.bool)
    large[:, 0] = False
    return means.masked_fill(large, LARGE)


def arm_interactions(kinds: Tensor, num_arms: int) -> Tensor:
    """Products of context features and arms: [task, kind] -> [task, arm, kind x arm]."""
    arms = torch.eye(num_arms, dtype=torch.float64)
    return torch.einsum("tk,ab->takb", kinds.to(torch.float64), arms).flatten(2)

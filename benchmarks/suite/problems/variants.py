"""Changes of an environment: units of rewards and inputs, drift, outliers, a log before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from gfucb.core.protocols import BanditEnvironment
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound
from gfucb.environments import ImageBandit, WheelBandit
from gfucb.models.representations import flat_inputs

NUM_EARLIER_WHEELS, SAMPLES_OF_A_WHEEL = 64, 562


@dataclass(frozen=True, eq=False)
class Rescaled:
    """Rewards times `scale` plus `offset`; agents are not given the range.

    Attributes:
        environment: the original.
        scale: multiplier of means and noise.
        offset: added to the means.
        value_range: the range that agents are given.
        true_range: the range of mean rewards, which tuned alternatives know.
    """

    environment: BanditEnvironment
    scale: float = 1.0
    offset: float = 0.0
    value_range: tuple[float, float] | None = None
    true_range: tuple[float, float] = (0.0, 1.0)

    @property
    def num_tasks(self) -> int:
        """M."""
        return self.environment.num_tasks

    def round(self, round_index: int) -> BanditRound:
        """The round of the original with other rewards."""
        found = self.environment.round(round_index)
        means = self.offset + self.scale * found.mean_rewards
        return replace(found, mean_rewards=means, noise=self.scale * found.noise)

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        units = {"reward_scale": self.scale, "reward_offset": self.offset}
        return {**self.environment.describe(), **units}


@dataclass(frozen=True, eq=False)
class Columns:
    """Inputs as float columns, one of them in other units.

    Attributes:
        environment: the original.
        column: the column that is multiplied.
        factor: its multiplier.
    """

    environment: BanditEnvironment
    column: int = 0
    factor: float = 1.0

    @property
    def num_tasks(self) -> int:
        """M."""
        return self.environment.num_tasks

    def round(self, round_index: int) -> BanditRound:
        """The round of the original with flattened inputs."""
        found = self.environment.round(round_index)
        columns = flat_inputs(found.candidates.flatten(0, 1)).unflatten(
            0, found.candidates.shape[:2]
        )
        columns[..., self.column] *= self.factor
        return replace(found, candidates=columns)

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {**self.environment.describe(), "factor": self.factor}


@dataclass(frozen=True, eq=False)
class Drift:
    """Other reward maps from round `at` + 1 on; contexts and noise stay those of the original.

    Attributes:
        environment: an image bandit.
        at: the last round with the original maps.
    """

    environment: ImageBandit
    at: int

    @property
    def num_tasks(self) -> int:
        """M."""
        return self.environment.num_tasks

    def round(self, round_index: int) -> BanditRound:
        """The round of the original, later with the means of other maps."""
        found = self.environment.round(round_index)
        if round_index <= self.at:
            return found
        generator = random_stream(self.environment.seed, "later reward maps")
        shape = self.environment.reward_maps.shape
        maps = torch.rand(shape, generator=generator, dtype=torch.float64)
        means = torch.einsum("tad,td->ta", found.shown(uses_true_features=True), maps)
        return replace(found, mean_rewards=means)

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {**self.environment.describe(), "drift_at": self.at}


@dataclass(frozen=True, eq=False)
class Outlier:
    """One task receives one absurd reward. Regret counts in the other tasks only.

    Attributes:
        environment: the original.
        at: the round of the outlier.
        task: the task that receives it.
        noise: what is added to its reward.
    """

    environment: BanditEnvironment
    at: int = 60
    task: int = 0
    noise: float = -999.0

    @property
    def num_tasks(self) -> int:
        """M."""
        return self.environment.num_tasks

    @property
    def evaluated_tasks(self) -> Tensor:
        """The tasks whose regret counts."""
        return torch.tensor([task for task in range(self.num_tasks) if task != self.task])

    def round(self, round_index: int) -> BanditRound:
        """The round of the original, in round `at` with the outlier."""
        found = self.environment.round(round_index)
        if round_index != self.at:
            return found
        noise = found.noise.clone()
        noise[self.task] += self.noise
        return replace(found, noise=noise)

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {**self.environment.describe(), "outlier_at": self.at}


@dataclass(frozen=True, eq=False)
class WheelAfterWheels:
    """A wheel after the log of 64 other wheels, which is learned in one call before round 1.

    The new wheel is the last task; no decisions are made in the others. Earlier wheels have
    delta ~ U(0, 1) and 562 samples each, with contexts uniform in the disk and arms drawn at
    random: the number of wheels and samples of Garnelo et al. (2018) and Ravi and Beatson (2019).
    There every sample has the rewards of all arms; here it has that of one arm, as in a log.
    """

    delta: float
    seed: int = 0
    num_earlier: int = NUM_EARLIER_WHEELS
    num_samples: int = SAMPLES_OF_A_WHEEL
    value_range: tuple[float, float] = WheelBandit.value_range
    discrete_actions: int = WheelBandit.discrete_actions
    tasks: Tensor = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", torch.tensor([self.num_earlier]))

    @property
    def num_tasks(self) -> int:
        """The new wheel and the earlier ones."""
        return self.num_earlier + 1

    def log(self) -> tuple[Tensor, Tensor, Tensor]:
        """Tasks [sample], inputs [sample, *input] and rewards [sample] of the earlier wheels."""
        generator = random_stream(self.seed, "earlier deltas")
        deltas = torch.rand(self.num_earlier, generator=generator, dtype=torch.float64)
        return WheelBandit(deltas.tolist(), seed=self.seed).random_log(self.num_samples)

    def round(self, round_index: int) -> BanditRound:
        """The round of the new wheel; it has one row, for the task in `tasks`."""
        return WheelBandit([self.delta], seed=self.seed).round(round_index)

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"actions": self.discrete_actions, "earlier": self.num_earlier}

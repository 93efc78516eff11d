"""The image bandit of section 6.1: choose the image whose digit has the largest reward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gfucb.core.errors import InvalidInputError, lookup
from gfucb.core.memory import memory_of_environment
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound
from gfucb.core.validation.settings import validate_count, validate_number, validate_seed
from gfucb.environments.images import LabelledImages

NUM_CLASSES = 10
# Reward maps are drawn one task after another.
MOST_TASKS = 10**6
RewardMap = Literal["permutation", "tenths", "uniform"]
Digits = Literal["iid", "distinct"]


class ImageBandit:
    """M tasks; in each round each task chooses one of K images and is rewarded by its digit.

    The reward of task i is sigma_i(digit) + noise. All randomness of round t derives from
    (seed, t): contexts and noise do not depend on earlier actions.

    Args:
        data: images and their digits.
        num_tasks: M.
        num_actions: K.
        reward_map: `permutation` gives each task a permutation of {0, .. 9} / 10, such that ten
            consecutive tasks have ten different best digits; `tenths` is digit / 10 in every
            task; `uniform` draws sigma_i(digit) from [0, 1].
        digits: `iid` draws any K images; `distinct` draws images of K different digits.
        noise_scale: standard deviation of the Gaussian noise. Rewards are not clipped.
        seed: reward maps and rounds derive from it.
    """

    @memory_of_environment
    def __init__(
        self,
        data: LabelledImages,
        *,
        num_tasks: int = 10,
        num_actions: int = 10,
        reward_map: RewardMap = "permutation",
        digits: Digits = "iid",
        noise_scale: float = 0.01,
        seed: int = 0,
    ) -> None:
        self.num_tasks = validate_count(num_tasks, "num_tasks", at_most=MOST_TASKS)
        self.num_actions = validate_count(num_actions, "num_actions")
        self.noise_scale = validate_number(noise_scale, "noise_scale", above=0.0)
        self.seed = validate_seed(seed)
        if digits == "distinct" and num_actions > NUM_CLASSES:
            raise InvalidInputError(
                f"there are {NUM_CLASSES} different digits, so `distinct` action sets have at most "
                f"{NUM_CLASSES} actions, got {num_actions}"
            )
        counts = _class_counts(data.labels)
        if digits == "distinct" and int(counts.min()) == 0:
            missing = int(counts.argmin())
            raise InvalidInputError(
                f"`distinct` action sets need every digit; there is no {missing}"
            )
        self.data = data
        self._draw_images = lookup(
            {"iid": self._iid_images, "distinct": self._distinct_images}, digits, "kind of digits"
        )
        make_map = lookup(REWARD_MAPS, reward_map, "reward map")
        self.reward_maps = make_map(num_tasks, random_stream(seed, "reward maps"))  # [task, digit]

    @memory_of_environment
    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1: candidates [task, action, height, width] of bytes."""
        generator = random_stream(self.seed, "round", round_index)
        images = self._draw_images(generator)
        noise = torch.randn(self.num_tasks, generator=generator, dtype=torch.float64)
        labels = self.data.labels[images]
        return BanditRound(
            candidates=self.data.images[images],
            mean_rewards=self.reward_maps.gather(1, labels),
            # Paper: rewards range from 0 to 1, plus noise; whether the sum is clipped is not said.
            # It is not clipped here, so that the mean of a reward is sigma_i(digit).
            noise=self.noise_scale * noise,
            true_features=one_hot(labels, NUM_CLASSES).to(torch.float64),
        )

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        height, width = self.data.images.shape[1:]
        return {
            "images": len(self.data.images),
            "pixels": f"{height} x {width}",
            "actions": self.num_actions,
        }

    # Paper: "K different digit images", K not given. Any K images, ten by default; different
    # digits on request. Contexts are drawn for each task separately.
    def _iid_images(self, generator: torch.Generator) -> Tensor:
        shape = (self.num_tasks, self.num_actions)
        return torch.randint(len(self.data.images), shape, generator=generator)

    def _distinct_images(self, generator: torch.Generator) -> Tensor:
        draws = torch.rand(self.num_tasks, NUM_CLASSES, generator=generator, dtype=torch.float64)
        digits = draws.argsort(1)[:, : self.num_actions]
        by_digit = self.data.labels.argsort(stable=True)
        counts = _class_counts(self.data.labels)
        starts = counts.cumsum(0) - counts
        within = torch.rand(digits.shape, generator=generator, dtype=torch.float64)
        return by_digit[starts[digits] + (within * counts[digits]).long()]


def _class_counts(labels: Tensor) -> Tensor:
    """Images of each class: [class]."""
    if len(labels) == 0 or int(labels.min()) < 0 or int(labels.max()) >= NUM_CLASSES:
        raise InvalidInputError(
            f"labels must be classes 0 to {NUM_CLASSES - 1} of at least one image, "
            f"got {len(labels)} labels" + (f" up to {int(labels.max())}" if len(labels) else "")
        )
    return torch.bincount(labels, minlength=NUM_CLASSES)


def _permutations(num_tasks: int, generator: torch.Generator) -> Tensor:
    """[task, digit]; the best digit of task i is the i-th of a random order, the rest is random."""
    # Paper: "unique" rewards in [0, 1], distinct best digits for ten tasks (App. C.1); the
    # values are not given.
    maps = []
    for task in range(num_tasks):
        if task % NUM_CLASSES == 0:
            best_digits = torch.randperm(NUM_CLASSES, generator=generator)
        values = torch.randperm(NUM_CLASSES, generator=generator)
        best = int(best_digits[task % NUM_CLASSES])
        top = int(values.argmax())
        values[[best, top]] = values[[top, best]]
        maps.append(values)
    return torch.stack(maps).to(torch.float64) / NUM_CLASSES


def _tenths(num_tasks: int, generator: torch.Generator) -> Tensor:
    return torch.arange(NUM_CLASSES, dtype=torch.float64).repeat(num_tasks, 1) / NUM_CLASSES


def _uniform(num_tasks: int, generator: torch.Generator) -> Tensor:
    return torch.rand(num_tasks, NUM_CLASSES, generator=generator, dtype=torch.float64)


REWARD_MAPS = {"permutation": _permutations, "tenths": _tenths, "uniform": _uniform}

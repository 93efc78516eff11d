"""What the figures about fits share: images, logs of default agents, the paper's fit of a log."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import pandas as pd
import torch
from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.bandits.batched import BatchedAgents
from gfucb.core.random import random_stream
from gfucb.environments import ImageBandit, LabelledImages, load_digits, load_mnist
from gfucb.environments.image_bandit import RewardMap
from gfucb.models import ConfidenceSet, MultitaskDataset, Representation, features_of
from gfucb.models.gradients import WeightSketch
from gfucb.models.representations import normalise
from gfucb.models.tangents import TangentStatistics
from gfucb.paper.driver import Options
from gfucb.runs.bandit_agents import paper_agent
from gfucb.runs.loop import play_batched
from gfucb.runs.summary import half_width

# The part of the digits that no environment shows: one in so many, the last ones, by other writers.
HELD_OUT = 4
# The paper's network meets a log in parts, each twice as long as all before.
FIRST_PART = 256


@dataclass(frozen=True)
class Source:
    """Which images, and where networks live."""

    digits: bool = False
    data_dir: str | None = None
    device: str = "cpu"

    @classmethod
    def of(cls, options: Options) -> Source:
        """Quick versions look at the digits that are in the box, others at MNIST."""
        return cls(options.quick, options.data_dir, options.device)

    def shown(self) -> LabelledImages:
        """The images that environments draw from."""
        return _images(self.digits, self.data_dir)[0]

    def held_out(self) -> LabelledImages:
        """Images that no agent has ever been shown."""
        return _images(self.digits, self.data_dir)[1]

    def test_images(self, count: int) -> LabelledImages:
        """So many of the images held out, always the same."""
        every = self.held_out()
        draws = torch.randperm(len(every.labels), generator=random_stream(0, "test images"))
        return LabelledImages(every.images[draws[:count]], every.labels[draws[:count]])


@lru_cache(maxsize=2)
def _images(digits: bool, data_dir: str | None) -> tuple[LabelledImages, LabelledImages]:
    """Images to show and images held out."""
    if not digits:
        return load_mnist(data_dir, "train"), load_mnist(data_dir, "test")
    every = load_digits()
    border = len(every.labels) - len(every.labels) // HELD_OUT
    return (
        LabelledImages(every.images[:border], every.labels[:border]),
        LabelledImages(every.images[border:], every.labels[border:]),
    )


@dataclass(frozen=True)
class Play:
    """Default agents, one a seed, in the image bandit.

    Attributes:
        milestones: rounds after which we look at what was learned; the last ends the play.
    """

    seeds: tuple[int, ...]
    milestones: tuple[int, ...]
    num_tasks: int = 10
    reward_map: RewardMap = "permutation"

    def environment(self, source: Source, seed: int) -> ImageBandit:
        """The environment of a seed."""
        return ImageBandit(
            source.shown(), num_tasks=self.num_tasks, reward_map=self.reward_map, seed=seed
        )


# What the paper looks at when all is learned: ten tasks, or the one that pays digit / 10.
SEEDS = (0, 1, 2, 3, 4)
MILESTONES = (100, 200, 300, 600)


Integers = tuple[int, ...]


def learned_together(seeds: Integers = SEEDS, milestones: Integers = MILESTONES) -> Play:
    """Ten tasks with distinct best digits."""
    return Play(seeds, milestones, 10, "permutation")


def learned_alone(seeds: Integers = SEEDS, milestones: Integers = MILESTONES) -> Play:
    """One task, that pays digit / 10."""
    return Play(seeds, milestones, 1, "tenths")


@lru_cache(maxsize=4)
def played(play: Play, source: Source) -> dict[tuple[int, int], ConfidenceSet]:
    """By seed and milestone, the agent's set: its fit, its data, its radius for a task alone."""
    agents = [GFUCB(play.num_tasks, seed=seed, device=source.device) for seed in play.seeds]
    batched, environments = (
        BatchedAgents(agents),
        [play.environment(source, seed) for seed in play.seeds],
    )
    example = source.shown().images[:1].to(source.device)
    found = {}
    for rows in play_batched(batched, environments, num_rounds=play.milestones[-1]):
        round_index = int(rows[0]["round"])
        if round_index in play.milestones:
            for seed, agent in zip(play.seeds, batched.unbatch(), strict=True):
                found[seed, round_index] = agent.confidence_set(example, asked=1)
    return found


def first_samples(data: MultitaskDataset, count: int) -> MultitaskDataset:
    """The first samples of a log, as a value."""
    first = data.snapshot()
    first.truncate(count)
    return first


def paper_fit(
    data: MultitaskDataset,
    *,
    seed: int,
    epochs: int,
    device: str,
    first_part: int | None = FIRST_PART,
) -> ConfidenceSet:
    """The paper's network fitted to a log by Adam, and the set it has around that fit.

    The log comes in parts, each as long as all before it: the network begins each fit from the
    one before, as an agent's does, at twice the cost of one fit. With `first_part` None it comes
    in one.
    """
    agent = paper_agent(
        data.num_tasks, data.inputs.shape[1:], seed=seed, epochs=epochs, device=device
    )
    start, end = 0, first_part or len(data)
    while start < len(data):
        part = slice(start, min(end, len(data)))
        agent.learn(data.tasks[part], data.inputs[part], data.targets[part])
        start, end = part.stop, 2 * part.stop
    return agent.confidence_set(data.inputs[:1], asked=1)


@lru_cache(maxsize=8)
def paper_played(play: Play, source: Source, seed: int, epochs: int) -> ConfidenceSet:
    """The paper's network, fitted in one go to all samples of a play."""
    log = played(play, source)[seed, play.milestones[-1]].data
    return paper_fit(log, seed=seed, epochs=epochs, device=source.device, first_part=None)


def features_on(phi: Representation, images: Tensor, device: str, *, unit: bool) -> Tensor:
    """Features of images, there where the network lives; of length one if asked for."""
    features = features_of(phi, images.to(device))
    return normalise(features, "l2") if unit else features


def offline_log(source: Source, seed: int, num_tasks: int, count: int) -> MultitaskDataset:
    """Images drawn uniformly, one task after the other, and what they paid."""
    environment = Play((seed,), (1,), num_tasks).environment(source, seed)
    generator = random_stream(seed, "offline log")
    chosen = torch.randint(len(environment.data.labels), (count,), generator=generator)
    noise = torch.randn(count, generator=generator, dtype=torch.float64)
    tasks, images = torch.arange(count) % num_tasks, environment.data.images[chosen]
    rewards = (
        environment.reward_maps[tasks, environment.data.labels[chosen]]
        + environment.noise_scale * noise
    )
    data = MultitaskDataset(num_tasks, images.shape[1:], images.dtype, device=source.device)
    data.append(tasks, images, rewards)
    return data


def with_radius(confidence_set: ConfidenceSet, squared_radius: float) -> ConfidenceSet:
    """The same set with another radius."""
    return replace(confidence_set, squared_radius=squared_radius)


def with_tangents(confidence_set: ConfidenceSet) -> ConfidenceSet:
    """The same set with the gradients of its data summed up, for solvers asked more than once."""
    data, sketch = confidence_set.data, WeightSketch()
    tangents = TangentStatistics.of(sketch, confidence_set.center, data.inputs, data.tasks)
    return replace(confidence_set, center_tangents=tangents)


def mean_and_spread(values: pd.Series, form: str) -> str:
    """A mean over seeds and its 95% half width, for people."""
    array = values.to_numpy(float)
    spread = half_width(array)
    text = format(array.mean(), form)
    return text if math.isnan(spread) else f"{text} ± {format(spread, form)}"

"""Logged runs of the default agent, the paper's fit of a log, and the images that both use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.bandits.batched import BatchedAgents
from gfucb.core.environment_facts import DEFAULT_VALUE_RANGE
from gfucb.core.random import random_stream
from gfucb.environments import ImageBandit, LabelledImages, load_digits, load_mnist
from gfucb.environments.image_bandit import RewardMap
from gfucb.models import ConfidenceSet, MultitaskDataset, Representation, features_of
from gfucb.models.representations import normalise
from gfucb.models.tangents import TangentStatistics, WeightSketch
from gfucb.paper.common import Options
from gfucb.runs.agents.paper_procedure import paper_agent
from gfucb.runs.loop import play_batched

# The last quarter of scikit-learn's digits, by other writers, is the test set.
TEST_SHARE = 4
# The paper's network learns a log in parts: the first has this length, then the log doubles.
FIRST_PART = 256


@dataclass(frozen=True)
class ImageSource:
    """Which images to use, and the device of the networks.

    Attributes:
        digits: scikit-learn's digits, which need no file, instead of MNIST.
        data_dir: directory of the MNIST files.
    """

    digits: bool = False
    data_dir: str | None = None
    device: str = "cpu"

    @classmethod
    def of(cls, options: Options) -> ImageSource:
        """Digits for the quick version, MNIST otherwise."""
        return cls(options.quick, options.data_dir, options.device)

    def training(self) -> LabelledImages:
        """The images that environments draw from."""
        return _images(self.digits, self.data_dir)[0]

    def test(self) -> LabelledImages:
        """Held-out images: no environment shows them."""
        return _images(self.digits, self.data_dir)[1]

    def test_sample(self, count: int) -> LabelledImages:
        """A fixed random sample of the test images."""
        images = self.test()
        order = torch.randperm(len(images.labels), generator=random_stream(0, "test images"))
        return LabelledImages(images.images[order[:count]], images.labels[order[:count]])


@lru_cache(maxsize=2)
def _images(digits: bool, data_dir: str | None) -> tuple[LabelledImages, LabelledImages]:
    """Training images and test images."""
    if not digits:
        return load_mnist(data_dir, "train"), load_mnist(data_dir, "test")
    images = load_digits()
    border = len(images.labels) - len(images.labels) // TEST_SHARE
    return (
        LabelledImages(images.images[:border], images.labels[:border]),
        LabelledImages(images.images[border:], images.labels[border:]),
    )


@dataclass(frozen=True)
class LoggedRuns:
    """Runs of the default agent in the image bandit, one for each seed.

    Attributes:
        milestones: rounds after which the fit is stored; the last one ends the run.
        reward_map: what a digit pays in each task.
    """

    seeds: tuple[int, ...]
    milestones: tuple[int, ...]
    num_tasks: int = 10
    reward_map: RewardMap = "permutation"

    def environment(self, source: ImageSource, seed: int) -> ImageBandit:
        """The environment of a seed."""
        return ImageBandit(
            source.training(), num_tasks=self.num_tasks, reward_map=self.reward_map, seed=seed
        )


# Figure 3 and the probe inspect the same runs, at the end and on the way.
SEEDS = (0, 1, 2, 3, 4)
MILESTONES = (100, 200, 300, 600)


def ten_task_runs(
    seeds: tuple[int, ...] = SEEDS, milestones: tuple[int, ...] = MILESTONES
) -> LoggedRuns:
    """Ten tasks with distinct best digits."""
    return LoggedRuns(seeds, milestones, 10, "permutation")


def single_task_runs(
    seeds: tuple[int, ...] = SEEDS, milestones: tuple[int, ...] = MILESTONES
) -> LoggedRuns:
    """One task that pays digit / 10."""
    return LoggedRuns(seeds, milestones, 1, "tenths")


@lru_cache(maxsize=4)
def confidence_sets(runs: LoggedRuns, source: ImageSource) -> dict[tuple[int, int], ConfidenceSet]:
    """Run the agents; for each (seed, milestone) the set: fit, data, radius for a single task."""
    batched = BatchedAgents(
        [
            GFUCB(
                runs.num_tasks,
                seed=seed,
                value_range=DEFAULT_VALUE_RANGE,
                device=source.device,
            )
            for seed in runs.seeds
        ]
    )
    environments = [runs.environment(source, seed) for seed in runs.seeds]
    example = source.training().images[:1].to(source.device)
    found = {}
    for rows in play_batched(batched, environments, num_rounds=runs.milestones[-1]):
        round_index = int(rows[0]["round"])
        if round_index in runs.milestones:
            for seed, agent in zip(runs.seeds, batched.unbatch(), strict=True):
                found[seed, round_index] = agent.confidence_set(example, num_sharing=1)
    return found


def first_samples(data: MultitaskDataset, count: int) -> MultitaskDataset:
    """A new dataset with the first `count` samples of a log."""
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
    """Fit the paper's network to a log by Adam, and return the confidence set around the fit.

    The network learns the log in parts. Each part is as long as all earlier parts together, and
    each fit starts from the previous one, as it does in an agent; this costs twice as much as one
    fit. With `first_part` None the log is learned in one fit.
    """
    agent = paper_agent(
        data.num_tasks, data.inputs.shape[1:], seed=seed, epochs=epochs, device=device
    )
    start, end = 0, first_part or len(data)
    while start < len(data):
        part = slice(start, min(end, len(data)))
        agent.learn(data.tasks[part], data.inputs[part], data.targets[part])
        start, end = part.stop, 2 * part.stop
    return agent.confidence_set(data.inputs[:1], num_sharing=1)


@lru_cache(maxsize=8)
def paper_fit_of_run(
    runs: LoggedRuns, source: ImageSource, seed: int, epochs: int
) -> ConfidenceSet:
    """The paper's network, fitted once to all samples that the default agent collected."""
    log = confidence_sets(runs, source)[seed, runs.milestones[-1]].data
    return paper_fit(log, seed=seed, epochs=epochs, device=source.device, first_part=None)


def features_on(phi: Representation, images: Tensor, device: str, *, unit: bool) -> Tensor:
    """Features of images on a device, scaled to length one if `unit`: [image, feature]."""
    features = features_of(phi, images.to(device))
    return normalise(features, "l2") if unit else features


def offline_log(source: ImageSource, seed: int, num_tasks: int, count: int) -> MultitaskDataset:
    """Uniformly drawn images, assigned to the tasks in turn, and their noisy rewards."""
    environment = LoggedRuns((seed,), (1,), num_tasks).environment(source, seed)
    generator = random_stream(seed, "offline log")
    drawn = torch.randint(len(environment.data.labels), (count,), generator=generator)
    noise = torch.randn(count, generator=generator, dtype=torch.float64)
    tasks, images = torch.arange(count) % num_tasks, environment.data.images[drawn]
    rewards = (
        environment.reward_maps[tasks, environment.data.labels[drawn]]
        + environment.noise_scale * noise
    )
    data = MultitaskDataset(num_tasks, images.shape[1:], images.dtype, device=source.device)
    data.append(tasks, images, rewards)
    return data


def with_radius(confidence_set: ConfidenceSet, squared_radius: float) -> ConfidenceSet:
    """The same set with another radius."""
    return replace(confidence_set, squared_radius=squared_radius)


def with_tangents(confidence_set: ConfidenceSet) -> ConfidenceSet:
    """The same set with the gradient statistics of its data, which several selectors reuse."""
    data, sketch = confidence_set.data, WeightSketch()
    tangents = TangentStatistics.of(sketch, confidence_set.center, data.inputs, data.tasks)
    return replace(confidence_set, center_tangents=tangents)

"""The rows of the probe: test accuracy of a linear layer on frozen representations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.core.random import random_stream
from gfucb.core.records import Row
from gfucb.environments.image_bandit import NUM_CLASSES
from gfucb.models import Representation
from gfucb.models.representations import flat_inputs
from gfucb.paper.common import Job, Options
from gfucb.paper.logged_runs import (
    MILESTONES,
    SEEDS,
    ImageSource,
    LoggedRuns,
    confidence_sets,
    features_on,
    paper_fit_of_run,
    single_task_runs,
    ten_task_runs,
)

TEN_TASKS, SINGLE_TASK = "M = 10", "single task"
PIXELS, UNTRAINED = "raw pixels", "untrained network"
LBFGS_STEPS = 200


@dataclass(frozen=True)
class Sizes:
    """Number of rounds, labels and seeds.

    Attributes:
        milestones: rounds after which the representation of ten tasks, or of one, is probed.
        long: further rounds of the single task, up to as many samples as ten tasks have.
        labels: numbers of labelled images that a linear layer is fitted to.
        paper_seeds: number of seeds on which the paper's network is probed too.
        long_seeds: number of seeds on which the single task continues.
        epochs: largest number of epochs of a fit of the paper's network.
    """

    milestones: tuple[int, ...] = MILESTONES
    long: tuple[int, ...] = (1000, 2000, 3000, 6000)
    labels: tuple[int, ...] = (100, 1000, 60_000)
    paper_seeds: int = 3
    long_seeds: int = 3
    epochs: int = 200


QUICK = Sizes(
    milestones=(5, 20), long=(40,), labels=(100, 1000), paper_seeds=1, long_seeds=1, epochs=10
)


def sizes_of(options: Options) -> Sizes:
    """Sizes of the full or the quick version."""
    return QUICK if options.quick else Sizes()


def config(options: Options) -> dict[str, Any]:
    """Settings stored with the results."""
    return {"sizes": sizes_of(options)}


def jobs(options: Options) -> list[Job]:
    """References, runs of ten tasks and of a single task, and the paper's network on each seed."""
    sizes, source = sizes_of(options), ImageSource.of(options)
    seeds = options.seeds or ((0, 1) if options.quick else SEEDS)
    ten = ten_task_runs(seeds, sizes.milestones)
    single = single_task_runs(seeds, sizes.milestones)
    long = single_task_runs(seeds[: sizes.long_seeds], sizes.long)
    return [
        Job("references", partial(reference_rows, sizes, source, seeds)),
        Job("together", partial(run_rows, TEN_TASKS, ten, sizes, source)),
        Job("alone", partial(run_rows, SINGLE_TASK, single, sizes, source)),
        Job("alone-long", partial(run_rows, SINGLE_TASK, long, sizes, source)),
        *(
            Job(
                f"paper-{name}-seed={seed}",
                partial(paper_rows, setting, runs, sizes, source, seed),
            )
            for name, setting, runs in (
                ("together", TEN_TASKS, ten),
                ("alone", SINGLE_TASK, single),
            )
            for seed in seeds[: sizes.paper_seeds]
        ),
    ]


def run_rows(setting: str, runs: LoggedRuns, sizes: Sizes, source: ImageSource) -> Sequence[Row]:
    """The default network at every milestone of every seed."""
    rows: list[Row] = []
    for (seed, rounds), learned in confidence_sets(runs, source).items():
        key = _key(setting, "default", seed, rounds, rounds * runs.num_tasks)
        rows += _probe_rows(key, learned.center.representation, sizes, source)
    return rows


def paper_rows(
    setting: str, runs: LoggedRuns, sizes: Sizes, source: ImageSource, seed: int
) -> Sequence[Row]:
    """The paper's network, fitted to all samples that the default agent collected."""
    rounds = runs.milestones[-1]
    fitted = paper_fit_of_run(runs, source, seed, sizes.epochs)
    key = _key(setting, "paper", seed, rounds, rounds * runs.num_tasks)
    return list(_probe_rows(key, fitted.center.representation, sizes, source))


def reference_rows(sizes: Sizes, source: ImageSource, seeds: tuple[int, ...]) -> Sequence[Row]:
    """References without bandit data: raw pixels, and the default network before training."""
    rows = list(_probe_rows(_key(PIXELS, "none", seeds[0], 0, 0), flat_inputs, sizes, source))
    example = source.training().images[:1].to(source.device)
    for seed in seeds:
        untrained = GFUCB(1, seed=seed, device=source.device).confidence_set(example).center
        key = _key(UNTRAINED, "default", seed, 0, 0)
        rows += _probe_rows(key, untrained.representation, sizes, source)
    return rows


def _key(setting: str, network: str, seed: int, rounds: int, samples: int) -> dict[str, str | int]:
    return {
        "setting": setting,
        "network": network,
        "seed": seed,
        "rounds": rounds,
        "samples": samples,
    }


def _probe_rows(
    key: dict[str, str | int], phi: Representation, sizes: Sizes, source: ImageSource
) -> Iterator[Row]:
    training, test = source.training(), source.test()
    generator = random_stream(int(key["seed"]), "labelled images")
    chosen = torch.randperm(len(training.labels), generator=generator)[: max(sizes.labels)]
    features = features_on(phi, training.images[chosen], source.device, unit=False)
    test_features = features_on(phi, test.images, source.device, unit=False)
    labels = training.labels[chosen]
    for count in sizes.labels:
        accuracy = probe_accuracy(features[:count], labels[:count], test_features, test.labels)
        yield {**key, "labels": count, "accuracy": f"{accuracy:.4f}"}


def probe_accuracy(
    features: Tensor, labels: Tensor, test_features: Tensor, test_labels: Tensor
) -> float:
    """Test accuracy of multinomial logistic regression on standardised features.

        minimise  sum of log losses + |weights|^2 / 2      (scikit-learn's default, C = 1)

    by L-BFGS, on the device of the features: [image, feature], [image] twice.
    """
    mean, deviation = features.mean(0), features.std(0, correction=0)
    deviation = torch.where(deviation > 0, deviation, 1.0)
    inputs, targets = (features - mean) / deviation, labels.to(features.device)
    weights = inputs.new_zeros(inputs.shape[1], NUM_CLASSES, requires_grad=True)
    biases = inputs.new_zeros(NUM_CLASSES, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weights, biases], max_iter=LBFGS_STEPS, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        log_loss = torch.nn.functional.cross_entropy(inputs @ weights + biases, targets)
        value = log_loss + weights.square().sum() / (2 * len(inputs))
        value.backward()
        return value

    optimiser.step(loss)
    with torch.no_grad():
        scores = (test_features - mean) / deviation @ weights + biases
    return float((scores.argmax(1).cpu() == test_labels).double().mean())

"""The rows of Figure 3: class kernels of learned representations, contrast and accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gfucb.core.linalg import task_sums
from gfucb.core.records import Row
from gfucb.environments.image_bandit import NUM_CLASSES
from gfucb.models import Representation
from gfucb.paper.common import Job, Options
from gfucb.paper.logged_runs import (
    MILESTONES,
    SEEDS,
    ImageSource,
    confidence_sets,
    features_on,
    paper_fit_of_run,
    single_task_runs,
    ten_task_runs,
)

TEN_TASKS, SINGLE_TASK = "M = 10", "single task"
RUNS = {TEN_TASKS: ten_task_runs, SINGLE_TASK: single_task_runs}


@dataclass(frozen=True)
class Sizes:
    """Number of rounds, seeds and images.

    Attributes:
        milestones: rounds; the last one is evaluated. The probe has the same, to share the runs.
        paper_seeds: number of seeds on which the paper's network is fitted too.
        epochs: largest number of epochs of that fit.
        labelled: number of training images that class means are computed from.
    """

    milestones: tuple[int, ...] = MILESTONES
    paper_seeds: int = 3
    epochs: int = 200
    labelled: int = 10_000


QUICK = Sizes(milestones=(5, 20), paper_seeds=1, epochs=10, labelled=1000)


def sizes_of(options: Options) -> Sizes:
    """Sizes of the full or the quick version."""
    return QUICK if options.quick else Sizes()


def config(options: Options) -> dict[str, Any]:
    """Settings stored with the results."""
    return {"sizes": sizes_of(options)}


def jobs(options: Options) -> list[Job]:
    """One job for ten tasks and one for a single task."""
    sizes, source = sizes_of(options), ImageSource.of(options)
    seeds = options.seeds or ((0, 1) if options.quick else SEEDS)
    return [
        Job(setting.replace(" ", ""), partial(setting_rows, setting, sizes, source, seeds))
        for setting in RUNS
    ]


def setting_rows(
    setting: str, sizes: Sizes, source: ImageSource, seeds: tuple[int, ...]
) -> Sequence[Row]:
    """Numbers of every seed, and the kernel of the first."""
    runs = RUNS[setting](seeds, sizes.milestones)
    rows: list[Row] = []
    for seed in seeds:
        learned = confidence_sets(runs, source)[seed, sizes.milestones[-1]]
        representations = {"default": learned.center.representation}
        if seed in seeds[: sizes.paper_seeds]:
            fitted = paper_fit_of_run(runs, source, seed, sizes.epochs)
            representations["paper"] = fitted.center.representation
        for network, phi in representations.items():
            key: dict[str, str | int] = {"setting": setting, "network": network, "seed": seed}
            rows += _representation_rows(phi, source, sizes, key, with_kernel=seed == seeds[0])
    return rows


def _representation_rows(
    phi: Representation,
    source: ImageSource,
    sizes: Sizes,
    key: dict[str, str | int],
    *,
    with_kernel: bool,
) -> list[Row]:
    training, test = source.training(), source.test()
    some = slice(0, sizes.labelled)
    training_features = features_on(phi, training.images[some], source.device, unit=True)
    test_features = features_on(phi, test.images, source.device, unit=True)
    kernel = class_kernel(test_features, test.labels)
    numbers = {
        "contrast": contrast(kernel),
        "diagonal wins": float((kernel.argmax(1) == torch.arange(NUM_CLASSES)).double().mean()),
        "accuracy": nearest_mean_accuracy(
            training_features, training.labels[some], test_features, test.labels
        ),
    }
    rows: list[Row] = [
        {**key, "quantity": name, "row": "", "column": "", "value": f"{value:.6g}"}
        for name, value in numbers.items()
    ]
    if with_kernel:
        rows += [
            {**key, "quantity": "kernel", "row": i, "column": j, "value": f"{value:.4g}"}
            for i, line in enumerate(kernel.tolist())
            for j, value in enumerate(line)
        ]
    return rows


def class_means(features: Tensor, labels: Tensor) -> Tensor:
    """Mean features of every class: [image, feature], [image] -> [class, feature]."""
    labels = labels.to(features.device)
    counts = torch.bincount(labels, minlength=NUM_CLASSES).clamp_min(1)
    return task_sums(features, labels, NUM_CLASSES) / counts[:, None]


def class_kernel(features: Tensor, labels: Tensor) -> Tensor:
    """C(i, j) of Appendix C.1, mean inner product of classes i and j: -> [class, class]."""
    means = class_means(features, labels)
    return (means @ means.T).cpu()


def contrast(kernel: Tensor) -> float:
    """Mean of the diagonal minus the mean absolute value off the diagonal.

    With features of length one this is 1 if and only if the images of a class have equal features
    and different classes have orthogonal features. It is 0 if all images have equal features.
    """
    size = len(kernel)
    diagonal = kernel.diagonal().sum()
    others = kernel.abs().sum() - kernel.diagonal().abs().sum()
    return float(diagonal / size - others / (size * (size - 1)))


def nearest_mean_accuracy(
    training_features: Tensor, training_labels: Tensor, test_features: Tensor, test_labels: Tensor
) -> float:
    """Share of test images whose nearest class mean of training images is their own class."""
    distances = torch.cdist(test_features, class_means(training_features, training_labels))
    return float((distances.argmin(1).cpu() == test_labels).double().mean())

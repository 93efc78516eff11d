"""The rows of Figure 2(b): bonuses of fixed test images while the training set grows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.core.environment_facts import DEFAULT_VALUE_RANGE
from gfucb.core.records import Row
from gfucb.environments import LabelledImages
from gfucb.estimation import LogRadius
from gfucb.exploration import FineTuning
from gfucb.models import ConfidenceSet
from gfucb.paper.bonuses import BATCHED_SELECTORS, Bonuses, batched_bonuses, bonuses_one_by_one
from gfucb.paper.common import Job, Options
from gfucb.paper.logged_runs import (
    ImageSource,
    LoggedRuns,
    first_samples,
    offline_log,
    paper_fit,
    with_radius,
    with_tangents,
)

SEEDS = (0, 1, 2)
NUM_TASKS = 10
TASK = 0
PRINTED, FIXED = "B of t = n / 10", "B of t = 200"
FINE_TUNING = "fine-tuning"
OUR_SELECTORS = ("last layer", "linearised")
BATCH_SIZE = 256  # of Adam, in the paper's fit


@dataclass(frozen=True)
class Sizes:
    """Sizes of the training set, number of images, and optimisation steps.

    Attributes:
        grid: sizes of the training set.
        images: number of test images.
        tuned: images fine-tuned at each size; a fifth of them again with the fixed radius.
        images_per_job: images per job of fine-tuning.
        epochs, gradient_steps: the paper's fit ends with whichever comes first.
        iterations: steps of fine-tuning per image.
        growth: our agent refits when the data has grown by this factor.
    """

    grid: tuple[int, ...] = (10, 30, 90, 270, 800, 2400, 7000, 20000)
    images: int = 100
    tuned: tuple[int, ...] = (100,) * 8
    images_per_job: int = 20
    epochs: int = 200
    gradient_steps: int = 6000
    iterations: int = 200
    growth: float = 1.3


QUICK = Sizes(
    grid=(10, 100, 1000),
    images=20,
    tuned=(5, 5, 2),
    images_per_job=3,
    epochs=10,
    iterations=20,
    growth=2.0,
)


def sizes_of(options: Options) -> Sizes:
    """Sizes of the full or the quick version."""
    return QUICK if options.quick else Sizes()


def config(options: Options) -> dict[str, Any]:
    """Settings stored with the results."""
    return {"sizes": sizes_of(options)}


def jobs(options: Options) -> list[Job]:
    """One job per seed for our selectors, one per block of images for the paper's procedure."""
    sizes, source = sizes_of(options), ImageSource.of(options)
    seeds = options.seeds or ((0,) if options.quick else SEEDS)
    found = [
        Job(f"ours-seed={seed}", partial(selector_rows, sizes, source, seed)) for seed in seeds
    ]
    for size, count in zip(sizes.grid, sizes.tuned, strict=True):
        for radius, some in ((PRINTED, count), (FIXED, math.ceil(count / 5))):
            for start in range(0, some, sizes.images_per_job):
                images = range(start, min(some, start + sizes.images_per_job))
                make = partial(fine_tuning_rows, sizes, source, seeds[0], size, radius, images)
                label = "printed-B" if radius == PRINTED else "fixed-B"
                name = f"paper-n={size}-{label}-images={images.start}-{images.stop - 1}"
                found.append(Job(name, make))
    return found


def selector_rows(sizes: Sizes, source: ImageSource, seed: int) -> Sequence[Row]:
    """The default agent learns the growing log; bonuses are measured at every size of the grid."""
    log = offline_log(source, seed, NUM_TASKS, sizes.grid[-1])
    images, true_means = _test_images(sizes, source, seed)
    agent = GFUCB(
        NUM_TASKS,
        seed=seed,
        value_range=DEFAULT_VALUE_RANGE,
        refit_growth=1.0,
        device=source.device,
    )
    rows, start = [], 0
    for end in refit_sizes(sizes.grid, sizes.growth):
        agent.learn(log.tasks[start:end], log.inputs[start:end], log.targets[start:end])
        start = end
        if end in sizes.grid:
            fitted = with_tangents(agent.confidence_set(log.inputs[:1]))
            radii = squared_radii(end).items()
            for method, (radius, beta) in itertools.product(OUR_SELECTORS, radii):
                selector, scaled = BATCHED_SELECTORS[method], with_radius(fitted, beta)
                bonuses = batched_bonuses(selector, scaled, images.images, TASK, true_means)
                rows.append(_row(method, radius, seed, end, bonuses))
    return rows


def fine_tuning_rows(
    sizes: Sizes, source: ImageSource, seed: int, size: int, radius: str, which: range
) -> Sequence[Row]:
    """The paper's procedure on some images, fitted to the first samples of the same log."""
    images, true_means = _test_images(sizes, source, seed)
    some = slice(which.start, which.stop)
    scaled = with_radius(_paper_set(sizes, source, seed, size), squared_radii(size)[radius])
    selector = FineTuning.stable(sizes.iterations)
    bonuses = bonuses_one_by_one(selector, scaled, images.images[some], TASK, true_means[some])
    return [_row(FINE_TUNING, radius, seed, size, bonuses)]


@lru_cache(maxsize=1)
def _paper_set(sizes: Sizes, source: ImageSource, seed: int, size: int) -> ConfidenceSet:
    """The confidence set around the paper's network, fitted from scratch."""
    log = first_samples(offline_log(source, seed, NUM_TASKS, sizes.grid[-1]), size)
    epochs = min(sizes.epochs, max(1, sizes.gradient_steps // math.ceil(size / BATCH_SIZE)))
    return paper_fit(log, seed=seed, epochs=epochs, device=source.device, first_part=None)


def refit_sizes(grid: Sequence[int], growth: float) -> list[int]:
    """Sizes at which the agent refits: the grid, and more wherever the data grows by `growth`."""
    sizes = set(grid)
    for size, following in itertools.pairwise(grid):
        steps = max(1, math.ceil(math.log(following / size) / math.log(growth)))
        sizes |= {round(size * (following / size) ** (i / steps)) for i in range(1, steps)}
    return sorted(sizes)


def squared_radii(size: int) -> dict[str, float]:
    """B_t of the paper, with t = n / M and with a fixed t."""
    schedule = LogRadius()
    return {PRINTED: schedule(max(1, size // NUM_TASKS)), FIXED: schedule(200)}


def _test_images(sizes: Sizes, source: ImageSource, seed: int) -> tuple[LabelledImages, Tensor]:
    """Test images, and their mean rewards [image] in `TASK`."""
    images = source.test_sample(sizes.images)
    environment = LoggedRuns((seed,), (1,), NUM_TASKS).environment(source, seed)
    return images, environment.reward_maps[TASK, images.labels]


def _row(method: str, radius: str, seed: int, size: int, bonuses: Bonuses) -> Row:
    return {
        "method": method,
        "radius": radius,
        "seed": seed,
        "samples": size,
        "images": len(bonuses.bonus),
        "bonus": f"{float(bonuses.bonus.mean()):.6g}",
        "deviation": f"{float(bonuses.bonus.std(correction=0)):.6g}",
        "error": f"{float(bonuses.error.abs().mean()):.6g}",
    }

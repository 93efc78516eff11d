"""The rows of Figure 2(a): errors and bonuses of test images for every method and radius."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.core.environment_facts import DEFAULT_VALUE_RANGE
from gfucb.core.records import Row
from gfucb.environments import LabelledImages
from gfucb.estimation import LogRadius
from gfucb.estimation.calibration import Calibration
from gfucb.exploration import Certified, FineTuning, LastLayer, Linearised
from gfucb.models import ConfidenceSet, MultitaskDataset
from gfucb.paper.bonuses import (
    BATCHED_SELECTORS,
    Bonuses,
    batched_bonuses,
    bonus_statistics,
    bonuses_one_by_one,
    replay_calibrations,
)
from gfucb.paper.common import Job, Options
from gfucb.paper.logged_runs import (
    ImageSource,
    LoggedRuns,
    confidence_sets,
    paper_fit,
    with_radius,
)
from gfucb.runs.agents.paper_procedure import paper_agent

SEEDS = (0, 1, 2)
NUM_TASKS = 10
TASK = 0  # the task of the points; selectors that take one image at a time evaluate only this task
PRINTED, CALIBRATED, WIDE = "B as printed", "calibrated to 80%", "calibrated to 95%"
CERTIFIED = "certified"
STABLE, SUM, MEAN = "fine-tuning", "fine-tuning, literal sum", "fine-tuning, literal mean"
PAPER_VARIANTS = {
    STABLE: FineTuning.stable,
    SUM: FineTuning.literal_sum,
    MEAN: FineTuning.literal_mean,
}


@dataclass(frozen=True)
class Sizes:
    """Number of rounds, images and optimisation steps.

    Attributes:
        images: number of test images.
        heads: number of tasks evaluated by selectors that take all images in one batch.
        tuned: method, radius and number of images of each variant of the paper's procedure.
        images_per_job: images per job of the paper's procedure.
        epochs: largest number of epochs of a fit of the paper's network.
        iterations: steps of fine-tuning per image.
    """

    num_rounds: int = 200
    images: int = 100
    heads: int = NUM_TASKS
    tuned: tuple[tuple[str, str, int], ...] = (
        (STABLE, PRINTED, 100),
        (STABLE, CALIBRATED, 20),
        (SUM, PRINTED, 10),
        (MEAN, PRINTED, 10),
    )
    images_per_job: int = 20
    epochs: int = 200
    iterations: int = 200


QUICK = Sizes(
    num_rounds=10,
    images=30,
    heads=2,
    tuned=((STABLE, PRINTED, 6), (STABLE, CALIBRATED, 2), (SUM, PRINTED, 2)),
    images_per_job=6,
    epochs=20,
    iterations=20,
)


@dataclass(frozen=True)
class Setup:
    """What all methods share: sizes, images, and the seeds whose runs form one batch."""

    sizes: Sizes
    source: ImageSource
    seeds: tuple[int, ...]

    def log(self, seed: int) -> MultitaskDataset:
        """The samples that the default agent collected."""
        rounds = self.sizes.num_rounds
        runs = LoggedRuns(self.seeds, (rounds,), NUM_TASKS)
        return confidence_sets(runs, self.source)[seed, rounds].data

    def test_images(self, seed: int) -> tuple[LabelledImages, Tensor]:
        """Test images, and their mean rewards [task, image]."""
        images = self.source.test_sample(self.sizes.images)
        environment = LoggedRuns((seed,), (1,), NUM_TASKS).environment(self.source, seed)
        return images, environment.reward_maps[:, images.labels]


def sizes_of(options: Options) -> Sizes:
    """Sizes of the full or the quick version."""
    return QUICK if options.quick else Sizes()


def config(options: Options) -> dict[str, Any]:
    """Settings stored with the results."""
    return {"sizes": sizes_of(options)}


def jobs(options: Options) -> list[Job]:
    """One job per seed for our selectors, one per block of images for the paper's procedure."""
    seeds = options.seeds or ((0,) if options.quick else SEEDS)
    setup = Setup(sizes_of(options), ImageSource.of(options), seeds)
    found = [Job(f"solvers-seed={seed}", partial(selector_rows, setup, seed)) for seed in seeds]
    for method, radius, count in setup.sizes.tuned:
        for start in range(0, count, setup.sizes.images_per_job):
            images = range(start, min(count, start + setup.sizes.images_per_job))
            label = f"{method} {radius} images={images.start}-{images.stop - 1}"
            name = label.replace(",", "").replace("%", "").replace(" ", "-")
            found.append(Job(name, partial(fine_tuning_rows, setup, method, radius, images)))
    return found


def selector_rows(setup: Setup, seed: int) -> Sequence[Row]:
    """Our selectors on the default agent's fit: a summary per task, points of one task."""
    sizes, log = setup.sizes, setup.log(seed)
    agent = GFUCB(
        NUM_TASKS,
        seed=seed,
        action_selector=Linearised(joint=False),
        value_range=DEFAULT_VALUE_RANGE,
        device=setup.source.device,
    )
    calibrations = replay_calibrations(agent, log, BATCHED_SELECTORS)
    fitted = agent.confidence_set(log.inputs[:1])
    images, true_means = setup.test_images(seed)
    has_points = seed == setup.seeds[0]
    rows: list[Row] = []
    for method, selector in BATCHED_SELECTORS.items():
        for radius in (PRINTED, CALIBRATED, WIDE):
            beta = squared_radius(radius, sizes.num_rounds, calibrations[method])
            scaled, key = with_radius(fitted, beta), _key(method, radius, seed)
            for task in range(sizes.heads):
                bonuses = batched_bonuses(selector, scaled, images.images, task, true_means[task])
                rows.append(_summary(key, task, bonuses))
                if task == TASK and has_points:
                    rows += _points(key, bonuses)
    for radius in (PRINTED, CALIBRATED) if has_points else ():
        # The certified selector predicts the variance of the tangent along which it moves.
        beta = squared_radius(radius, sizes.num_rounds, calibrations["linearised"])
        scaled = with_radius(fitted, beta)
        bonuses = bonuses_one_by_one(Certified(), scaled, images.images, TASK, true_means[TASK])
        rows += _points(_key(CERTIFIED, radius, seed), bonuses)
    return rows


def fine_tuning_rows(setup: Setup, method: str, radius: str, images: range) -> Sequence[Row]:
    """Points of the paper's procedure for some images: its network, fit and optimisation."""
    seed, sizes = setup.seeds[0], setup.sizes
    calibration = None if radius == PRINTED else _paper_calibration(setup, seed)
    beta = squared_radius(radius, sizes.num_rounds, calibration)
    test, true_means = setup.test_images(seed)
    bonuses = bonuses_one_by_one(
        PAPER_VARIANTS[method](sizes.iterations),
        with_radius(_paper_set(setup, seed), beta),
        test.images[list(images)],
        TASK,
        true_means[TASK, list(images)],
    )
    return _points(_key(method, radius, seed), bonuses, first_image=images.start)


@lru_cache(maxsize=2)
def _paper_set(setup: Setup, seed: int) -> ConfidenceSet:
    device = setup.source.device
    return paper_fit(setup.log(seed), seed=seed, epochs=setup.sizes.epochs, device=device)


@lru_cache(maxsize=2)
def _paper_calibration(setup: Setup, seed: int) -> Calibration:
    """Calibrate the last layer: fine-tuning itself predicts no variance."""
    log = setup.log(seed)
    agent = paper_agent(
        NUM_TASKS,
        log.inputs.shape[1:],
        seed=seed,
        epochs=setup.sizes.epochs,
        refit_growth=2.0,
        device=setup.source.device,
    )
    return replay_calibrations(agent, log, {STABLE: LastLayer(joint=False)})[STABLE]


def squared_radius(radius: str, num_rounds: int, calibration: Calibration | None) -> float:
    """B_t as printed, or the calibrated radius for a decision of a single task."""
    if radius == PRINTED or calibration is None:
        return LogRadius()(num_rounds)
    target = 0.95 if radius == WIDE else calibration.radius.target_coverage
    retargeted = replace(calibration, radius=replace(calibration.radius, target_coverage=target))
    return retargeted.squared_radius(num_rounds, 1)


def _key(method: str, radius: str, seed: int) -> dict[str, str | int]:
    return {"method": method, "radius": radius, "seed": seed}


def _points(key: dict[str, str | int], bonuses: Bonuses, first_image: int = 0) -> list[Row]:
    columns = (bonuses.error.tolist(), bonuses.bonus.tolist(), bonuses.distance.tolist())
    return [
        {
            "part": "point",
            **key,
            "task": TASK,
            "image": first_image + image,
            "error": f"{error:.5g}",
            "bonus": f"{bonus:.5g}",
            "above": int(bonus >= abs(error)),
            "covered": int(bonus >= error),
            "correlation": "",
            "distance": f"{distance:.7g}",
        }
        for image, (error, bonus, distance) in enumerate(zip(*columns, strict=True))
    ]


def _summary(key: dict[str, str | int], task: int, bonuses: Bonuses) -> Row:
    statistics = bonus_statistics(bonuses.error, bonuses.bonus)
    numbers = {name: f"{value:.5g}" for name, value in statistics.items()}
    return {"part": "summary", **key, "task": task, "image": "", **numbers, "distance": ""}

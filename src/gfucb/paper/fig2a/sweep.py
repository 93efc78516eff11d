"""What Figure 2(a) measures: errors and bonuses of test images, for every solver and radius."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.core.records import Row
from gfucb.environments import LabelledImages
from gfucb.estimation import LogRadius
from gfucb.estimation.calibration import Calibration
from gfucb.exploration import Certified, FineTuning, LastLayer, Linearised
from gfucb.models import ConfidenceSet, MultitaskDataset
from gfucb.paper.bonuses import (
    BATCHED,
    Asked,
    ask_at_once,
    ask_one_by_one,
    quality,
    replayed,
)
from gfucb.paper.driver import Job, Options
from gfucb.paper.logged_runs import Play, Source, paper_fit, played, with_radius
from gfucb.runs.bandit_agents import paper_agent

SEEDS = (0, 1, 2)
NUM_TASKS = 10
HEAD = 0  # the task whose points are drawn, and the only one where images are asked one by one
PRINTED, CALIBRATED, WIDE = "B as printed", "calibrated to 80%", "calibrated to 95%"
CERTIFIED = "certified"
STABLE, SUM, MEAN = "fine-tuning", "fine-tuning, literal sum", "fine-tuning, literal mean"
TUNINGS = {STABLE: FineTuning.stable, SUM: FineTuning.literal_sum, MEAN: FineTuning.literal_mean}


@dataclass(frozen=True)
class Sizes:
    """How much is looked at.

    Attributes:
        images: test images asked about.
        heads: so many tasks are asked where images can be asked at once.
        tuned: method, radius and number of images of each version of the paper's procedure.
        images_a_piece: of these, so many in a job.
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
    images_a_piece: int = 20
    epochs: int = 200
    iterations: int = 200


QUICK = Sizes(
    num_rounds=10,
    images=30,
    heads=2,
    tuned=((STABLE, PRINTED, 6), (STABLE, CALIBRATED, 2), (SUM, PRINTED, 2)),
    images_a_piece=6,
    epochs=20,
    iterations=20,
)


@dataclass(frozen=True)
class Scene:
    """The log that all methods look at: sizes, images and the seeds that play together."""

    sizes: Sizes
    source: Source
    seeds: tuple[int, ...]

    def log(self, seed: int) -> MultitaskDataset:
        """What the default agent chose and was paid."""
        rounds = self.sizes.num_rounds
        return played(Play(self.seeds, (rounds,), NUM_TASKS), self.source)[seed, rounds].data

    def questions(self, seed: int) -> tuple[LabelledImages, Tensor]:
        """Test images, and what they pay on average: [task, image]."""
        images = self.source.test_images(self.sizes.images)
        environment = Play((seed,), (1,), NUM_TASKS).environment(self.source, seed)
        return images, environment.reward_maps[:, images.labels]


def sizes_of(options: Options) -> Sizes:
    """How much is looked at with these options."""
    return QUICK if options.quick else Sizes()


def jobs(options: Options) -> list[Job]:
    """All that is to be made with these options."""
    seeds = options.seeds or ((0,) if options.quick else SEEDS)
    scene = Scene(sizes_of(options), Source.of(options), seeds)
    jobs = [Job(f"solvers-seed={seed}", partial(solver_rows, scene, seed)) for seed in seeds]
    for method, radius, count in scene.sizes.tuned:
        for start in range(0, count, scene.sizes.images_a_piece):
            images = range(start, min(count, start + scene.sizes.images_a_piece))
            words = f"{method} {radius} images={images.start}-{images.stop - 1}"
            name = words.replace(",", "").replace("%", "").replace(" ", "-")
            jobs.append(Job(name, partial(tuned_rows, scene, method, radius, images)))
    return jobs


def solver_rows(scene: Scene, seed: int) -> Sequence[Row]:
    """Our solvers on the fit of the default agent; points of one head, a summary of every head."""
    sizes, log = scene.sizes, scene.log(seed)
    agent = GFUCB(
        NUM_TASKS, seed=seed, action_selector=Linearised(joint=False), device=scene.source.device
    )
    calibrations = replayed(agent, log, BATCHED)
    fitted = agent.confidence_set(log.inputs[:1])
    images, truth = scene.questions(seed)
    is_drawn = seed == scene.seeds[0]
    rows: list[Row] = []
    for method, solver in BATCHED.items():
        for radius in (PRINTED, CALIBRATED, WIDE):
            beta = squared_radius(radius, sizes.num_rounds, calibrations[method])
            around, facts = with_radius(fitted, beta), _facts(method, radius, seed)
            for task in range(sizes.heads):
                asked = ask_at_once(solver, around, images.images, task, truth[task])
                rows.append(_summary(facts, task, asked))
                if task == HEAD and is_drawn:
                    rows += _points(facts, asked)
    for radius in (PRINTED, CALIBRATED) if is_drawn else ():
        # A certified member is predicted the widths of the tangent along which it is found.
        beta = squared_radius(radius, sizes.num_rounds, calibrations["linearised"])
        around = with_radius(fitted, beta)
        asked = ask_one_by_one(Certified(), around, images.images, HEAD, truth[HEAD])
        rows += _points(_facts(CERTIFIED, radius, seed), asked)
    return rows


def tuned_rows(scene: Scene, method: str, radius: str, images: range) -> Sequence[Row]:
    """The paper's procedure on some of the images: its network, its fit, its optimism."""
    seed, sizes = scene.seeds[0], scene.sizes
    calibration = None if radius == PRINTED else _paper_calibration(scene, seed)
    beta = squared_radius(radius, sizes.num_rounds, calibration)
    test, truth = scene.questions(seed)
    asked = ask_one_by_one(
        TUNINGS[method](sizes.iterations),
        with_radius(_paper_set(scene, seed), beta),
        test.images[list(images)],
        HEAD,
        truth[HEAD, list(images)],
    )
    return _points(_facts(method, radius, seed), asked, first_image=images.start)


@lru_cache(maxsize=2)
def _paper_set(scene: Scene, seed: int) -> ConfidenceSet:
    source = scene.source
    return paper_fit(scene.log(seed), seed=seed, epochs=scene.sizes.epochs, device=source.device)


@lru_cache(maxsize=2)
def _paper_calibration(scene: Scene, seed: int) -> Calibration:
    """Fine-tuning bounds no width of its own: as in every agent, the heads' stands for it."""
    log = scene.log(seed)
    agent = paper_agent(
        NUM_TASKS,
        log.inputs.shape[1:],
        seed=seed,
        epochs=scene.sizes.epochs,
        refit_growth=2.0,
        device=scene.source.device,
    )
    return replayed(agent, log, {STABLE: LastLayer(joint=False)})[STABLE]


def squared_radius(radius: str, num_rounds: int, calibration: Calibration | None) -> float:
    """B_t as printed, or what the replay of the log found for one task asked alone."""
    if radius == PRINTED or calibration is None:
        return LogRadius()(num_rounds)
    target = 0.95 if radius == WIDE else calibration.radius.target
    same = replace(calibration, radius=replace(calibration.radius, target=target))
    return same.squared_radius(1)


def _facts(method: str, radius: str, seed: int) -> dict[str, str | int]:
    return {"method": method, "radius": radius, "seed": seed}


def _points(facts: dict[str, str | int], asked: Asked, first_image: int = 0) -> list[Row]:
    values = zip(asked.error.tolist(), asked.bonus.tolist(), asked.distance.tolist(), strict=True)
    return [
        {
            "part": "point",
            **facts,
            "task": HEAD,
            "image": first_image + image,
            "error": f"{error:.5g}",
            "bonus": f"{bonus:.5g}",
            "above": int(bonus >= abs(error)),
            "covered": int(bonus >= error),
            "correlation": "",
            "distance": f"{distance:.7g}",
        }
        for image, (error, bonus, distance) in enumerate(values)
    ]


def _summary(facts: dict[str, str | int], task: int, asked: Asked) -> Row:
    found = quality(asked.error, asked.bonus)
    numbers = {name: f"{value:.5g}" for name, value in found.items()}
    return {"part": "summary", **facts, "task": task, "image": "", **numbers, "distance": ""}

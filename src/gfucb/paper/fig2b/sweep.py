"""What Figure 2(b) measures: bonuses of fixed test images while the training set grows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import pandas as pd
from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.core.records import Row
from gfucb.environments import LabelledImages
from gfucb.estimation import LogRadius
from gfucb.exploration import FineTuning
from gfucb.models import ConfidenceSet
from gfucb.paper.bonuses import BATCHED, Asked, ask_at_once, ask_one_by_one
from gfucb.paper.driver import Job, Options
from gfucb.paper.logged_runs import (
    Play,
    Source,
    first_samples,
    offline_log,
    paper_fit,
    with_radius,
    with_tangents,
)

SEEDS = (0, 1, 2)
NUM_TASKS = 10
HEAD = 0
PRINTED, FIXED = "B of t = n / 10", "B of t = 200"
TUNED = "fine-tuning"
OURS = ("last layer", "linearised")
BATCH = 256  # of Adam, in the paper's fit


@dataclass(frozen=True)
class Sizes:
    """How much is looked at.

    Attributes:
        grid: sizes of the training set.
        images: test images.
        tuned: of these, so many are fine-tuned at each size: a fifth of them again with a fixed B.
        images_a_piece: of these, so many in a job.
        epochs, gradient_steps: the paper's fit ends with whichever comes first.
        iterations: steps of fine-tuning an image.
        growth: our agent fits anew when the data has grown by this factor.
    """

    grid: tuple[int, ...] = (10, 30, 90, 270, 800, 2400, 7000, 20000)
    images: int = 100
    tuned: tuple[int, ...] = (100,) * 8
    images_a_piece: int = 20
    epochs: int = 200
    gradient_steps: int = 6000
    iterations: int = 200
    growth: float = 1.3


QUICK = Sizes(
    grid=(10, 100, 1000),
    images=20,
    tuned=(5, 5, 2),
    images_a_piece=3,
    epochs=10,
    iterations=20,
    growth=2.0,
)


def sizes_of(options: Options) -> Sizes:
    """How much is looked at with these options."""
    return QUICK if options.quick else Sizes()


def jobs(options: Options) -> list[Job]:
    """All that is to be made with these options."""
    sizes, source = sizes_of(options), Source.of(options)
    seeds = options.seeds or ((0,) if options.quick else SEEDS)
    made = [Job(f"ours-seed={seed}", partial(our_rows, sizes, source, seed)) for seed in seeds]
    for size, count in zip(sizes.grid, sizes.tuned, strict=True):
        for radius, some in ((PRINTED, count), (FIXED, math.ceil(count / 5))):
            for start in range(0, some, sizes.images_a_piece):
                images = range(start, min(some, start + sizes.images_a_piece))
                make = partial(paper_rows, sizes, source, seeds[0], size, radius, images)
                words = "printed-B" if radius == PRINTED else "fixed-B"
                name = f"paper-n={size}-{words}-images={images.start}-{images.stop - 1}"
                made.append(Job(name, make))
    return made


def our_rows(sizes: Sizes, source: Source, seed: int) -> Sequence[Row]:
    """The default agent learns the log as it grows; at every size of the grid it is asked."""
    log = offline_log(source, seed, NUM_TASKS, sizes.grid[-1])
    images, truth = _questions(sizes, source, seed)
    agent = GFUCB(NUM_TASKS, seed=seed, refit_growth=1.0, device=source.device)
    rows, start = [], 0
    for end in learning_times(sizes.grid, sizes.growth):
        agent.learn(log.tasks[start:end], log.inputs[start:end], log.targets[start:end])
        start = end
        if end in sizes.grid:
            fitted = with_tangents(agent.confidence_set(log.inputs[:1]))
            for method, (radius, beta) in itertools.product(OURS, radii(end).items()):
                around = with_radius(fitted, beta)
                asked = ask_at_once(BATCHED[method], around, images.images, HEAD, truth)
                rows.append(_row(method, radius, seed, end, asked))
    return rows


def paper_rows(
    sizes: Sizes, source: Source, seed: int, size: int, radius: str, which: range
) -> Sequence[Row]:
    """Some images asked of the paper's network, fitted to the first samples of the same log."""
    images, truth = _questions(sizes, source, seed)
    some = slice(which.start, which.stop)
    around = with_radius(_paper_set(sizes, source, seed, size), radii(size)[radius])
    solver = FineTuning.stable(sizes.iterations)
    asked = ask_one_by_one(solver, around, images.images[some], HEAD, truth[some])
    return [_row(TUNED, radius, seed, size, asked)]


@lru_cache(maxsize=1)
def _paper_set(sizes: Sizes, source: Source, seed: int, size: int) -> ConfidenceSet:
    """Around the paper's network, fitted from scratch."""
    log = first_samples(offline_log(source, seed, NUM_TASKS, sizes.grid[-1]), size)
    epochs = min(sizes.epochs, max(1, sizes.gradient_steps // math.ceil(size / BATCH)))
    return paper_fit(log, seed=seed, epochs=epochs, device=source.device, first_part=None)


def learning_times(grid: Sequence[int], growth: float) -> list[int]:
    """When to fit: at every size of the grid, and whenever the data has grown by `growth`."""
    times = set(grid)
    for size, following in itertools.pairwise(grid):
        steps = max(1, math.ceil(math.log(following / size) / math.log(growth)))
        times |= {round(size * (following / size) ** (i / steps)) for i in range(1, steps)}
    return sorted(times)


def radii(size: int) -> dict[str, float]:
    """B_t of the paper, with t = n / M and with a fixed t."""
    schedule = LogRadius()
    return {PRINTED: schedule(max(1, size // NUM_TASKS)), FIXED: schedule(200)}


def _questions(sizes: Sizes, source: Source, seed: int) -> tuple[LabelledImages, Tensor]:
    images = source.test_images(sizes.images)
    environment = Play((seed,), (1,), NUM_TASKS).environment(source, seed)
    return images, environment.reward_maps[HEAD, images.labels]


def _row(method: str, radius: str, seed: int, size: int, asked: Asked) -> Row:
    return {
        "method": method,
        "radius": radius,
        "seed": seed,
        "samples": size,
        "images": len(asked.bonus),
        "bonus": f"{float(asked.bonus.mean()):.6g}",
        "deviation": f"{float(asked.bonus.std(correction=0)):.6g}",
        "error": f"{float(asked.error.abs().mean()):.6g}",
    }


def curve(rows: pd.DataFrame, method: str, radius: str) -> pd.DataFrame:
    """Means over seeds of bonus, deviation over images and error, by number of samples.

    Images that were asked in parts count as one set.
    """
    own = rows[(rows["method"] == method) & (rows["radius"] == radius)]
    keys, images = ["samples", "seed"], own["images"]
    sums = own.assign(
        bonus=images * own["bonus"],
        error=images * own["error"],
        squares=images * (own["deviation"] ** 2 + own["bonus"] ** 2),
    )
    sums = sums.groupby(keys)[["bonus", "error", "squares", "images"]].sum()
    means = sums.div(sums["images"], axis=0)
    variance = (means["squares"] - means["bonus"] ** 2).clip(lower=0)
    table = means[["bonus", "error"]].assign(deviation=variance**0.5, images=sums["images"])
    return table.groupby("samples").mean()

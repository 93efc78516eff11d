"""Figure 2(b): does the bonus of fixed test images fall as the training set grows?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from torch import Tensor

from gfucb.agents import GFUCB
from gfucb.contracts import Row
from gfucb.environments import LabelledImages
from gfucb.estimation import LogRadius
from gfucb.experiments.figures import STYLE
from gfucb.experiments.reproductions.bonuses import BATCHED, Asked, ask_at_once, ask_one_by_one
from gfucb.experiments.reproductions.drawing import label_ends, plain_numbers
from gfucb.experiments.reproductions.driver import Options, Piece, Reproduction, Verdict
from gfucb.experiments.reproductions.played import (
    Play,
    Source,
    first_samples,
    offline_log,
    paper_fit,
    with_radius,
    with_tangents,
)
from gfucb.optimism import FineTuning

SEEDS = (0, 1, 2)
NUM_TASKS = 10
HEAD = 0
PRINTED, FIXED = "B of t = n / 10", "B of t = 200"
TUNED = "fine-tuning"
OURS = ("last layer", "linearised")
LINES = {
    TUNED: ("the paper's fine-tuning", "#cc79a7"),
    "last layer": ("last layer (our default)", "#d55e00"),
    "linearised": ("linearised", "#0072b2"),
}
BATCH = 256  # of Adam, in the paper's fit


@dataclass(frozen=True)
class Sizes:
    """How much is looked at.

    Attributes:
        grid: sizes of the training set.
        images: test images.
        tuned: of these, so many are fine-tuned at each size: half of them again with a fixed B.
        epochs, gradient_steps: the paper's fit ends with whichever comes first.
        growth: our agent fits anew when the data has grown by this factor.
    """

    grid: tuple[int, ...] = (10, 30, 90, 270, 800, 2400, 7000, 20000)
    images: int = 100
    tuned: tuple[int, ...] = (12, 12, 12, 12, 12, 12, 10, 6)
    epochs: int = 200
    gradient_steps: int = 6000
    iterations: int = 200
    growth: float = 1.3


QUICK = Sizes(
    grid=(10, 100, 1000),
    images=20,
    tuned=(4, 4, 2),
    epochs=10,
    iterations=20,
    growth=2.0,
)


def _sizes(options: Options) -> Sizes:
    return QUICK if options.quick else Sizes()


def _pieces(options: Options) -> list[Piece]:
    sizes, source = _sizes(options), Source.of(options)
    seeds = options.seeds or ((0,) if options.quick else SEEDS)
    return [
        Piece(f"ours-seed={seed}", partial(our_rows, sizes, source, seed)) for seed in seeds
    ] + [
        Piece(f"paper-n={size}", partial(paper_rows, sizes, source, seeds[0], size, count))
        for size, count in zip(sizes.grid, sizes.tuned, strict=True)
    ]


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


def paper_rows(sizes: Sizes, source: Source, seed: int, size: int, count: int) -> Sequence[Row]:
    """The paper's network, fitted from scratch to the first samples of the same log."""
    log = first_samples(offline_log(source, seed, NUM_TASKS, sizes.grid[-1]), size)
    images, truth = _questions(sizes, source, seed)
    epochs = min(sizes.epochs, max(1, sizes.gradient_steps // math.ceil(size / BATCH)))
    fitted = paper_fit(log, seed=seed, epochs=epochs, device=source.device, first_part=None)
    rows, solver = [], FineTuning.stable(sizes.iterations)
    for (radius, beta), some in zip(
        radii(size).items(), (count, math.ceil(count / 2)), strict=True
    ):
        around = with_radius(fitted, beta)
        asked = ask_one_by_one(solver, around, images.images[:some], HEAD, truth[:some])
        rows.append(_row(TUNED, radius, seed, size, asked))
    return rows


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
    world = Play((seed,), (1,), NUM_TASKS).world(source, seed)
    return images, world.reward_maps[HEAD, images.labels]


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
    """Means over seeds of bonus, deviation over images and error, by number of samples."""
    own = rows[(rows["method"] == method) & (rows["radius"] == radius)]
    return own.groupby("samples")[["bonus", "deviation", "error", "images"]].mean()


def _verdicts(rows: pd.DataFrame) -> list[Verdict]:
    found = []
    for method, (words, _) in LINES.items():
        for radius in (PRINTED, FIXED):
            line = curve(rows, method, radius)
            if len(line) < 2:
                continue
            bonus = line["bonus"].to_numpy(float)
            falls = int((np.diff(bonus) < 0).sum())
            found.append(
                Verdict(
                    f"the average bonus drops as samples increase; {words}, {radius}",
                    f"from {bonus[0]:.2g} with {line.index[0]} samples to {bonus[-1]:.2g} with "
                    f"{line.index[-1]}; it falls in {falls} of {len(bonus) - 1} steps",
                    bool(bonus[-1] < bonus[0]),
                    f"{bonus[-1] / bonus[0]:.2f} of the first",
                )
            )
    return found


def _table(rows: pd.DataFrame) -> str:
    sizes = sorted(rows["samples"].unique().tolist())
    lines = [
        "| | " + " | ".join(f"n = {size}" for size in sizes) + " |",
        "|---" * (1 + len(sizes)) + "|",
    ]
    for method, (words, _) in LINES.items():
        for radius in (PRINTED, FIXED):
            line = curve(rows, method, radius)
            cells = [
                f"{line.loc[n, 'bonus']:.2g} ({line.loc[n, 'deviation']:.1g})"
                if n in line.index
                else ""
                for n in sizes
            ]
            lines.append(f"| {words}, {radius} | " + " | ".join(cells) + " |")
    for method, words in ((TUNED, "error of the paper's fit"), (OURS[0], "error of our fit")):
        line = curve(rows, method, PRINTED)
        cells = [f"{line.loc[n, 'error']:.2g}" if n in line.index else "" for n in sizes]
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _figure(rows: pd.DataFrame) -> Figure:
    with rc_context(STYLE):
        figure = Figure(figsize=(10.4, 4.2), layout=ConstrainedLayoutEngine(wspace=0.06))
        panels = figure.subplots(1, 2, sharey=True)
        for axes, radius in zip(panels, (PRINTED, FIXED), strict=True):
            for method in LINES:
                _draw_line(axes, curve(rows, method, radius), method)
            error = curve(rows, OURS[0], radius)["error"]
            axes.plot(error.index, error, color="#777777", lw=1.4, ls=":")
            axes.set(xscale="log", yscale="log", xlabel="training samples n", title=radius)
            axes.margins(x=0.02)
            plain_numbers(axes, x=True, y=True)
        panels[0].set_ylabel("bonus of a test image\n(mean, ± one standard deviation)")
        _label_lines(panels[1], rows)
        return figure


def _draw_line(axes: Axes, line: pd.DataFrame, method: str) -> None:
    colour = LINES[method][1]
    mean, deviation = line["bonus"], line["deviation"]
    axes.plot(line.index, mean, "o-", ms=4, color=colour, lw=2)
    # On a logarithmic axis a band that reaches zero has no lower end.
    low = (mean - deviation).clip(lower=0.05 * mean)
    axes.fill_between(line.index, low, mean + deviation, color=colour, alpha=0.16, lw=0)


def _label_lines(axes: Axes, rows: pd.DataFrame) -> None:
    ends = {}
    for method, (words, colour) in LINES.items():
        line = curve(rows, method, FIXED)
        if len(line):
            ends[words] = (float(line["bonus"].iloc[-1]), colour)
        if len(line) and method == OURS[0]:
            ends["error of our fit"] = (float(line["error"].iloc[-1]), "#777777")
    label_ends(axes, ends)


def _config(options: Options) -> dict[str, Any]:
    return {"sizes": asdict(_sizes(options))}


CHOICES = f"""\
- 10 to 20000 samples are more than T * M: they are drawn offline, uniformly, in turn for ten tasks.
  t in B_t is then n / 10; a fixed B, that of t = 200, shows what is due to the data alone.
- The paper's network is fitted from scratch at every size, 200 epochs or {Sizes().gradient_steps}
  gradient steps, whichever ends first. Our agent learns the same log as it grows, fitting anew at
  a growth of 30%, as it does when it plays.
- Bonuses are those of task {HEAD} at 100 fixed test images, each image alone. Fine-tuning is
  slow: it asks about {max(Sizes().tuned)} of them, about {min(Sizes().tuned)} at the largest size,
  and about half as many for the fixed B; one seed, where ours has {len(SEEDS)}.
- Bonuses are not clipped, though rewards lie in [0, 1]: above 1 the bonus says nothing.
"""

FIG2B = Reproduction(
    "Figure 2(b): the average bonus of fixed test images drops as the training set grows from 10 "
    "to 20000 samples.",
    _pieces,
    _figure,
    _verdicts,
    _config,
    choices=CHOICES,
    table=_table,
)

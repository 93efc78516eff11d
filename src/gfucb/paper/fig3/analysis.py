"""Figure 3: does the representation of ten tasks tell digits apart, and that of one task not?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from gfucb.core.linalg import task_sums
from gfucb.core.records import Row
from gfucb.environments.image_bandit import NUM_CLASSES
from gfucb.models import Representation
from gfucb.paper.driver import Job, Options, Reproduction, Verdict
from gfucb.paper.logged_runs import (
    MILESTONES,
    SEEDS,
    Play,
    Source,
    features_on,
    learned_alone,
    learned_together,
    mean_and_spread,
    paper_played,
    played,
)
from gfucb.runs.plots import STYLE
from gfucb.runs.summary import half_width

PLAYS = {"M = 10": learned_together, "single task": learned_alone}
NETWORKS = {"default": "our default", "paper": "the paper's network"}
COLOURS = {"M = 10": "#d55e00", "single task": "#009e73"}


@dataclass(frozen=True)
class Sizes:
    """How much is looked at.

    Attributes:
        milestones: rounds; the last one is looked at. Those of the probe, to share its play.
        paper_seeds: on so many seeds the paper's network is fitted to the log too.
        labelled: images with labels that templates for the accuracy are made of.
    """

    milestones: tuple[int, ...] = MILESTONES
    paper_seeds: int = 3
    epochs: int = 200
    labelled: int = 10_000


QUICK = Sizes(milestones=(5, 20), paper_seeds=1, epochs=10, labelled=1000)


def _sizes(options: Options) -> Sizes:
    return QUICK if options.quick else Sizes()


def _jobs(options: Options) -> list[Job]:
    sizes, source = _sizes(options), Source.of(options)
    seeds = options.seeds or ((0, 1) if options.quick else SEEDS)
    return [
        Job(setting.replace(" ", ""), partial(setting_rows, setting, sizes, source, seeds))
        for setting in PLAYS
    ]


def setting_rows(
    setting: str, sizes: Sizes, source: Source, seeds: tuple[int, ...]
) -> Sequence[Row]:
    """The maps of the first seed, and what they are worth on every seed."""
    play: Play = PLAYS[setting](seeds, sizes.milestones)
    rows: list[Row] = []
    for seed in seeds:
        learned = played(play, source)[seed, sizes.milestones[-1]]
        fits = {"default": learned.center.representation}
        if seed in seeds[: sizes.paper_seeds]:
            fitted = paper_played(play, source, seed, sizes.epochs)
            fits["paper"] = fitted.center.representation
        for network, phi in fits.items():
            facts: dict[str, str | int] = {"setting": setting, "network": network, "seed": seed}
            rows += _rows_of(phi, source, sizes, facts, with_map=seed == seeds[0])
    return rows


def _rows_of(
    phi: Representation,
    source: Source,
    sizes: Sizes,
    facts: dict[str, str | int],
    *,
    with_map: bool,
) -> list[Row]:
    """What a representation is worth, in numbers and, if asked for, as a map."""
    known, test = source.shown(), source.held_out()
    few = slice(0, sizes.labelled)
    learned = features_on(phi, known.images[few], source.device, unit=True)
    seen = features_on(phi, test.images, source.device, unit=True)
    kernel = kernel_map(seen, test.labels)
    numbers = {
        "contrast": contrast(kernel),
        "diagonal wins": float((kernel.argmax(1) == torch.arange(NUM_CLASSES)).double().mean()),
        "accuracy": nearest_template_accuracy(learned, known.labels[few], seen, test.labels),
    }
    rows: list[Row] = [
        {**facts, "quantity": name, "row": "", "column": "", "value": f"{value:.6g}"}
        for name, value in numbers.items()
    ]
    if with_map:
        rows += [
            {**facts, "quantity": "kernel", "row": i, "column": j, "value": f"{value:.4g}"}
            for i, line in enumerate(kernel.tolist())
            for j, value in enumerate(line)
        ]
    return rows


def templates(features: Tensor, labels: Tensor) -> Tensor:
    """Mean features of every class: [image, feature], [image] -> [class, feature]."""
    labels = labels.to(features.device)
    counts = torch.bincount(labels, minlength=NUM_CLASSES).clamp_min(1)
    return task_sums(features, labels, NUM_CLASSES) / counts[:, None]


def kernel_map(features: Tensor, labels: Tensor) -> Tensor:
    """C(i, j) of Appendix C.1, mean inner products of two classes: -> [class, class]."""
    means = templates(features, labels)
    return (means @ means.T).cpu()


def contrast(kernel: Tensor) -> float:
    """How strong the diagonal is: its mean minus the mean size of all else.

    With features of length one this is 1 if and only if images of a class have the same features
    and those of two classes are orthogonal, and 0 if all images have the same features.
    """
    size = len(kernel)
    diagonal = kernel.diagonal().sum()
    others = kernel.abs().sum() - kernel.diagonal().abs().sum()
    return float(diagonal / size - others / (size * (size - 1)))


def nearest_template_accuracy(
    learned: Tensor, learned_labels: Tensor, features: Tensor, labels: Tensor
) -> float:
    """Share of images whose nearest class mean, of other images, is that of their own class."""
    distances = torch.cdist(features, templates(learned, learned_labels))
    return float((distances.argmin(1).cpu() == labels).double().mean())


def numbers_of(rows: pd.DataFrame, quantity: str, setting: str, network: str) -> pd.Series:
    """A number by seed."""
    own = rows[(rows["quantity"] == quantity) & (rows["setting"] == setting)]
    return own[own["network"] == network].set_index("seed")["value"].astype(float)


def _verdicts(rows: pd.DataFrame) -> list[Verdict]:
    found = []
    for network, words in NETWORKS.items():
        together, alone = (numbers_of(rows, "contrast", s, network) for s in PLAYS)
        if together.empty or alone.empty:
            continue
        accuracies = [numbers_of(rows, "accuracy", s, network) for s in PLAYS]
        wins = numbers_of(rows, "diagonal wins", "M = 10", network)
        difference = together - alone
        low = difference.mean() - half_width(difference.to_numpy(float))
        found += [
            Verdict(
                f"{words}: with ten tasks every digit is most like itself",
                f"in {wins.mean():.0%} of the rows the diagonal is the largest; contrast "
                f"{mean_and_spread(together, '.2f')}",
                bool((wins == 1).all()),
            ),
            Verdict(
                f"{words}: the diagonal is stronger than with a single task",
                f"contrast {mean_and_spread(together, '.2f')} against "
                f"{mean_and_spread(alone, '.2f')}",
                bool(difference.mean() > 0 and not low <= 0),
                f"difference {mean_and_spread(difference, '.2f')}",
            ),
            Verdict(
                f"{words}: a single task's representation does not tell digits apart as well",
                f"nearest class mean right for {mean_and_spread(accuracies[1], '.2f')} against "
                f"{mean_and_spread(accuracies[0], '.2f')} with ten tasks",
                bool(accuracies[1].mean() < accuracies[0].mean()),
                f"difference {mean_and_spread(accuracies[0] - accuracies[1], '.2f')}",
            ),
        ]
    return found


def _figure(rows: pd.DataFrame) -> Figure:
    with rc_context(STYLE):
        figure = Figure(figsize=(11.4, 5.6), layout="constrained")
        grid = figure.subplots(2, 4, width_ratios=[1, 1, 0.62, 0.62])
        maps = []
        for line, (network, words) in zip(grid, NETWORKS.items(), strict=True):
            for axes, setting in zip(line, ("single task", "M = 10"), strict=False):
                maps.append(_draw_map(axes, rows, setting, network))
                axes.set_title(f"{words}, {setting}", fontsize=10)
            _draw_numbers(line[2], rows, "contrast", network)
            _draw_numbers(line[3], rows, "accuracy", network)
        grid[0, 2].set_title("contrast of the diagonal", fontsize=10)
        grid[0, 3].set_title("nearest class mean,\naccuracy", fontsize=10)
        bar = figure.colorbar(maps[0], ax=grid[:, :2], location="left", shrink=0.6, aspect=30)
        bar.set_label("mean inner product of two classes")
        bar.outline.set_visible(False)
        return figure


def _draw_map(axes: Axes, rows: pd.DataFrame, setting: str, network: str) -> Any:
    own = rows[(rows["quantity"] == "kernel") & (rows["setting"] == setting)]
    own = own[own["network"] == network]
    values = np.full((NUM_CLASSES, NUM_CLASSES), np.nan)
    values[own["row"].astype(int), own["column"].astype(int)] = own["value"]
    drawn = axes.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1)
    axes.set_xticks(range(NUM_CLASSES))
    axes.set_yticks(range(NUM_CLASSES))
    axes.tick_params(length=0, labelsize=8.5)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return drawn


def _draw_numbers(axes: Axes, rows: pd.DataFrame, quantity: str, network: str) -> None:
    """Every seed, and the mean with its 95% interval."""
    for place, setting in enumerate(("single task", "M = 10")):
        values = numbers_of(rows, quantity, setting, network).to_numpy(float)
        if len(values) == 0:
            continue
        colour = COLOURS[setting]
        axes.plot(np.full(len(values), place), values, "o", ms=5, mew=0, alpha=0.4, color=colour)
        axes.errorbar(
            place + 0.18, values.mean(), half_width(values), fmt="D", color=colour, capsize=4
        )
        axes.annotate(
            f"{values.mean():.2f}",
            (place + 0.18, values.mean()),
            (9, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=9,
        )
    axes.set_xticks([0, 1], ["single", "M = 10"])
    axes.set(xlim=(-0.4, 1.75), ylim=(-0.04, 1.04))
    axes.grid(visible=False, axis="x")


def _config(options: Options) -> dict[str, Any]:
    return {"sizes": asdict(_sizes(options))}


CHOICES = """\
- phi is what stands before the heads after T = 600 rounds: 6000 samples for ten tasks, 600 for one.
  The single task pays digit / 10, the ten tasks permutations of it with distinct best digits.
- Features are scaled to length one, as the paper's network does; our default network does not do
  it by itself. The map is C(i, j) of Appendix C.1 on all images held out, of the first seed.
- *Contrast*, our number for a strong diagonal: mean of the diagonal minus the mean size of all
  other entries. It is 1 when images of a digit have equal features and digits are orthogonal, and
  0 when all images look alike. *Nearest class mean*: those means are of images
  that environments show.
- The paper's network is fitted, for 200 epochs at most, to the samples that our default agent
  chose, not to its own.
"""

FIG3 = Reproduction(
    "Figure 3: the representation learned by ten tasks has a kernel with a strong diagonal, the "
    "one learned by a single task does not tell digits apart.",
    _jobs,
    _figure,
    _verdicts,
    _config,
    choices=CHOICES,
)

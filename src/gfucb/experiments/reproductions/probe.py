"""Appendix C.1: how well does a linear layer on the frozen representation read digits?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from torch import Tensor

from gfucb.agents import GFUCB
from gfucb.contracts import Row
from gfucb.environments.image_bandit import NUM_CLASSES
from gfucb.experiments.figures import STYLE
from gfucb.experiments.reproductions.drawing import label_ends, plain_numbers
from gfucb.experiments.reproductions.driver import Options, Piece, Reproduction, Verdict
from gfucb.experiments.reproductions.played import (
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
from gfucb.experiments.summary import half_width
from gfucb.functions import Representation
from gfucb.functions.representations import flat_inputs
from gfucb.seeding import random_stream

TOGETHER, ALONE, PIXELS, UNTRAINED = "M = 10", "single task", "raw pixels", "untrained network"
WANTED = 0.95
COLOURS = {TOGETHER: "#d55e00", ALONE: "#009e73", PIXELS: "#777777", UNTRAINED: "#777777"}
LBFGS_STEPS = 200


@dataclass(frozen=True)
class Sizes:
    """How much is looked at.

    Attributes:
        milestones: rounds after which the representation of ten tasks, or of one, is probed.
        long: further rounds of the single task, as many as ten tasks have samples.
        labels: how many labelled images a probe is fitted to.
        paper_seeds: on so many seeds the paper's network is probed too.
        long_seeds: on so many seeds the single task plays on.
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


def _sizes(options: Options) -> Sizes:
    return QUICK if options.quick else Sizes()


def _pieces(options: Options) -> list[Piece]:
    sizes, source = _sizes(options), Source.of(options)
    seeds = options.seeds or ((0, 1) if options.quick else SEEDS)
    together = learned_together(seeds, sizes.milestones)
    alone = learned_alone(seeds, sizes.milestones)
    long = learned_alone(seeds[: sizes.long_seeds], sizes.long)
    return [
        Piece("references", partial(reference_rows, sizes, source, seeds)),
        Piece("together", partial(played_rows, TOGETHER, together, sizes, source)),
        Piece("alone", partial(played_rows, ALONE, alone, sizes, source)),
        Piece("alone-long", partial(played_rows, ALONE, long, sizes, source)),
        *(
            Piece(
                f"paper-{name}-seed={seed}",
                partial(paper_rows, setting, play, sizes, source, seed),
            )
            for name, setting, play in (("together", TOGETHER, together), ("alone", ALONE, alone))
            for seed in seeds[: sizes.paper_seeds]
        ),
    ]


def played_rows(setting: str, play: Play, sizes: Sizes, source: Source) -> Sequence[Row]:
    """The default network at every milestone."""
    rows: list[Row] = []
    for (seed, rounds), learned in played(play, source).items():
        facts = _facts(setting, "default", seed, rounds, rounds * play.num_tasks)
        rows += _rows(facts, learned.center.representation, sizes, source)
    return rows


def paper_rows(setting: str, play: Play, sizes: Sizes, source: Source, seed: int) -> Sequence[Row]:
    """The paper's network, fitted to all samples that the default agent has chosen."""
    rounds = play.milestones[-1]
    fitted = paper_played(play, source, seed, sizes.epochs)
    facts = _facts(setting, "paper", seed, rounds, rounds * play.num_tasks)
    return list(_rows(facts, fitted.center.representation, sizes, source))


def reference_rows(sizes: Sizes, source: Source, seeds: tuple[int, ...]) -> Sequence[Row]:
    """What needs no bandit: the pixels themselves, and the default network as it begins."""
    rows = list(_rows(_facts(PIXELS, "none", seeds[0], 0, 0), flat_inputs, sizes, source))
    example = source.shown().images[:1].to(source.device)
    for seed in seeds:
        untrained = GFUCB(1, seed=seed, device=source.device).confidence_set(example).center
        facts = _facts(UNTRAINED, "default", seed, 0, 0)
        rows += _rows(facts, untrained.representation, sizes, source)
    return rows


def _facts(
    setting: str, network: str, seed: int, rounds: int, samples: int
) -> dict[str, str | int]:
    return {
        "setting": setting,
        "network": network,
        "seed": seed,
        "rounds": rounds,
        "samples": samples,
    }


def _rows(
    facts: dict[str, str | int], phi: Representation, sizes: Sizes, source: Source
) -> Iterator[Row]:
    known, test = source.shown(), source.held_out()
    lots = torch.randperm(
        len(known.labels), generator=random_stream(int(facts["seed"]), "labelled images")
    )[: max(sizes.labels)]
    learned = features_on(phi, known.images[lots], source.device, unit=False)
    seen = features_on(phi, test.images, source.device, unit=False)
    labels = known.labels[lots]
    for count in sizes.labels:
        accuracy = probe_accuracy(learned[:count], labels[:count], seen, test.labels)
        yield {**facts, "labels": count, "accuracy": f"{accuracy:.4f}"}


def probe_accuracy(learned: Tensor, learned_labels: Tensor, seen: Tensor, labels: Tensor) -> float:
    """Test accuracy of multinomial logistic regression on standardised features.

        minimise  sum of log losses + |weights|^2 / 2      (scikit-learn's default, C = 1)

    by L-BFGS, on the device of the features: [image, feature], [image] twice.
    """
    middle, spread = learned.mean(0), learned.std(0, correction=0)
    spread = torch.where(spread > 0, spread, 1.0)
    inputs, targets = (learned - middle) / spread, learned_labels.to(learned.device)
    weights = inputs.new_zeros(inputs.shape[1], NUM_CLASSES, requires_grad=True)
    biases = inputs.new_zeros(NUM_CLASSES, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weights, biases], max_iter=LBFGS_STEPS, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        log_losses = torch.nn.functional.cross_entropy(inputs @ weights + biases, targets)
        value = log_losses + weights.square().sum() / (2 * len(inputs))
        value.backward()
        return value

    optimiser.step(loss)
    with torch.no_grad():
        guesses = ((seen - middle) / spread @ weights + biases).argmax(1).cpu()
    return float((guesses == labels).double().mean())


def accuracies(
    rows: pd.DataFrame, setting: str, network: str, labels: int, samples: int | None = None
) -> pd.DataFrame:
    """Accuracy by seed and number of bandit samples: [seed, samples]."""
    own = rows[(rows["setting"] == setting) & (rows["network"] == network)]
    own = own[own["labels"] == labels]
    if samples is not None:
        own = own[own["samples"] == samples]
    return own.pivot_table(index="seed", columns="samples", values="accuracy")


def samples_needed(means: pd.Series, wanted: float = WANTED) -> str:
    """Where a curve of accuracies by samples first reaches `wanted`, for people."""
    samples, values = means.index.to_numpy(float), means.to_numpy(float)
    above = np.flatnonzero(values >= wanted)
    if len(above) == 0:
        return f"more than {samples[-1]:.0f}"
    first = int(above[0])
    if first == 0:
        return f"at most {samples[0]:.0f}"
    low, high = values[first - 1 : first + 1]
    share = (wanted - low) / (high - low)
    logs = np.log(samples[first - 1 : first + 1])
    return f"about {math.exp(logs[0] + share * (logs[1] - logs[0])):.0f}"


def _verdicts(rows: pd.DataFrame) -> list[Verdict]:
    most = int(rows["labels"].max())
    together, alone, paper = (
        accuracies(rows, *key, most)
        for key in ((TOGETHER, "default"), (ALONE, "default"), (TOGETHER, "paper"))
    )
    found = []
    for words, table in (("our default network", together), ("the paper's network", paper)):
        if len(table):
            samples = int(table.columns.max())
            setting = f"{words}, M = 10, {samples} samples, {most} labels"
            found.append(_reaches(setting, table[samples]))
    if len(together) and len(alone):
        found += _compared(together, alone)
    return found


def _compared(together: pd.DataFrame, alone: pd.DataFrame) -> list[Verdict]:
    """Ten tasks against one, at equal rounds and at equal samples: both [seed, samples]."""
    samples = int(together.columns.max())
    rounds, last = samples // 10, together[samples]
    found = [
        Verdict(
            f"our default network reaches 95% within {samples} bandit samples",
            f"{samples_needed(together.mean())} samples with M = 10, "
            f"{samples_needed(alone.mean())} with a single task",
            bool(together.mean().max() >= WANTED),
        )
    ]
    for count, words in ((rounds, f"after {rounds} rounds of both"), (samples, "at equal samples")):
        if count in alone:
            difference = (last - alone[count]).dropna()
            low = difference.mean() - half_width(difference.to_numpy(float))
            found.append(
                Verdict(
                    f"ten tasks read digits better than a single task, {words}",
                    f"{mean_and_spread(last[difference.index], '.3f')} against "
                    f"{mean_and_spread(alone[count].dropna(), '.3f')}",
                    bool(difference.mean() > 0 and not low <= 0),
                    f"difference {mean_and_spread(difference, '.3f')}",
                )
            )
    return found


def _reaches(words: str, values: pd.Series) -> Verdict:
    return Verdict(
        f"a linear layer reaches over 95% of accuracy; {words}",
        mean_and_spread(values, ".3f"),
        bool(values.mean() > WANTED),
        f"{values.mean() - WANTED:+.3f}",
    )


def _table(rows: pd.DataFrame) -> str:
    """Accuracy of everything that was probed: one line a representation, one column labels."""
    counts = sorted(rows["labels"].unique().tolist())
    lines = [
        "| representation | bandit samples | "
        + " | ".join(f"{count} labels" for count in counts)
        + " |",
        "|---" * (2 + len(counts)) + "|",
    ]
    keys = ["setting", "network", "samples"]
    for key, own in rows.groupby(keys, sort=False):
        setting, network, samples = key
        words = setting if setting in (PIXELS, UNTRAINED) else f"{setting}, {network} network"
        cells = [
            mean_and_spread(own[own["labels"] == count]["accuracy"], ".3f") for count in counts
        ]
        lines.append(f"| {words} | {samples} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _figure(rows: pd.DataFrame) -> Figure:
    with rc_context(STYLE):
        figure = Figure(figsize=(10.8, 4.2), layout=ConstrainedLayoutEngine(wspace=0.05))
        by_samples, by_labels = figure.subplots(1, 2, sharey=True)
        _draw_by_samples(by_samples, rows)
        _draw_by_labels(by_labels, rows)
        by_samples.set_ylabel("test accuracy of a linear layer")
        low = float(rows["accuracy"].min())
        by_samples.set_ylim(max(0.0, math.floor(10 * low) / 10), 1.0)
        label_ends(by_labels, _label_ends_of(rows))
        return figure


def _draw_by_samples(axes: Axes, rows: pd.DataFrame) -> None:
    most = int(rows["labels"].max())
    for setting in (TOGETHER, ALONE):
        _draw_line(axes, accuracies(rows, setting, "default", most), COLOURS[setting])
        paper = accuracies(rows, setting, "paper", most).mean()
        axes.plot(paper.index, paper, "s", ms=7, mfc="white", color=COLOURS[setting])
    pixels = float(rows[(rows["setting"] == PIXELS) & (rows["labels"] == most)]["accuracy"].mean())
    axes.axhline(pixels, color=COLOURS[PIXELS], lw=1.2, ls=":")
    axes.annotate(
        "raw pixels",
        (0.02, pixels),
        (0, -11),
        fontsize=8.5,
        color=COLOURS[PIXELS],
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
    )
    _draw_wanted(axes)
    axes.set(xscale="log", xlabel="bandit samples")
    plain_numbers(axes, x=True)
    axes.set_title(f"{most} labels; squares: the paper's network", fontsize=10)


def _draw_by_labels(axes: Axes, rows: pd.DataFrame) -> None:
    for name in (UNTRAINED, PIXELS, ALONE, TOGETHER):
        own = _last(rows, name)
        if own.empty:
            continue
        table = own.pivot_table(index="seed", columns="labels", values="accuracy")
        _draw_line(axes, table, COLOURS[name], style=":" if name in (PIXELS, UNTRAINED) else "-")
    _draw_wanted(axes)
    axes.set(xscale="log", xlabel="labels the layer is fitted to")
    counts = sorted(rows["labels"].unique().tolist())
    axes.set_xticks(counts, [str(count) for count in counts])
    plain_numbers(axes, x=True)
    axes.set_title("after the last bandit sample", fontsize=10)


def _last(rows: pd.DataFrame, setting: str) -> pd.DataFrame:
    """What is known of the representation with the most samples."""
    own = rows[(rows["setting"] == setting) & (rows["network"] != "paper")]
    return own[own["samples"] == own["samples"].max()]


def _label_ends_of(rows: pd.DataFrame) -> dict[str, tuple[float, str]]:
    ends = {}
    for name in (UNTRAINED, PIXELS, ALONE, TOGETHER):
        own = _last(rows, name)
        if own.empty:
            continue
        height = float(own[own["labels"] == own["labels"].max()]["accuracy"].mean())
        samples = int(own["samples"].max())
        words = f"{name}, {samples} samples" if samples else name
        ends[words] = (height, COLOURS[name])
    return ends


def _draw_line(axes: Axes, table: pd.DataFrame, colour: str, style: str = "-") -> None:
    if table.empty:
        return
    mean = table.mean()
    spread = table.apply(lambda column: half_width(column.dropna().to_numpy(float)))
    axes.plot(mean.index, mean, f"o{style}", color=colour, lw=2, ms=4.5)
    axes.fill_between(mean.index, mean - spread, mean + spread, color=colour, alpha=0.16, lw=0)


def _draw_wanted(axes: Axes) -> None:
    axes.axhline(WANTED, color="#222222", lw=1)
    axes.annotate(
        "95%",
        (0.01, WANTED),
        (0, 3),
        fontsize=8.5,
        color="#222222",
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
    )


def _config(options: Options) -> dict[str, Any]:
    return {"sizes": asdict(_sizes(options))}


CHOICES = """\
- "A simple linear layer": multinomial logistic regression on standardised features, C = 1, on all
  60000 labels of the training images (also 1000 and 100); accuracy on the 10000 test images.
- The representation is frozen after 100, 200, 300 and 600 rounds: 1000 to 6000 samples of ten tasks
  with distinct best digits. The single task pays digit / 10; it has one sample a round, and plays
  on to 6000 rounds on some seeds, so that it can be compared at equal rounds and at equal samples.
- The paper's network is fitted, for 200 epochs at most, to the samples that our default agent
  chose, not to its own.
- Raw pixels and the network before any training are what there is without a bandit.
"""

PROBE = Reproduction(
    "Appendix C.1: a linear layer on the representation that ten tasks have learned reads MNIST "
    "with over 95% of accuracy.",
    _pieces,
    _figure,
    _verdicts,
    _config,
    choices=CHOICES,
    table=_table,
)

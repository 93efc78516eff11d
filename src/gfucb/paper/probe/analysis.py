"""Appendix C.1: how well does a linear layer on the frozen representation read digits?"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from gfucb.paper.drawing import label_ends, plain_numbers
from gfucb.paper.driver import Options, Reproduction, Verdict
from gfucb.paper.logged_runs import mean_and_spread
from gfucb.paper.probe.sweep import (
    ALONE,
    PIXELS,
    TOGETHER,
    UNTRAINED,
    jobs,
    sizes_of,
)
from gfucb.runs.plots import STYLE
from gfucb.runs.summary import half_width

WANTED = 0.95
COLOURS = {TOGETHER: "#d55e00", ALONE: "#009e73", PIXELS: "#777777", UNTRAINED: "#777777"}


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
        (0.98, pixels),
        (0, -11),
        fontsize=8.5,
        ha="right",
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
        (0.3, WANTED),
        (0, -10),
        fontsize=8.5,
        color="#222222",
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
    )


def _config(options: Options) -> dict[str, Any]:
    return {"sizes": asdict(sizes_of(options))}


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
    jobs,
    _figure,
    _verdicts,
    _config,
    choices=CHOICES,
    table=_table,
)

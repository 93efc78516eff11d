"""The two panels of the probe: accuracy by bandit samples, and by labels of the linear layer."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from gfucb.paper.drawing import (
    COLUMN,
    COLUMN_STYLE,
    draw_mean_and_band,
    label_curve_ends,
    letter_panels,
    plain_log_ticks,
    seed_counts,
)
from gfucb.paper.probe.analysis import REQUIRED_ACCURACY, accuracies
from gfucb.paper.probe.sweep import PIXELS, SINGLE_TASK, TEN_TASKS, UNTRAINED

COLOURS = {
    UNTRAINED: "#777777",
    PIXELS: "#777777",
    SINGLE_TASK: "#009e73",
    TEN_TASKS: "#d55e00",
}


def figure(rows: pd.DataFrame) -> Figure:
    """Draw both panels on one scale of accuracy."""
    with rc_context(COLUMN_STYLE):
        drawn = Figure(figsize=(COLUMN, 3.2), layout=ConstrainedLayoutEngine(wspace=0.05))
        by_samples, by_labels = drawn.subplots(1, 2, sharey=True)
        _draw_by_samples(by_samples, rows)
        _draw_by_labels(by_labels, rows)
        by_samples.set_ylabel("test accuracy of a linear layer")
        lowest = float(rows["accuracy"].min())
        by_samples.set_ylim(max(0.0, math.floor(10 * lowest) / 10), 1.0)
        label_curve_ends(by_labels, _ends(rows))
        letter_panels([by_samples, by_labels])
        return drawn


def caption(rows: pd.DataFrame) -> str:
    """Panels, bands and numbers of seeds."""
    seeds = rows.groupby("network")["seed"].nunique()
    return (
        "Test accuracy of a linear layer on the features. (a) By the number of bandit samples "
        "that the representation was trained on. (b) By the number of labels of the linear "
        "layer. Black line: 95%. Mean over seeds and its 95% interval: "
        f"{seed_counts([seeds['default']])} of our network; the squares in (a) are means over "
        f"{seed_counts([seeds['paper']])} of the paper's."
    )


def _draw_by_samples(axes: Axes, rows: pd.DataFrame) -> None:
    labels = int(rows["labels"].max())
    for setting in (TEN_TASKS, SINGLE_TASK):
        _draw_curve(axes, accuracies(rows, setting, "default", labels), COLOURS[setting])
        paper = accuracies(rows, setting, "paper", labels).mean()
        axes.plot(paper.index, paper, "s", ms=7, mfc="white", color=COLOURS[setting])
    pixels = rows[(rows["setting"] == PIXELS) & (rows["labels"] == labels)]["accuracy"].mean()
    axes.axhline(float(pixels), color=COLOURS[PIXELS], lw=1.1, ls=":")
    axes.annotate(
        PIXELS,
        (0.02, float(pixels)),
        (0, -9),
        ha="left",
        color=COLOURS[PIXELS],
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
    )
    axes.axhline(REQUIRED_ACCURACY, color="#222222", lw=1.1)
    axes.set(xscale="log", xlabel="bandit samples")
    plain_log_ticks(axes, x=True)
    axes.set_title(f"{labels} labels")


def _draw_by_labels(axes: Axes, rows: pd.DataFrame) -> None:
    for setting, colour in COLOURS.items():
        own = _most_samples(rows, setting)
        if len(own):
            table = own.pivot_table(index="seed", columns="labels", values="accuracy")
            _draw_curve(axes, table, colour, ":" if setting in (PIXELS, UNTRAINED) else "-")
    axes.axhline(REQUIRED_ACCURACY, color="#222222", lw=1.1)
    axes.set(xscale="log", xlabel="labels that the linear layer is fitted to")
    counts = sorted(rows["labels"].unique().tolist())
    axes.set_xticks(counts, [str(count) for count in counts])
    plain_log_ticks(axes, x=True)
    axes.set_title("after the last bandit sample")


def _most_samples(rows: pd.DataFrame, setting: str) -> pd.DataFrame:
    """The rows of our representation with the most bandit samples."""
    own = rows[(rows["setting"] == setting) & (rows["network"] != "paper")]
    return own[own["samples"] == own["samples"].max()]


def _ends(rows: pd.DataFrame) -> dict[str, tuple[float, str]]:
    """Label, height and colour of each curve of the right panel."""
    ends = {}
    for setting, colour in COLOURS.items():
        own = _most_samples(rows, setting)
        if len(own):
            height = float(own[own["labels"] == own["labels"].max()]["accuracy"].mean())
            samples = int(own["samples"].max())
            ends[f"{setting}, {samples} samples" if samples else setting] = (height, colour)
    return ends


def _draw_curve(axes: Axes, table: pd.DataFrame, colour: str, style: str = "-") -> None:
    """Draw accuracies [seed, x]."""
    if len(table):
        draw_mean_and_band(axes, table.T, f"o{style}", color=colour, ms=4.5)

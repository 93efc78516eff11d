"""The panels of Figure 3: class kernels, contrast and accuracy for both networks."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from gfucb.environments.image_bandit import NUM_CLASSES
from gfucb.paper.drawing import COLUMN, COLUMN_STYLE, letter_panels, seed_counts
from gfucb.paper.fig3.analysis import NETWORKS, values_by_seed
from gfucb.paper.fig3.sweep import SINGLE_TASK, TEN_TASKS
from gfucb.runs.summary import half_width

MARGINS = {"bottom": 0.095, "top": 0.9, "hspace": 0.2}
COLOURS = {SINGLE_TASK: "#009e73", TEN_TASKS: "#d55e00"}


def figure(rows: pd.DataFrame) -> Figure:
    """Draw two kernels and two quantities for each network.

    Positions are fixed: constrained layout leaves wide gaps between the square kernels.
    """
    with rc_context(COLUMN_STYLE):
        drawn = Figure(figsize=(COLUMN, 4.3))
        left = _axes(drawn.add_gridspec(2, 2, left=0.165, right=0.63, **MARGINS, wspace=0.2))
        right = _axes(drawn.add_gridspec(2, 2, left=0.69, right=0.985, **MARGINS, wspace=0.42))
        kernels = []
        for line, (network, label) in zip(left, NETWORKS.items(), strict=True):
            for axes, setting in zip(line, COLOURS, strict=True):
                kernels.append(_draw_kernel(axes, rows, setting, network))
            line[0].set_ylabel(f"{label}\ndigit")
        for axes, setting in zip(left[0], COLOURS, strict=True):
            axes.set_title(setting)
        for axes in left[1]:
            axes.set_xlabel("digit")
        for line, network in zip(right, NETWORKS, strict=True):
            _draw_values(line[0], rows, "contrast", network)
            _draw_values(line[1], rows, "accuracy", network)
        for axes in right[1]:
            axes.set_xlabel("tasks M")
        right[0, 0].set_title("contrast of\nthe diagonal")
        right[0, 1].set_title("nearest\nclass mean")
        bar = drawn.colorbar(kernels[0], cax=drawn.add_axes((0.085, 0.25, 0.012, 0.5)))
        bar.ax.yaxis.set_ticks_position("left")
        bar.ax.yaxis.set_label_position("left")
        bar.set_label("mean inner product of two classes")
        bar.outline.set_visible(False)
        bar.ax.grid(visible=False)
        letter_panels([*left[0], *right[0], *left[1], *right[1]])
        return drawn


def caption(rows: pd.DataFrame) -> str:
    """Panels, intervals and numbers of seeds."""
    own = rows[rows["quantity"] == "accuracy"].groupby("network")["seed"].nunique()
    return (
        "Representations after training on one task and on ten. (a), (b), (e), (f): mean inner "
        "product of the features of two digits, one seed. (c), (g): mean of the diagonal minus "
        "mean of the rest. (d), (h): accuracy of the nearest class mean. Points are "
        f"seeds, diamonds their mean with a 95% interval: {seed_counts([own['default']])} of our "
        f"network, {seed_counts([own['paper']])} of the paper's."
    )


def _draw_kernel(axes: Axes, rows: pd.DataFrame, setting: str, network: str) -> AxesImage:
    own = rows[(rows["quantity"] == "kernel") & (rows["setting"] == setting)]
    own = own[own["network"] == network]
    kernel = np.full((NUM_CLASSES, NUM_CLASSES), np.nan)
    kernel[own["row"].astype(int), own["column"].astype(int)] = own["value"]
    image = axes.imshow(kernel, cmap="RdBu_r", vmin=-1, vmax=1)
    axes.set_xticks(range(NUM_CLASSES))
    axes.set_yticks(range(NUM_CLASSES))
    axes.tick_params(length=0, labelsize=7.5)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image


def _draw_values(axes: Axes, rows: pd.DataFrame, quantity: str, network: str) -> None:
    """Draw every seed, and the mean with its 95% interval."""
    for x, (setting, colour) in enumerate(COLOURS.items()):
        values = values_by_seed(rows, quantity, setting, network).to_numpy(float)
        if len(values) == 0:
            continue
        axes.plot(np.full(len(values), x), values, "o", ms=4, mew=0, alpha=0.4, color=colour)
        axes.errorbar(
            x + 0.18, values.mean(), half_width(values), fmt="D", ms=4.5, color=colour, capsize=3
        )
        spread = half_width(values) if len(values) > 1 else 0.0
        lowest = min(values.min(), values.mean() - spread)
        axes.annotate(
            f"{values.mean():.2f}",
            (x + 0.09, lowest),
            (0, -6),
            textcoords="offset points",
            color=colour,
            ha="center",
            va="top",
        )
    axes.set_xticks([0, 1], ["1", "10"])
    axes.set_yticks([0, 0.5, 1])
    axes.set(xlim=(-0.6, 1.7), ylim=(-0.04, 1.04))
    axes.grid(visible=False, axis="x")


def _axes(grid: GridSpec) -> NDArray[np.object_]:
    """The axes of a grid of several rows and columns."""
    return np.asarray(grid.subplots())

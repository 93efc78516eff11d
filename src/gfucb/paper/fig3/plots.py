"""The panels of Figure 3: class kernels, contrast and accuracy for both networks."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from gfucb.environments.image_bandit import NUM_CLASSES
from gfucb.paper.fig3.analysis import NETWORKS, values_by_seed
from gfucb.paper.fig3.sweep import SINGLE_TASK, TEN_TASKS
from gfucb.runs.plots import STYLE
from gfucb.runs.summary import half_width

COLOURS = {SINGLE_TASK: "#009e73", TEN_TASKS: "#d55e00"}


def figure(rows: pd.DataFrame) -> Figure:
    """Draw two kernels and two quantities for each network."""
    with rc_context(STYLE):
        drawn = Figure(figsize=(10.4, 5.7), layout="constrained")
        grid = drawn.subplots(2, 4, width_ratios=[1, 1, 0.62, 0.62])
        kernels = []
        for line, (network, label) in zip(grid, NETWORKS.items(), strict=True):
            for axes, setting in zip(line, COLOURS, strict=False):
                kernels.append(_draw_kernel(axes, rows, setting, network))
                axes.set_title(f"{label}, {setting}", fontsize=10)
            _draw_values(line[2], rows, "contrast", network)
            _draw_values(line[3], rows, "accuracy", network)
        for axes in grid[1, :2]:
            axes.set_xlabel("digit")
        for axes in grid[:, 0]:
            axes.set_ylabel("digit")
        grid[0, 2].set_title("contrast of the\ndiagonal", fontsize=10)
        grid[0, 3].set_title("nearest class mean,\naccuracy", fontsize=10)
        bar = drawn.colorbar(kernels[0], ax=grid[:, :2], location="left", shrink=0.6, aspect=30)
        bar.set_label("mean inner product of two classes")
        bar.outline.set_visible(False)
        return drawn


def _draw_kernel(axes: Axes, rows: pd.DataFrame, setting: str, network: str) -> AxesImage:
    own = rows[(rows["quantity"] == "kernel") & (rows["setting"] == setting)]
    own = own[own["network"] == network]
    kernel = np.full((NUM_CLASSES, NUM_CLASSES), np.nan)
    kernel[own["row"].astype(int), own["column"].astype(int)] = own["value"]
    image = axes.imshow(kernel, cmap="RdBu_r", vmin=-1, vmax=1)
    axes.set_xticks(range(NUM_CLASSES))
    axes.set_yticks(range(NUM_CLASSES))
    axes.tick_params(length=0, labelsize=8.5)
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
        axes.plot(np.full(len(values), x), values, "o", ms=5, mew=0, alpha=0.4, color=colour)
        axes.errorbar(x + 0.18, values.mean(), half_width(values), fmt="D", color=colour, capsize=4)
        axes.annotate(
            f"{values.mean():.2f}",
            (x + 0.18, values.mean()),
            (9, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=9,
        )
    axes.set_xticks([0, 1], ["single", "M = 10"])
    axes.set(xlim=(-0.4, 1.75), ylim=(-0.04, 1.04))
    axes.grid(visible=False, axis="x")

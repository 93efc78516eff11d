"""The figure of the suite: ratios of regret with their intervals, one line for each family."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

BEST, LIMIT = 0.8, 1.1


def ratio_figure(ratios: pd.DataFrame) -> Figure:
    """A dot plot: regret of the default divided by that of the best alternative."""
    figure = Figure(figsize=(7.0, 1.2 + 0.28 * len(ratios)), layout="constrained")
    axes = figure.add_subplot()
    height = np.arange(len(ratios))[::-1]
    ratio = ratios["ratio"].to_numpy(float)
    low, high = ratios["ratio_low"].to_numpy(float), ratios["ratio_high"].to_numpy(float)
    axes.hlines(height, np.nan_to_num(low, nan=1), np.nan_to_num(high, nan=1), color="#d55e00")
    axes.plot(ratio, height, "o", color="#d55e00")
    for limit, style in ((1.0, "-"), (LIMIT, ":"), (BEST, ":")):
        axes.axvline(limit, color="#777777", linewidth=0.8, linestyle=style)
    labels = ratios["family"] + "  (" + ratios["best_alternative"] + ")"
    axes.set_yticks(height, list(labels))
    axes.set_ylim(-1, len(ratios))
    axes.set_xscale("log")
    ticks = [t for t in (0.2, 0.5, 0.8, 1.1, 2.0, 5.0, 10.0) if t <= 1.1 or t <= 1.2 * ratio.max()]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("regret of the default / regret of the best alternative")
    axes.spines[["top", "right"]].set_visible(False)
    return figure

"""Drawing functions that several figures use: mean curves with bands, end labels, log ticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter
from scipy.optimize import isotonic_regression

from gfucb.runs.summary import half_width

# Smallest distance between two end labels, as a share of the height of the axes.
LABEL_GAP = 0.06


def draw_mean_and_band(axes: Axes, table: pd.DataFrame, style: str = "-", **line: object) -> None:
    """Draw the mean over seeds of `table` [x, seed] and its 95% band; `line` goes to `plot`."""
    mean = table.mean(axis=1)
    half = table.apply(lambda values: half_width(values.dropna().to_numpy(float)), axis=1)
    (drawn,) = axes.plot(table.index, mean, style, **({"lw": 2} | line))  # type: ignore[arg-type]
    axes.fill_between(
        table.index, mean - half, mean + half, color=drawn.get_color(), alpha=0.18, lw=0
    )


def label_curve_ends(axes: Axes, ends: Mapping[str, tuple[float, str]]) -> None:
    """Write labels to the right of the axes, each near its height and in its colour.

    Call it after the limits of the axes are final.
    """
    to_fraction = axes.transData + axes.transAxes.inverted()
    x = axes.get_xlim()[1]
    labels = sorted(ends, key=lambda label: ends[label][0])
    heights = [float(to_fraction.transform((x, ends[label][0]))[1]) for label in labels]
    for label, height in zip(labels, spread_heights(heights, LABEL_GAP), strict=True):
        axes.annotate(
            label,
            (1.02, height),
            xycoords="axes fraction",
            color=ends[label][1],
            va="center",
            fontsize=9.5,
            annotation_clip=False,
        )


def spread_heights(heights: Sequence[float], gap: float) -> list[float]:
    """The heights nearest to the given increasing ones, in least squares, at least `gap` apart."""
    offsets = gap * np.arange(len(heights))
    if len(heights) == 0:
        return []
    return list(isotonic_regression(np.asarray(heights) - offsets).x + offsets)


def plain_log_ticks(axes: Axes, *, x: bool = False, y: bool = False) -> None:
    """Write 0.1, 1, 10 instead of powers of ten, and no labels at minor ticks."""
    plain = FuncFormatter(lambda value, position: f"{value:g}")
    for axis in [axes.xaxis] * x + [axes.yaxis] * y:
        axis.set_major_formatter(plain)
        axis.set_minor_formatter(NullFormatter())

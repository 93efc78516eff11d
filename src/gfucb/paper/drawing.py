"""Drawing functions that several figures use: bands, end labels, panel letters, log ticks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from string import ascii_lowercase

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter
from scipy.optimize import isotonic_regression

from gfucb.runs.figure_style import STYLE, WIDE
from gfucb.runs.summary import half_width

# Figures fill one column of a page and are not scaled: their text has the size of a caption.
COLUMN = WIDE
COLUMN_STYLE = STYLE | {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}
# Smallest distance between two end labels, as a share of the height of the axes.
LABEL_GAP = 0.06
# Left end of these labels, as a share of the width of the axes; a line leads there from the curve.
LABEL_START = 1.035


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

    A thin line leads from the end of a curve to its label. Call it after the limits of the axes are
    final.
    """
    right = axes.get_xlim()[1]
    label_points(axes, {label: (right, *end) for label, end in ends.items()})


def label_points(
    axes: Axes, points: Mapping[str, tuple[float, float, str]], gap: float = LABEL_GAP
) -> None:
    """The same for points (x, y, colour); `gap` is the least distance between two labels."""
    axes.get_xlim(), axes.get_ylim()  # sets the limits
    to_fraction = axes.transData + axes.transAxes.inverted()
    labels = sorted(points, key=lambda label: points[label][1])
    positions = [to_fraction.transform(points[label][:2]) for label in labels]
    spread = spread_heights([float(height) for _, height in positions], gap)
    for label, (x, end), height in zip(labels, positions, spread, strict=True):
        colour = points[label][2]
        axes.annotate(
            label,
            (x, end),
            (LABEL_START, height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=colour,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "lw": 0.8,
                "shrinkA": 1,
                "shrinkB": 0,
                "relpos": (0.0, 0.5),  # from the middle of the left end of the label
            },
        )


def letter_panels(panels: Iterable[Axes]) -> None:
    """Write (a), (b), .. above the upper left corner of each panel."""
    for letter, axes in zip(ascii_lowercase, panels, strict=False):
        axes.annotate(
            f"({letter})",
            (0.0, 1.0),
            (-6, 7),
            xycoords="axes fraction",
            textcoords="offset points",
            fontweight="bold",
            ha="right",
            annotation_clip=False,
        )


def seed_counts(counts: Iterable[int]) -> str:
    """`20 seeds`, or `1 to 20 seeds` where the numbers differ."""
    found = sorted(set(counts))
    if not found:
        return "no seeds"
    last = f"{found[-1]} seed{'s' if found[-1] != 1 else ''}"
    return last if len(found) == 1 else f"{found[0]} to {last}"


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

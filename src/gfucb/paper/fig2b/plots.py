"""The two panels of Figure 2(b): bonus against samples, with a growing and with a fixed radius."""

from __future__ import annotations

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from gfucb.paper.drawing import (
    COLUMN,
    COLUMN_STYLE,
    label_curve_ends,
    letter_panels,
    plain_log_ticks,
    seed_counts,
)
from gfucb.paper.fig2b.analysis import LABELS, bonus_curve
from gfucb.paper.fig2b.sweep import FINE_TUNING, FIXED, OUR_SELECTORS, PRINTED

COLOURS = {FINE_TUNING: "#cc79a7", "last layer": "#d55e00", "linearised": "#0072b2"}
ERROR_COLOUR = "#777777"


def figure(rows: pd.DataFrame) -> Figure:
    """Draw one panel for each radius."""
    with rc_context(COLUMN_STYLE):
        drawn = Figure(figsize=(COLUMN, 3.2), layout=ConstrainedLayoutEngine(wspace=0.06))
        panels = drawn.subplots(1, 2, sharey=True)
        for axes, radius in zip(panels, (PRINTED, FIXED), strict=True):
            for method in LABELS:
                _draw_curve(axes, bonus_curve(rows, method, radius), COLOURS[method])
            error = bonus_curve(rows, OUR_SELECTORS[0], radius)["error"]
            axes.plot(error.index, error, color=ERROR_COLOUR, lw=1.4, ls=":")
            axes.set(xscale="log", yscale="log", xlabel="training samples n", title=radius)
            axes.margins(x=0.02)
            plain_log_ticks(axes, x=True, y=True)
        panels[0].set_ylabel("bonus of a test image")
        _label_curves(panels[1], rows)
        letter_panels(panels)
        return drawn


def caption(rows: pd.DataFrame) -> str:
    """Panels, bands and numbers of seeds."""
    seeds = rows.groupby("method")["seed"].nunique()
    return (
        "Bonus of test images against the number of samples of the fit: mean over images, and a "
        "band of one standard deviation over images. (a) The radius B of round t = n / 10. (b) "
        "The radius of round 200 for every n. Dotted: mean absolute error of our fit. The "
        f"paper's fine-tuning has {seed_counts([seeds[FINE_TUNING]])}, the others "
        f"{seed_counts(seeds.drop(FINE_TUNING))}."
    )


def _draw_curve(axes: Axes, curve: pd.DataFrame, colour: str) -> None:
    mean, deviation = curve["bonus"], curve["deviation"]
    axes.plot(curve.index, mean, "o-", ms=4, color=colour, lw=2)
    # On a logarithmic axis a band that reaches zero has no lower end.
    low = (mean - deviation).clip(lower=0.05 * mean)
    axes.fill_between(curve.index, low, mean + deviation, color=colour, alpha=0.16, lw=0)


def _label_curves(axes: Axes, rows: pd.DataFrame) -> None:
    ends = {}
    for method, label in LABELS.items():
        curve = bonus_curve(rows, method, FIXED)
        if len(curve):
            ends[label] = (float(curve["bonus"].iloc[-1]), COLOURS[method])
        if len(curve) and method == OUR_SELECTORS[0]:
            ends["error of our fit"] = (float(curve["error"].iloc[-1]), ERROR_COLOUR)
    label_curve_ends(axes, ends)

"""The panels of Figure 2(a): bonus against error, one panel for each method and radius."""

from __future__ import annotations

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gfucb.paper.bonuses import bonus_statistics
from gfucb.paper.drawing import COLUMN, COLUMN_STYLE, letter_panels, seed_counts
from gfucb.paper.fig2a.sweep import CALIBRATED, CERTIFIED, PRINTED, STABLE

# Title and colour.
METHODS = {
    STABLE: ("paper's fine-tuning", "#cc79a7"),
    "last layer": ("last layer, ours", "#d55e00"),
    "linearised": ("linearised", "#0072b2"),
    CERTIFIED: ("certified", "#009e73"),
    "gradient": ("gradient", "#b8860b"),
}
# Points outside these limits are drawn at the border.
LOWEST, HIGHEST = 1e-3, 3.0


def figure(rows: pd.DataFrame) -> Figure:
    """Draw one row of panels for the printed radius and one for the calibrated radius."""
    points = rows[rows["part"] == "point"]
    with rc_context(COLUMN_STYLE):
        drawn = Figure(figsize=(COLUMN, 3.5), layout="constrained")
        panels = drawn.subplots(2, len(METHODS), sharex=True, sharey=True)
        for line, radius in zip(panels, (PRINTED, CALIBRATED), strict=True):
            for axes, (method, (title, colour)) in zip(line, METHODS.items(), strict=True):
                own = points[(points["method"] == method) & (points["radius"] == radius)]
                _draw_points(axes, own, colour)
                if radius == PRINTED:
                    axes.set_title(title, color=colour, fontweight="bold", pad=16)
            line[0].set_ylabel(f"bonus, {radius}")
        drawn.supxlabel("absolute error of the fit", fontsize="medium")
        ticks = [0.001, 0.01, 0.1, 1]
        panels[0, 0].set_xticks(ticks, ["", "0.01", "0.1", "1"])
        panels[0, 0].set_yticks(ticks, ["0.001", "0.01", "0.1", "1"])
        letter_panels(panels.flat)
        return drawn


def caption(rows: pd.DataFrame) -> str:
    """Panels, points and numbers of seeds."""
    points = rows[rows["part"] == "point"]
    each = points.groupby(["method", "radius"]).size()
    return (
        f"Bonus of a test image against the error of the fit, one point for each of {each.max()} "
        f"images of {seed_counts([points['seed'].nunique()])}, on a logarithmic scale; points "
        "beyond the limits are drawn at the border. In the shaded half the bonus covers the error: "
        "share of the points above the line, and rank correlation r. (a) to (e): the radius B as "
        "printed. (f) to (j): a radius that covers 80% of the rewards of a run. The last columns "
        f"of the table are means over ten tasks and {seed_counts([rows['seed'].nunique()])}."
    )


def _draw_points(axes: Axes, own: pd.DataFrame, colour: str) -> None:
    limits = (LOWEST, HIGHEST)
    axes.plot(limits, limits, color="#777777", lw=1.2, zorder=1)
    axes.fill_between(limits, limits, HIGHEST, color="#f4f4f4", zorder=0, lw=0)
    axes.set(xscale="log", yscale="log", xlim=limits, ylim=limits)
    axes.set_box_aspect(1)
    if own.empty:
        return
    error, bonus = own["error"].abs().clip(*limits), own["bonus"].clip(*limits)
    axes.plot(error, bonus, "o", ms=3, mew=0, alpha=0.55, color=colour, clip_on=False)
    statistics = bonus_statistics(own["error"], own["bonus"])
    axes.text(
        0.5,
        1.02,
        f"{statistics['above']:.0%}, r = {statistics['correlation']:.2f}",
        transform=axes.transAxes,
        fontsize=7.5,
        ha="center",
        color="#333333",
    )

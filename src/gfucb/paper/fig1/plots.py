"""The three panels of Figure 1: regret curves, regret by number of actions, regret by run time."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator

from gfucb.paper.drawing import (
    COLUMN,
    COLUMN_STYLE,
    draw_mean_and_band,
    label_curve_ends,
    label_points,
    letter_panels,
    plain_log_ticks,
    seed_counts,
)
from gfucb.paper.fig1.analysis import best_epsilon, common_seeds, final_regrets, rows_of
from gfucb.paper.fig1.sweep import GROUP_SIZES, PAPER_VARIANTS, Curve
from gfucb.runs.summary import half_width

# Colour, line style and label.
STYLES: dict[Curve, tuple[str, str, str]] = {
    Curve("eps-greedy", 1, epsilon=0.1): ("#009e73", "-", "independent ε-greedy (0.1)"),
    Curve("gfucb", 1): ("#f0a860", "-", "GFUCB, M = 1"),
    Curve("gfucb", 5): ("#e67f1f", "-", "GFUCB, M = 5"),
    Curve("gfucb", 10): ("#b84a00", "-", "GFUCB, M = 10"),
    Curve("gfucb", 100, num_tasks=100): ("#5e2300", "-", "GFUCB, M = 100"),
    Curve("greedy"): ("#0072b2", "--", "multitask greedy, M = 10"),
    Curve("paper"): ("#cc79a7", "-", "paper's procedure, M = 10"),
    Curve("literal-sum"): ("#7b4fa3", ":", "as printed (sum), M = 10"),
    Curve("literal-mean"): ("#5b6fb8", "--", "as printed (mean), M = 10"),
    Curve("oracle-ucb", 1): ("#222222", ":", "UCB, true representation"),
}
COLOURS_BY_ACTIONS = {10: "#b84a00", 5: "#0072b2", 2: "#009e73"}
MARKERS = {"-": "o", "--": "s", ":": "v"}


def figure(rows: pd.DataFrame) -> Figure:
    """Draw all three panels from the available rows."""
    rows = common_seeds(rows)
    with rc_context(COLUMN_STYLE):
        drawn = Figure(
            figsize=(COLUMN, 6.6), layout=ConstrainedLayoutEngine(w_pad=0.1, hspace=0.05)
        )
        parts: Any = drawn.subfigures(2, 1, height_ratios=[1.45, 1])
        above, below = parts
        curves, (by_actions, by_time) = above.subplots(), below.subplots(1, 2)
        _draw_curves(curves, rows)
        _draw_regret_by_actions(by_actions, rows)
        _draw_regret_by_time(by_time, rows)
        letter_panels([curves, by_actions, by_time])
        return drawn


def caption(rows: pd.DataFrame) -> str:
    """Panels, bands and numbers of seeds."""
    rows = common_seeds(rows)
    runs = rows.groupby(["agent", "epsilon", "group_size", "num_actions"])["seed"].nunique()
    is_paper = runs.index.get_level_values("agent").isin(PAPER_VARIANTS)
    return (
        "Regret of a task. (a) Mean over seeds and its 95% interval, ten actions. (b) GFUCB "
        "after the last round, by the number of tasks M that share a representation and the "
        "number of actions K; 95% intervals. (c) Regret after the last round, against the time of "
        "one run; several runs shared the device. "
        f"{seed_counts(runs[~is_paper])}; the paper's procedure has {seed_counts(runs[is_paper])}."
    )


def _styles(rows: pd.DataFrame) -> dict[Curve, tuple[str, str, str]]:
    """Of all curves, also of the best epsilon among those that were run."""
    best = Curve("eps-greedy", 1, epsilon=best_epsilon(rows))
    return {best: ("#44a7d4", "--", f"independent ε-greedy ({best.epsilon:g}, best)")} | STYLES


def _draw_curves(axes: Axes, rows: pd.DataFrame) -> None:
    styles = _styles(rows)
    last = int(rows["round"].max())
    ends: dict[str, tuple[float, str]] = {}
    stopped_early = []
    for curve, (colour, style, label) in styles.items():
        regrets = rows_of(rows, curve).pivot(index="round", columns="seed", values="regret")
        if regrets.empty:
            continue
        draw_mean_and_band(axes, _from_zero(regrets), style, color=colour, lw=1.9)
        mean = regrets.mean(axis=1)
        if mean.index[-1] == last:
            ends[label] = (float(mean.iloc[-1]), colour)
        else:
            stopped_early.append((label, mean, colour))
    # A curve that stopped early may grow fast: the axis limits ignore it.
    top = 1.12 * max((end for end, _ in ends.values()), default=1.0)
    axes.set(xlabel="round", ylabel="cumulative regret per task", xlim=(0, last), ylim=(0, top))
    label_curve_ends(axes, ends)
    for label, mean, colour in stopped_early:
        _label_inside(axes, label, mean, colour, top)
    axes.set_title("ten tasks in groups of M, K = 10")


def _from_zero(regrets: pd.DataFrame) -> pd.DataFrame:
    """Start every run with no regret in round 0."""
    return pd.concat([pd.DataFrame(0.0, index=[0], columns=regrets.columns), regrets])


def _label_inside(axes: Axes, label: str, mean: pd.Series, colour: str, top: float) -> None:
    """Label a curve at its last point, or where it leaves the axes."""
    outside = mean[mean > top]
    if len(outside):
        point, offset = (float(outside.index[0]), top), (4, -12)
    else:
        point, offset = (float(mean.index[-1]), float(mean.iloc[-1])), (5, -2)
    axes.annotate(
        label,
        point,
        offset,
        textcoords="offset points",
        color=colour,
        va="center",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
    )


def _draw_regret_by_actions(axes: Axes, rows: pd.DataFrame) -> None:
    """Final regret against M for every number of actions."""
    for num_actions, colour in COLOURS_BY_ACTIONS.items():
        regrets = {
            size: final_regrets(rows, Curve("gfucb", size, num_actions)).to_numpy(float)
            for size in GROUP_SIZES
        }
        regrets = {size: values for size, values in regrets.items() if len(values)}
        if regrets:
            axes.errorbar(
                list(regrets),
                [values.mean() for values in regrets.values()],
                yerr=[half_width(values) for values in regrets.values()],
                fmt="o-",
                color=colour,
                capsize=3,
                label=f"K = {num_actions}",
            )
    axes.set(xlabel="tasks per group, M", ylabel="final regret per task", ylim=(0, None))
    axes.set_xticks(list(GROUP_SIZES))
    if axes.has_data():
        axes.legend(frameon=False)
    axes.set_title("GFUCB by K")


def _draw_regret_by_time(axes: Axes, rows: pd.DataFrame) -> None:
    """Final regret against the wall time of a run."""
    axes.set(xscale="log", yscale="log")
    points = {}
    for curve, (colour, style, label) in _styles(rows).items():
        regrets = final_regrets(rows, curve).to_numpy(float)
        if len(regrets):
            point = (_seconds(rows, curve), float(regrets.mean()))
            face = "none" if style == "--" else colour  # shows what is below it
            axes.plot(*point, MARKERS[style], color=colour, mfc=face, mew=1.4, ms=6)
            short = label if curve.agent == "gfucb" else label.removesuffix(", M = 10")
            points[short] = (*point, colour)
    axes.set(xlabel="seconds per run", ylabel="final regret per task")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    plain_log_ticks(axes, x=True, y=True)
    axes.margins(x=0.15, y=0.1)
    axes.set_title("cost")
    label_points(axes, points, gap=0.09)


def _seconds(rows: pd.DataFrame, curve: Curve) -> float:
    """Mean seconds of a run; rows have hundredths, and a logarithmic axis has no zero."""
    own = rows_of(rows, curve)
    return max(float(own[own["round"] == own["round"].max()]["seconds"].mean()), 0.01)

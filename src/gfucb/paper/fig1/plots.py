"""The picture of Figure 1: curves, final regret by number of actions, and what each costs."""

from __future__ import annotations

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from gfucb.paper.drawing import label_ends, plain_numbers
from gfucb.paper.fig1.sweep import (
    GROUP_SIZES,
    Line,
    best_epsilon,
    final_regrets,
    of_line,
    of_paired_seeds,
)
from gfucb.runs.plots import STYLE
from gfucb.runs.summary import half_width

STYLES: dict[Line, tuple[str, str, str]] = {
    Line("eps-greedy", 1, epsilon=0.1): ("#009e73", "-", "ε-greedy alone (0.1)"),
    Line("gfucb", 1): ("#f0a860", "-", "GFUCB, M = 1"),
    Line("gfucb", 5): ("#e67f1f", "-", "GFUCB, M = 5"),
    Line("gfucb", 10): ("#b84a00", "-", "GFUCB, M = 10"),
    Line("gfucb", 100, num_tasks=100): ("#5e2300", "-", "GFUCB, M = 100"),
    Line("greedy"): ("#0072b2", "--", "multitask greedy, M = 10"),
    Line("paper"): ("#cc79a7", "-", "the paper's procedure, M = 10"),
    Line("literal-sum"): ("#cc79a7", ":", "as printed (sum), M = 10"),
    Line("literal-mean"): ("#cc79a7", "--", "as printed (mean), M = 10"),
    Line("oracle-ucb", 1): ("#222222", ":", "oracle UCB"),
}


def figure_of(rows: pd.DataFrame) -> Figure:
    """All three panels, of the rows there are."""
    rows = of_paired_seeds(rows)
    with rc_context(STYLE):
        figure = Figure(figsize=(11.6, 4.6), layout="constrained")
        curves, by_actions, cost = figure.subplots(1, 3, width_ratios=[2.1, 1, 1.1])
        _draw_curves(curves, rows)
        _draw_actions(by_actions, rows)
        _draw_cost(cost, rows)
        return figure


def _draw_curves(axes: Axes, rows: pd.DataFrame) -> None:
    styles = dict(STYLES)
    best = Line("eps-greedy", 1, epsilon=best_epsilon(rows))
    if best not in styles:
        styles[best] = ("#009e73", "--", f"ε-greedy alone ({best.epsilon:g}, best)")
    ends, early = {}, []
    last = int(rows["round"].max())
    for line, (colour, dashes, words) in styles.items():
        table = of_line(rows, line).pivot(index="round", columns="seed", values="regret")
        if table.empty:
            continue
        mean = table.mean(axis=1)
        axes.plot([0, *table.index], [0.0, *mean], dashes, color=colour, lw=1.9)
        if table.shape[1] > 1:
            spread = table.apply(lambda values: half_width(values.dropna().to_numpy(float)), axis=1)
            axes.fill_between(
                table.index, mean - spread, mean + spread, color=colour, alpha=0.18, lw=0
            )
        if mean.index[-1] == last:
            ends[words] = (float(mean.iloc[-1]), colour)
        else:
            early.append((words, mean, colour))
    axes.set(xlabel="steps", ylabel="cumulative regret of a task")
    axes.set_xlim(0, last)
    # What ends early may run away: it leaves the picture rather than making it small.
    top = 1.12 * max((end for end, _ in ends.values()), default=1.0)
    axes.set_ylim(0, top)
    label_ends(axes, ends)
    for words, mean, colour in early:
        _label_where_it_leaves(axes, words, mean, colour, top)
    axes.set_title("ten tasks in groups of M, K = 10; mean and 95% band", fontsize=10)


def _label_where_it_leaves(
    axes: Axes, words: str, mean: pd.Series, colour: str, top: float
) -> None:
    """Name a curve at its last point, or where it leaves the picture."""
    outside = mean[mean > top]
    if len(outside):
        place, offset = (float(outside.index[0]), top), (4, -12)
    else:
        place, offset = (float(mean.index[-1]), float(mean.iloc[-1])), (5, -2)
    axes.annotate(
        words,
        place,
        offset,
        textcoords="offset points",
        color=colour,
        fontsize=8.5,
        va="center",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
    )


def _draw_actions(axes: Axes, rows: pd.DataFrame) -> None:
    """Final regret against M for every number of actions."""
    shades = {10: "#b84a00", 5: "#0072b2", 2: "#009e73"}
    for num_actions, colour in shades.items():
        points = [
            (size, final_regrets(rows, Line("gfucb", size, num_actions)).to_numpy(float))
            for size in GROUP_SIZES
        ]
        points = [(size, values) for size, values in points if len(values)]
        if not points:
            continue
        sizes = [size for size, _ in points]
        means = [values.mean() for _, values in points]
        spreads = [half_width(values) for _, values in points]
        axes.errorbar(
            sizes,
            means,
            yerr=spreads,
            fmt="o-",
            color=colour,
            capsize=3,
            label=f"K = {num_actions}",
        )
    axes.set(xlabel="tasks that share, M", ylabel="final regret of a task", ylim=(0, None))
    axes.set_xticks(list(GROUP_SIZES))
    if axes.has_data():
        axes.legend(frameon=False)
    axes.set_title("by number of actions", fontsize=10)


def _draw_cost(axes: Axes, rows: pd.DataFrame) -> None:
    """Final regret against the wall time of a run."""
    for line, (colour, dashes, _) in STYLES.items():
        values = final_regrets(rows, line).to_numpy(float)
        if len(values):
            marker = {"-": "o", "--": "s", ":": "v"}[dashes]
            axes.plot(_seconds(rows, line), values.mean(), marker, color=colour, ms=7)
    axes.set(xscale="log", yscale="log")
    axes.set(xlabel="seconds a run of 10 tasks", ylabel="final regret of a task")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    plain_numbers(axes, x=True, y=True)
    axes.margins(x=0.15)
    axes.set_title("what it costs (same colours)", fontsize=10)


def _seconds(rows: pd.DataFrame, line: Line) -> float:
    own = of_line(rows, line)
    ends = own[own["round"] == own["round"].max()]
    return float(ends["seconds"].mean())

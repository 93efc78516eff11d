"""The three panels of the locks: regret, episodes to the goal by horizon and by number of tasks."""

from __future__ import annotations

from typing import Literal

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from gfucb.paper.drawing import (
    COLUMN,
    COLUMN_STYLE,
    draw_mean_and_band,
    letter_panels,
    plain_log_ticks,
    seed_counts,
)
from gfucb.paper.lock.analysis import last_rows
from gfucb.paper.lock.sweep import DEFAULT, OPTIMISTIC, ORACLE, PRINTED, RICH_AGENT
from gfucb.runs.summary import half_width

# Label and colour.
BACKUPS = {
    DEFAULT: ("default agent", "#d55e00"),
    OPTIMISTIC: ("optimistic values backed up", "#009e73"),
    PRINTED: ("as printed", "#0072b2"),
}
RICH = {
    RICH_AGENT.name: ("default agent, unknown emission", "#d55e00"),
    ORACLE.name: ("LSVI-UCB, observed states", "#222222"),
}


def figure(rows: pd.DataFrame) -> Figure:
    """Draw all three panels."""
    with rc_context(COLUMN_STYLE):
        drawn = Figure(figsize=(COLUMN, 3.2), layout=ConstrainedLayoutEngine(w_pad=0.1))
        curves, by_horizon, by_tasks = drawn.subplots(1, 3)
        _draw_regret(curves, rows)
        _draw_by_horizon(by_horizon, last_rows(rows, "tabular"))
        _draw_by_tasks(by_tasks, last_rows(rows, "rich"))
        _legend(drawn, curves, "outside lower left", ncols=3)
        _legend(drawn, by_tasks, "outside lower right", ncols=1)
        letter_panels([curves, by_horizon, by_tasks])
        return drawn


def caption(rows: pd.DataFrame) -> str:
    """Panels, bands and numbers of seeds."""
    tabular, rich = (rows[rows["part"] == part] for part in ("tabular", "rich"))
    longest = tabular[tabular["horizon"] == tabular["horizon"].max()]
    return (
        f"Combination locks. (a) Regret, mean and 95% interval over {_seeds(longest)}. (b) "
        "Episodes until the goal is reached first: median and range over the seeds that reach it "
        f"({_seeds(tabular)} for each horizon); crosses: share of seeds that do not. (c) With "
        "observations instead of states: points are seeds, diamonds their mean with a 95% "
        f"interval ({_seeds(rich)})."
    )


def _seeds(rows: pd.DataFrame) -> str:
    return seed_counts(rows.groupby(["agent", "horizon", "num_tasks"])["seed"].nunique())


def _legend(
    drawn: Figure,
    axes: Axes,
    loc: Literal["outside lower left", "outside lower right"],
    ncols: int,
) -> None:
    """Write the labels of some axes below the panels, where they cover nothing."""
    handles, labels = axes.get_legend_handles_labels()
    drawn.legend(handles, labels, loc=loc, ncols=ncols, frameon=False)


def _draw_regret(axes: Axes, rows: pd.DataFrame) -> None:
    own = rows[(rows["part"] == "tabular") & (rows["horizon"] == rows["horizon"].max())]
    for agent, (label, colour) in BACKUPS.items():
        table = own[own["agent"] == agent].pivot(
            index="episode", columns="seed", values="cumulative_regret"
        )
        draw_mean_and_band(axes, table, color=colour, label=label)
    axes.set(xlabel="episode", ylabel="cumulative regret", xlim=(0, None), ylim=(0, None))
    axes.set_title(f"H = {int(own['horizon'].max())}")


def _draw_by_horizon(axes: Axes, last: pd.DataFrame) -> None:
    num_episodes = int(last["episode"].max())
    for agent, (_, colour) in BACKUPS.items():
        own = last[last["agent"] == agent]
        reached = own[own["all_reached"]].groupby("horizon")["first_goal"]
        medians = reached.median()
        below, above = medians - reached.min(), reached.max() - medians
        axes.errorbar(
            medians.index, medians, yerr=[below, above], fmt="o-", color=colour, capsize=3
        )
        for key, runs in own.groupby("horizon"):
            horizon = int(str(key))
            failures = int((~runs["all_reached"]).sum())
            if failures:
                axes.plot(horizon, 1.25 * num_episodes, "x", color=colour, ms=7, mew=2)
                axes.annotate(
                    f"{failures}/{len(runs)}",
                    (horizon, 1.5 * num_episodes),
                    color=colour,
                    ha="center",
                    fontsize=6.5,
                )
    axes.set(yscale="log", xlabel="horizon H", ylabel="episodes to the goal")
    axes.set_ylim(top=3 * num_episodes)
    plain_log_ticks(axes, y=True)
    axes.set_xticks(sorted(last["horizon"].unique().tolist()))
    axes.set_title(f"x: not in {num_episodes} episodes")


def _draw_by_tasks(axes: Axes, last: pd.DataFrame) -> None:
    for agent, (label, colour) in RICH.items():
        own = last[last["agent"] == agent]
        axes.plot(own["num_tasks"], own["first_goal"], "o", color=colour, alpha=0.3, mew=0)
        groups = own.groupby("num_tasks")["first_goal"]
        means = groups.mean()
        half_widths = groups.apply(lambda values: half_width(values.to_numpy(float)))
        axes.errorbar(
            means.index,
            means,
            yerr=half_widths,
            fmt="D-",
            color=colour,
            capsize=4,
            lw=2,
            label=label,
        )
    axes.set(xlabel="number of tasks M", ylabel="episodes per task to the goal", ylim=(0, None))
    axes.set_xticks(sorted(last["num_tasks"].unique().tolist()))
    horizon = int(last["horizon"].max())
    axes.set_title(f"rich observations, H = {horizon}")

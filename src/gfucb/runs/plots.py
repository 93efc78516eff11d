"""Pictures of finished runs: tables in, matplotlib figures out, nothing else touched."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gfucb.core.records import BanditRound
from gfucb.runs.summary import half_width

# Okabe and Ito's colours, told apart by everybody; GFUCB has the strongest one.
COLOURS = {
    "gfucb": "#d55e00",
    "gfucb-paper": "#cc79a7",
    "multitask-greedy": "#0072b2",
    "multitask-eps-greedy": "#56b4e9",
    "independent-eps-greedy": "#009e73",
    "linucb": "#b8860b",
    "oracle-ucb": "#222222",
    "oracle-greedy": "#777777",
    "uniform": "#aaaaaa",
    "gfucb-mdp": "#d55e00",
    "gfucb-mdp-literal": "#0072b2",
    "gfucb-mdp-randomised": "#cc79a7",
    "gfucb-mdp-joint": "#b8860b",
    "independent-mdp": "#009e73",
    "oracle-lsvi-ucb": "#222222",
    "lsvi-ucb": "#56b4e9",
    "uniform-mdp": "#aaaaaa",
}
# What a logarithmic axis shows of no regret at all.
FLOOR = 1e-4
OTHER_COLOURS = ("#8c564b", "#7f3c8d", "#3969ac", "#80ba5a")
LABELS = {
    "gfucb": "GFUCB",
    "gfucb-paper": "GFUCB, the paper's way",
    "gfucb-literal-sum": "GFUCB, as printed (sum)",
    "gfucb-literal-mean": "GFUCB, as printed (mean)",
    "multitask-greedy": "multitask greedy",
    "multitask-eps-greedy": "multitask ε-greedy",
    "independent-eps-greedy": "independent ε-greedy",
    "linucb": "LinUCB per task",
    "oracle-ucb": "oracle UCB",
    "oracle-greedy": "oracle greedy",
    "uniform": "uniform",
    "gfucb-mdp": "GFUCB",
    "gfucb-mdp-literal": "GFUCB, as printed",
    "gfucb-mdp-randomised": "GFUCB, randomised",
    "gfucb-mdp-joint": "GFUCB, joint",
    "independent-mdp": "each task alone",
    "oracle-lsvi-ucb": "oracle LSVI-UCB",
    "lsvi-ucb": "LSVI-UCB",
    "lsvi-ucb-learned": "LSVI-UCB, learned",
    "ucbvi": "UCBVI",
    "randomised-lsvi": "randomised LSVI",
    "fitted-q": "fitted Q, ε-greedy",
    "uniform-mdp": "uniform",
}
STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": "#333333",
    "xtick.color": "#666666",
    "ytick.color": "#666666",
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "svg.fonttype": "none",
    # Without a fixed salt the identifiers in an SVG change from one drawing to the next.
    "svg.hashsalt": "gfucb",
}


def colour(agent: str) -> str:
    """The agent's colour, the same in every figure."""
    return COLOURS.get(agent) or OTHER_COLOURS[sum(map(ord, agent)) % len(OTHER_COLOURS)]


def label(agent: str) -> str:
    """The agent's name for people."""
    return LABELS.get(agent, agent)


def regret_curves(rows: pd.DataFrame) -> Figure:
    """Cumulative regret of one task against rounds: mean and 95% band over seeds.

    Uniform play is cut off at the top, so that the agents that learn can be told apart.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(7.6, 4.4), layout="constrained")
        axes = figure.add_subplot()
        ends: dict[str, float] = {}
        for agent, own in rows.groupby("agent", sort=False):
            table = own.pivot(index="round", columns="seed", values="cumulative_regret")
            ends[str(agent)] = _curve(axes, table, str(agent))
        learned = [end for agent, end in ends.items() if agent != "uniform"] or list(ends.values())
        top = 1.12 * max(learned)
        num_rounds = int(rows["round"].max())
        axes.set(
            xlim=(0, num_rounds),
            ylim=(0, top),
            xlabel="round",
            ylabel="cumulative regret of one task",
        )
        _label_ends(axes, ends, num_rounds, top)
        return figure


def late_regret(rows: pd.DataFrame) -> Figure:
    """Regret of one decision against rounds, averaged over a window, on a logarithmic axis.

    Means below 0.0001, zero among them, are drawn there.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(7.6, 3.8), layout="constrained")
        axes = figure.add_subplot()
        num_rounds = int(rows["round"].max())
        window = max(1, num_rounds // 10)
        ends: dict[str, float] = {}
        for agent, own in rows.groupby("agent", sort=False):
            table = own.pivot(index="round", columns="seed", values="regret")
            smooth = table.rolling(window, min_periods=window).mean().dropna().clip(lower=FLOOR)
            ends[str(agent)] = _curve(axes, smooth, str(agent))
        axes.set(
            xlim=(window, num_rounds),
            yscale="log",
            xlabel="round",
            ylabel=f"regret of a decision\n(mean of {window} rounds)",
        )
        low, high = axes.get_ylim()
        _label_ends(axes, ends, num_rounds, high, low=low)
        return figure


def paired_regrets(rows: pd.DataFrame, reference: str = "gfucb") -> Figure:
    """Final regret of every seed, and its mean with a 95% interval; one line an agent.

    Uniform play, far to the right, is a number at the edge.
    """
    final = rows.groupby(["agent", "seed"])["cumulative_regret"].max().unstack("seed")
    final = final.loc[final.mean(axis=1).sort_values(ascending=False).index]
    with rc_context(STYLE):
        figure = Figure(figsize=(7.6, 0.9 + 0.42 * len(final)), layout="constrained")
        axes = figure.add_subplot()
        for row, (agent, regrets) in enumerate(final.iterrows()):
            values = regrets.dropna().to_numpy()
            name, mean = str(agent), values.mean()
            spread = half_width(values)
            axes.plot(
                values, np.full(len(values), row), "o", ms=5, mew=0, alpha=0.45, color=colour(name)
            )
            axes.errorbar(
                mean, row, xerr=spread, fmt="D", ms=6, capsize=4, lw=2, color=colour(name)
            )
        if reference in final.index:
            axes.axvline(
                float(np.nanmean(final.loc[reference])), color=colour(reference), lw=1, ls=":"
            )
        axes.set_yticks(range(len(final)), [label(str(agent)) for agent in final.index])
        learned = final.drop(index="uniform", errors="ignore").max(axis=1)
        right = 1.15 * float(learned.max()) if len(learned) else None
        if right and "uniform" in final.index and float(np.nanmean(final.loc["uniform"])) > right:
            text = f"{np.nanmean(final.loc['uniform']):.1f} →"
            row = list(final.index).index("uniform")
            axes.text(right, row, text, ha="right", va="center", color=colour("uniform"))
        axes.set(xlim=(0, right), xlabel="cumulative regret of one task at the end")
        axes.grid(visible=False, axis="y")
        return figure


def action_sets_figure(round_: BanditRound, num_tasks: int = 3) -> Figure:
    """What the first tasks are shown in a round of images, and what each image pays them."""
    images, means = round_.candidates[:num_tasks], round_.mean_rewards[:num_tasks]
    rows, columns = means.shape
    with rc_context(STYLE):
        figure = Figure(figsize=(7.6, 0.98 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        for task in range(rows):
            best = int(means[task].argmax())
            for action in range(columns):
                axes = grid[task, action]
                axes.imshow(images[task, action].numpy(), cmap="gray_r", vmin=0, vmax=255)
                axes.set(xticks=[], yticks=[])
                for spine in axes.spines.values():
                    spine.set(visible=True, color="#dddddd")
                chosen = action == best
                axes.set_xlabel(
                    f"{means[task, action]:.2f}",
                    fontsize=8.5,
                    labelpad=2,
                    color=colour("gfucb") if chosen else "#888888",
                    fontweight="bold" if chosen else "normal",
                )
            grid[task, 0].set_ylabel(f"task {task}", fontsize=9)
        return figure


def save(figure: Figure, stem: Path) -> None:
    """The figure as `stem`.png and `stem`.svg, for the same figure the same bytes."""
    figure.savefig(stem.with_suffix(".png"), dpi=160)
    # Letters as shapes: a page that is read elsewhere looks as it does here.
    with rc_context(STYLE | {"svg.fonttype": "path"}):
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})


def svg(figure: Figure) -> str:
    """The figure as SVG text, the same for the same figure."""
    buffer = io.StringIO()
    with rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _curve(axes: Axes, table: pd.DataFrame, agent: str) -> float:
    """Draw mean and band of a table [round, seed]; return where the mean ends."""
    mean = table.mean(axis=1).to_numpy()
    spread = np.array([half_width(values) for values in table.to_numpy()])
    rounds = table.index.to_numpy()
    strong = agent == "gfucb"
    axes.plot(rounds, mean, color=colour(agent), lw=2.6 if strong else 1.7, zorder=3 + strong)
    if np.isfinite(spread).all():
        low = np.maximum(mean - spread, mean * 0.1)
        axes.fill_between(rounds, low, mean + spread, color=colour(agent), alpha=0.14, lw=0)
    return float(mean[-1])


def _label_ends(
    axes: Axes, ends: dict[str, float], num_rounds: int, high: float, low: float = 0.0
) -> None:
    """Write each agent's name where its curve ends, moved apart where they would touch."""
    to_axis = np.log if axes.get_yscale() == "log" else (lambda v: v)
    bottom, top = float(to_axis(low)) if low else 0.0, float(to_axis(high))
    agents = sorted(ends, key=lambda agent: ends[agent])
    heights = [(float(to_axis(min(ends[a], high))) - bottom) / (top - bottom) for a in agents]
    gap = 0.058
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + gap)
    if heights:
        heights[-1] = min(heights[-1], 0.985)
    for i in range(len(heights) - 2, -1, -1):
        heights[i] = min(heights[i], heights[i + 1] - gap)
    for agent, height in zip(agents, heights, strict=True):
        axes.annotate(
            label(agent) + (" ↑" if ends[agent] > high else ""),
            (1.012, height),
            xycoords="axes fraction",
            color=colour(agent),
            va="center",
            fontsize=9.5,
            fontweight="bold" if agent == "gfucb" else "normal",
            annotation_clip=False,
        )

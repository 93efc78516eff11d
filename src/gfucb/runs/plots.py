"""Figures of finished runs: from tables to matplotlib figures."""

from __future__ import annotations

import io
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gfucb.core.files import atomic_write
from gfucb.core.records import BanditRound
from gfucb.runs.figure_style import (
    STYLE,
    WIDE,
    line_styles,
    seeds_in_words,
    text_colour,
)
from gfucb.runs.metrics import metric_of, number_of_seeds
from gfucb.runs.registry import AGENTS, agent_colours, agent_label
from gfucb.runs.summary import REFERENCES, half_width, reference_among

# Smallest value on a logarithmic axis; zero regret is drawn here.
FLOOR = 1e-4
# Agents whose regret is so large that axes do not include it.
UNIFORM = ("uniform", "uniform-mdp")


def comparison_curves(rows: pd.DataFrame, *, width: float = WIDE) -> Figure:
    """Regret against rounds, or the reward where no regret is known; `width` in inches."""
    draw = regret_curves if metric_of(rows.columns).is_cost else reward_curves
    return draw(rows, width=width)


def regret_curves(rows: pd.DataFrame, *, width: float = WIDE) -> Figure:
    """Cumulative regret per task against rounds: mean and 95% band over seeds.

    The curve of uniform actions may leave the figure at the top, so that the curves of agents
    that learn do not overlap.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(width, 4.4), layout="constrained")
        axes = figure.add_subplot()
        ends: dict[str, float] = {}
        colours = agent_colours(rows["agent"].unique())
        styles = line_styles(colours)
        for agent, own in rows.groupby("agent", sort=False):
            table = own.pivot(index="round", columns="seed", values="cumulative_regret")
            name = str(agent)
            ends[name] = _curve(axes, table, name, colours[name], styles[name])
        learned = [end for agent, end in ends.items() if agent not in UNIFORM]
        top = 1.12 * max(learned or ends.values())
        num_rounds = int(rows["round"].max())
        axes.set(
            xlim=(0, num_rounds),
            ylim=(0, top),
            xlabel="round",
            ylabel="cumulative regret per task",
        )
        axes.locator_params(axis="x", integer=True)
        _say_seeds(axes, rows)
        _label_ends(axes, ends, colours, top)
        return figure


def reward_curves(rows: pd.DataFrame, *, width: float = WIDE) -> Figure:
    """Reward per task against rounds, averaged over a window: mean and 95% band over seeds."""
    with rc_context(STYLE):
        figure = Figure(figsize=(width, 4.4), layout="constrained")
        axes = figure.add_subplot()
        ends, window = _windowed_curves(axes, rows, "reward")
        axes.set(xlabel="round", ylabel=f"reward per task\n(mean of {window} rounds)")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high)
        _label_ends(axes, ends, agent_colours(ends), high, low=low)
        return figure


def late_regret(rows: pd.DataFrame, *, width: float = WIDE) -> Figure:
    """Regret per decision against rounds, averaged over a window, on a logarithmic axis.

    Values below 0.0001, including zero, are drawn at 0.0001.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(width, 3.8), layout="constrained")
        axes = figure.add_subplot()
        ends, window = _windowed_curves(axes, rows, "regret", floor=FLOOR)
        axes.set(
            yscale="log",
            xlabel="round",
            ylabel=f"regret per decision\n(mean of {window} rounds)",
        )
        low, high = axes.get_ylim()
        if high < 10 * low:  # no power of ten is a tick
            axes.yaxis.set_minor_formatter("{x:.2g}")
        _label_ends(axes, ends, agent_colours(ends), high, low=low)
        return figure


def _windowed_curves(
    axes: Axes, rows: pd.DataFrame, column: str, floor: float | None = None
) -> tuple[dict[str, float], int]:
    """Draw means of a column over a tenth of the rounds; return the last ones and the window."""
    num_rounds = int(rows["round"].max())
    window = max(1, num_rounds // 10)
    ends: dict[str, float] = {}
    colours = agent_colours(rows["agent"].unique())
    styles = line_styles(colours)
    for agent, own in rows.groupby("agent", sort=False):
        table = own.pivot(index="round", columns="seed", values=column)
        smooth = table.rolling(window, min_periods=window).mean().dropna().clip(lower=floor)
        name = str(agent)
        ends[name] = _curve(axes, smooth, name, colours[name], styles[name], floor)
    _say_seeds(axes, rows)
    # One round more than the window, so that a single point has an axis.
    axes.set_xlim(window, max(num_rounds, window + 1))
    return ends, window


def paired_results(
    rows: pd.DataFrame, reference: str | None = None, *, width: float = WIDE
) -> Figure:
    """Final regret, or mean reward, of every seed, and its mean with a 95% interval.

    The dotted line is the mean of `reference`, by default GFUCB. Where uniform actions are far
    to the right, a number at the edge gives their mean.
    """
    metric = metric_of(rows.columns)
    final = metric.final(rows)
    final = final.loc[final.mean(axis=1).sort_values(ascending=not metric.is_cost).index]
    reference = reference or reference_among(final.index)
    colours = agent_colours(str(agent) for agent in final.index)
    with rc_context(STYLE):
        figure = Figure(figsize=(width, 0.9 + 0.42 * len(final)), layout="constrained")
        axes = figure.add_subplot()
        for row, (agent, regrets) in enumerate(final.iterrows()):
            _seeds_and_mean(axes, row, regrets.dropna().to_numpy(), colours[str(agent)])
        if reference in final.index:
            mean = float(np.nanmean(final.loc[reference]))
            axes.axvline(mean, color=colours[str(reference)], lw=1, ls=":")
        labels = [_wrapped(agent_label(str(agent)), width) for agent in final.index]
        axes.set_yticks(range(len(final)), labels)
        axes.set_ylim(-0.5, len(final) - 0.5)  # no line lies on the axis
        axes.set_xlabel(metric.title.lower())
        if metric.is_cost:
            axes.set_xlabel("cumulative regret per task at the end")
            _limit_regrets(axes, final, colours)
        axes.grid(visible=False, axis="y")
        return figure


def _limit_regrets(axes: Axes, final: pd.DataFrame, colours: dict[str, str]) -> None:
    """Let the axis show the regrets of agents that learn, and intervals up to twice as far."""
    learned = final.drop(index=[*UNIFORM], errors="ignore")
    right = 1.15 * float(learned.max(axis=1).max()) if len(learned) else None
    if right:
        regrets = [own.dropna().to_numpy() for _, own in learned.iterrows()]
        ends = [1.02 * (values.mean() + half_width(values)) for values in regrets]
        right = max([right, *(end for end in ends if end < 2 * right)])
    for row, agent in enumerate(final.index):
        mean = float(np.nanmean(final.loc[agent]))
        if right and agent in UNIFORM and mean > right:
            colour = text_colour(colours[str(agent)])
            axes.text(right, row, f"{mean:.1f} →", ha="right", va="center", color=colour)
    axes.set_xlim(0, right)


def _seeds_and_mean(axes: Axes, row: int, values: NDArray[np.float64], colour: str) -> None:
    """Draw one line: a dot per seed, and a diamond with the interval of the mean."""
    axes.plot(values, np.full(len(values), row), "o", ms=5, mew=0, alpha=0.45, color=colour)
    axes.errorbar(
        values.mean(), row, xerr=half_width(values), fmt="D", ms=6, capsize=4, lw=2, color=colour
    )


def action_sets_figure(round_: BanditRound, num_tasks: int = 3, *, width: float = WIDE) -> Figure:
    """The images that the first tasks can choose from in a round, with their mean rewards."""
    images, means = round_.candidates[:num_tasks], round_.mean_rewards[:num_tasks]
    rows, columns = means.shape
    with rc_context(STYLE):
        figure = Figure(figsize=(width, 0.129 * width * rows), layout="constrained")
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
                    color=AGENTS["gfucb"].colour if chosen else "#888888",
                    fontweight="bold" if chosen else "normal",
                )
            grid[task, 0].set_ylabel(f"task {task}", fontsize=9)
        return figure


def save(figure: Figure, stem: Path) -> None:
    """Write the figure as `stem`.png and `stem`.svg; the same figure gives the same bytes."""
    _fix_layout(figure)
    atomic_write(stem.with_suffix(".png"), lambda path: figure.savefig(path, dpi=160, format="png"))
    # Text as paths: the figure looks the same on machines without the font.
    with rc_context(STYLE | {"svg.fonttype": "path"}):
        atomic_write(
            stem.with_suffix(".svg"),
            lambda path: figure.savefig(path, metadata={"Date": None}, format="svg"),
        )


def _fix_layout(figure: Figure) -> None:
    """Compute the layout once and round it: its solver varies in the last digits."""
    figure.draw_without_rendering()
    if figure.get_layout_engine() is not None:
        figure.set_layout_engine("none")
        for axes in figure.axes:
            left, bottom, width, height = axes.get_position(original=True).bounds
            axes.set_position((round(left, 6), round(bottom, 6), round(width, 6), round(height, 6)))


def svg(figure: Figure) -> str:
    """The figure as SVG text, the same for the same figure."""
    buffer = io.StringIO()
    with rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _say_seeds(axes: Axes, rows: pd.DataFrame) -> None:
    """State above the axes what the curves are."""
    words = seeds_in_words(number_of_seeds(rows))
    axes.set_title(words, loc="left", fontsize=9, color="#666666")


def _curve(
    axes: Axes,
    table: pd.DataFrame,
    agent: str,
    colour: str,
    style: str,
    floor: float | None = 0.0,
) -> float:
    """Draw mean and band of a table [round, seed]; return the last mean.

    With a `floor` the values are positive, and the band does not go below a tenth of the mean.
    """
    mean = table.mean(axis=1).to_numpy()
    spread = np.array([half_width(values) for values in table.to_numpy()])
    rounds = table.index.to_numpy()
    strong = agent in REFERENCES
    axes.plot(rounds, mean, style, color=colour, lw=2.6 if strong else 1.7, zorder=3 + strong)
    if np.isfinite(spread).all():
        low = mean - spread if floor is None else np.maximum(mean - spread, mean * 0.1)
        axes.fill_between(rounds, low, mean + spread, color=colour, alpha=0.14, lw=0)
    return float(mean[-1])


def _wrapped(label: str, width: float) -> str:
    """A label in several lines if it would leave little of a figure of this width for the data."""
    return textwrap.fill(label, 40 if width >= WIDE else 20)


def _label_ends(
    axes: Axes, ends: dict[str, float], colours: dict[str, str], high: float, low: float = 0.0
) -> None:
    """Write each agent's label at the end of its curve; labels that would overlap move apart."""
    to_axis = np.log if axes.get_yscale() == "log" else (lambda v: v)
    bottom, top = float(to_axis(low)) if low else 0.0, float(to_axis(high))
    agents = sorted(ends, key=lambda agent: ends[agent])
    heights = [(float(to_axis(min(ends[a], high))) - bottom) / (top - bottom) for a in agents]
    width = cast(Figure, axes.figure).get_figwidth()
    labels = [_wrapped(agent_label(a) + (" ↑" if ends[a] > high else ""), width) for a in agents]
    lines = [label.count("\n") + 1 for label in labels]
    gaps = [0.058 * (below + above) / 2 for below, above in pairwise(lines)]
    for i, gap in enumerate(gaps, start=1):
        heights[i] = max(heights[i], heights[i - 1] + gap)
    if heights:
        heights[-1] = min(heights[-1], 0.985)
    for i, gap in reversed(list(enumerate(gaps))):
        heights[i] = min(heights[i], heights[i + 1] - gap)
    for agent, label, height in zip(agents, labels, heights, strict=True):
        axes.annotate(
            label,
            (1.012, height),
            xycoords="axes fraction",
            color=text_colour(colours[agent]),
            va="center",
            fontsize=9.5,
            fontweight="bold" if agent in REFERENCES else "normal",
            annotation_clip=False,
        )

"""Figure 1: the regret of ten tasks in groups of one, five and ten, and of strong baselines."""

from __future__ import annotations

import itertools
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from scipy import stats

from gfucb.experiments.figures import STYLE
from gfucb.experiments.reproductions.drawing import label_ends, plain_numbers
from gfucb.experiments.reproductions.driver import Options, Reproduction, Verdict
from gfucb.experiments.reproductions.fig1_rows import (
    EPSILONS,
    GROUP_SIZES,
    HEADLINE,
    Line,
    pieces,
    sizes_of,
)
from gfucb.experiments.summary import half_width
from gfucb.seeding import random_stream


def _of(rows: pd.DataFrame, line: Line) -> pd.DataFrame:
    """The rows of a curve, as far as all its seeds have come."""
    return _in_common(
        rows[
            (rows["agent"] == line.agent)
            & (rows["group_size"] == line.group_size)
            & (rows["num_actions"] == line.num_actions)
            & (rows["epsilon"] == line.epsilon)
        ]
    )


def _in_common(own: pd.DataFrame) -> pd.DataFrame:
    """The rows of rounds that every seed has reached: runs under way may differ."""
    return own[own["round"] <= own.groupby("seed")["round"].max().min()]


def final_regrets(rows: pd.DataFrame, line: Line, at: int | None = None) -> pd.Series:
    """The cumulative regret of a task at the end, or in round `at`, by seed."""
    own = _of(rows, line)
    last = own[own["round"] == (own["round"].max() if at is None else at)]
    return last.set_index("seed")["regret"].sort_index()


def best_epsilon(rows: pd.DataFrame) -> float:
    """The one of the grid with the least regret on these very seeds: the baseline's best case."""
    means = {e: final_regrets(rows, Line("eps-greedy", 1, epsilon=e)).mean() for e in EPSILONS}
    known = {e: mean for e, mean in means.items() if np.isfinite(mean)}
    return min(known, key=known.__getitem__) if known else EPSILONS[-1]


def _verdicts(rows: pd.DataFrame) -> list[Verdict]:
    ordered = [Line("gfucb", size) for size in reversed(GROUP_SIZES)]
    ordered.append(Line("eps-greedy", 1, epsilon=0.1))
    found = [_below(rows, a, b) for a, b in itertools.pairwise(ordered)]
    best = Line("eps-greedy", 1, epsilon=best_epsilon(rows))
    if best != ordered[-1]:
        found.append(_below(rows, Line("gfucb", 1), best))
    ten, one, hundred = Line("gfucb", 10), Line("gfucb", 1), Line("gfucb", 100, num_tasks=100)
    found += [
        _ratio(rows, "sharing among ten pays: R(M = 1) / R(M = 10) at least 1.5", one, ten, 1.5),
        _ratio(rows, "sharing among 100 pays: R(M = 1) / R(M = 100) at least 3", one, hundred, 3.0),
        _ratio(
            rows,
            "optimism pays: multitask greedy / GFUCB at M = 10 at least 1.11 (10% below)",
            Line("greedy"),
            ten,
            1 / 0.9,
        ),
        _ratio(
            rows,
            "GFUCB at M = 10 is within 3 times the oracle's regret",
            ten,
            Line("oracle-ucb", 1),
            3.0,
            at_most=True,
        ),
    ]
    found += [
        _ratio(
            rows,
            f"the paper's procedure ({words}) has more regret than our default at M = 10",
            Line(name),
            ten,
            1.0,
        )
        for name, words in PROCEDURES.items()
    ]
    for num_actions in (5, 2):
        few, many = Line("gfucb", 1, num_actions), Line("gfucb", 10, num_actions)
        found.append(_below(rows, many, few))
        found.append(_below(rows, many, Line("greedy", num_actions=num_actions)))
    return [verdict for verdict in found if verdict is not None]


PROCEDURES = {
    "paper": "stable",
    "literal-sum": "literal, sum",
    "literal-mean": "literal, mean",
}


def _paired(rows: pd.DataFrame, first: Line, second: Line) -> pd.DataFrame:
    """Final regrets of two curves on the seeds, and at the round, that both have."""
    ends = [final_regrets(rows, line) for line in (first, second)]
    if min(map(len, ends)) == 0:
        return pd.DataFrame(columns=["first", "second"])
    last = min(_last_round(rows, line) for line in (first, second))
    pair = {n: final_regrets(rows, li, last) for n, li in (("first", first), ("second", second))}
    return pd.DataFrame(pair).dropna()


def _last_round(rows: pd.DataFrame, line: Line) -> int:
    return int(_of(rows, line)["round"].max())


def _below(rows: pd.DataFrame, lower: Line, upper: Line) -> Verdict | None:
    """Whether the first has less regret: a one-sided t-test of differences over paired seeds."""
    pair = _paired(rows, lower, upper)
    if len(pair) < 2:
        return None
    gaps = (pair["second"] - pair["first"]).to_numpy(float)
    p_value = float(stats.ttest_1samp(gaps, 0.0, alternative="greater").pvalue)
    setting = "" if lower.num_actions == HEADLINE else f"K = {lower.num_actions}: "
    return Verdict(
        f"{setting}{_words(lower)} below {_words(upper)}",
        f"{_mean(pair['first'])} against {_mean(pair['second'])}",
        p_value < 0.05 / len(GROUP_SIZES),  # three claims make the ordering (Bonferroni)
        f"difference {_mean(pair['second'] - pair['first'])}, p = {p_value:.1g}, {len(pair)} seeds",
    )


def _ratio(
    rows: pd.DataFrame, claim: str, top: Line, bottom: Line, bar: float, *, at_most: bool = False
) -> Verdict | None:
    """Mean over mean on paired seeds, with a 95% interval from resampled seeds."""
    pair = _paired(rows, top, bottom).to_numpy(float)
    if len(pair) == 0:
        return None
    generator = random_stream(0, "resampled seeds")
    lots = torch.randint(len(pair), (10_000, len(pair)), generator=generator)
    means = pair[lots.numpy()].mean(1)
    low, high = np.quantile(means[:, 0] / means[:, 1], [0.025, 0.975])
    ratio = float(pair[:, 0].mean() / pair[:, 1].mean())
    interval = f" (95%: {low:.2f} to {high:.2f})" if len(pair) > 1 else ""
    last = min(_last_round(rows, line) for line in (top, bottom))
    return Verdict(
        claim,
        f"{pair[:, 0].mean():.1f} / {pair[:, 1].mean():.1f} = {ratio:.2f}{interval}",
        ratio <= bar if at_most else ratio >= bar,
        f"{len(pair)} seed{'s' if len(pair) > 1 else ''}, T = {last}",
    )


def _words(line: Line) -> str:
    if line.agent == "eps-greedy":
        return f"independent ε-greedy ({line.epsilon:g})"
    if line.agent == "greedy":
        return "multitask greedy"
    return f"GFUCB M = {line.group_size}"


def _mean(values: pd.Series) -> str:
    array = values.to_numpy(float)
    spread = f" ± {half_width(array):.2g}" if len(array) > 1 else ""
    return f"{array.mean():.3g}{spread}"


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


def _figure(rows: pd.DataFrame) -> Figure:
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
        table = _of(rows, line).pivot(index="round", columns="seed", values="regret")
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
    own = _of(rows, line)
    ends = own[own["round"] == own["round"].max()]
    return float(ends["seconds"].mean())


def _table(rows: pd.DataFrame) -> str:
    """Regret and wall time of every curve with ten actions."""
    lines = [
        "| | M | regret of a task | rounds | seeds | seconds a run |",
        "|---|---|---|---|---|---|",
    ]
    ten = rows[rows["num_actions"] == HEADLINE]
    for key, own in ten.groupby(["agent", "epsilon", "group_size"], sort=False):
        agent, epsilon, group_size = str(key[0]), float(str(key[1])), key[2]
        shared = _in_common(own)
        last = int(shared["round"].max())
        ends = shared[shared["round"] == last]
        words = f"{NAMES[agent]} ({epsilon:g})" if epsilon else NAMES[agent]
        lines.append(
            f"| {words} | {group_size} | {_mean(ends['regret'])} | {last} | {len(ends)} | "
            f"{ends['seconds'].mean():.3g} |"
        )
    return "\n".join(lines)


NAMES = {
    "gfucb": "GFUCB",
    "greedy": "multitask greedy",
    "eps-greedy": "independent ε-greedy",
    "oracle-ucb": "UCB on the true representation",
    "paper": "the paper's procedure, stable",
    "literal-sum": "the paper's procedure as printed, sum",
    "literal-mean": "the paper's procedure as printed, mean",
}


def _config(options: Options) -> dict[str, Any]:
    return {"sizes": asdict(sizes_of(options))}


CHOICES = """\
- Ten tasks in groups of M that share nothing with each other; all curves of a seed see the same
  images and the same noise. Regret is the mean over the tasks. M = 100 has 100 tasks of its own.
- K is not given: any ten images, digits may repeat; five and two for comparison, where contexts
  explore by themselves. Task i pays a permutation of 0, 0.1, .. 0.9, with distinct best digits.
- Independent ε-greedy has the same network and fit as GFUCB; besides ε = 0.1 the best of a grid,
  chosen on these very seeds, in its favour. Multitask greedy, which the paper leaves out,
  tells what sharing does from what optimism does.
- The paper's procedure: its network, Adam at every round until the error is twice the noise or for
  200 epochs, then 200 steps of fine-tuning; the *stable* version returns the best member of the
  set, the literal ones the last iterate. It is played for M = 10 only; the literal sum, which does
  not survive, only as long as it takes to see that it chooses as if by lot.
- The ordering is tested by one-sided t-tests of paired differences at 0.05 / 3.
- Seconds are wall time on the device named below; runs of a fleet share theirs equally. The paper's
  runs had the device to themselves only in part, so theirs are too many.
- Lines were made by more than one commit: those of GFUCB, greedy and ε-greedy at K = 10 with the
  default of today; those at K = 5 and 2 before, with linear heads on twenty features.
"""

FIG1 = Reproduction(
    "Figure 1: the cumulative regret of ten tasks falls as more of them share a representation: "
    "M = 10 below M = 5 below M = 1 below independent ε-greedy.",
    pieces,
    _figure,
    _verdicts,
    _config,
    choices=CHOICES,
    table=_table,
)

"""Figure 1: the regret of ten tasks in groups of one, five and ten, and of strong baselines."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from gfucb.agents import GFUCB, EpsilonGreedy, multitask_greedy
from gfucb.agents.fleet import Fleet
from gfucb.contracts import BanditAgent, Row
from gfucb.environments import ImageBandit, LabelledImages, load_digits, load_mnist
from gfucb.experiments.agent_table import make_agent, paper_agent
from gfucb.experiments.config import AgentConfig
from gfucb.experiments.figures import STYLE
from gfucb.experiments.lockstep import play_together
from gfucb.experiments.reproductions.driver import Options, Piece, Reproduction, Verdict
from gfucb.experiments.runner import play
from gfucb.experiments.summary import half_width
from gfucb.optimism import FineTuning
from gfucb.seeding import random_stream

# Choices were made on seeds from 2000 on.
SEEDS = tuple(range(200, 220))
NUM_TASKS = 10
GROUP_SIZES = (1, 5, 10)
EPSILONS = (0.01, 0.05, 0.1)
HEADLINE = 10  # actions
PAPER_SEEDS = 3
BLOCK = 20  # seeds in a piece; fewer where there are many tasks


@dataclass(frozen=True)
class Sizes:
    """How long runs are, and how much of the paper's procedure is done in a round."""

    num_rounds: int = 600
    stride: int = 20
    epochs: int = 200
    tuning_iterations: int = 200
    paper_rounds: int = 600


QUICK = Sizes(num_rounds=12, stride=2, epochs=3, tuning_iterations=3, paper_rounds=4)


@dataclass(frozen=True)
class Line:
    """One curve of the figure: who plays, in groups of how many of how many tasks, of K actions."""

    agent: str
    group_size: int = NUM_TASKS
    num_actions: int = HEADLINE
    num_tasks: int = NUM_TASKS
    epsilon: float = 0.0

    @property
    def name(self) -> str:
        """A name for its piece."""
        chance = f"-eps={self.epsilon}" if self.epsilon else ""
        return f"{self.agent}{chance}-M={self.group_size}-K={self.num_actions}"


FLEETS: dict[str, Callable[..., GFUCB]] = {
    "gfucb": GFUCB,
    "greedy": multitask_greedy,
    "eps-greedy": multitask_greedy,
}
TUNINGS: dict[str, Callable[[int], FineTuning]] = {
    "paper": FineTuning.stable,
    "literal-sum": FineTuning.literal_sum,
    "literal-mean": FineTuning.literal_mean,
}


def _lines(num_seeds: int, quick: bool) -> Iterator[tuple[Line, int]]:
    """Every curve, and on how many seeds it is drawn; the most telling first."""
    for group_size in reversed(GROUP_SIZES):
        yield Line("gfucb", group_size), num_seeds
    yield Line("greedy"), num_seeds
    yield Line("oracle-ucb", 1), num_seeds
    if not quick:
        yield Line("gfucb", 100, num_tasks=100), num_seeds
    for epsilon in reversed(EPSILONS):
        yield Line("eps-greedy", 1, epsilon=epsilon), num_seeds
    yield Line("paper"), min(num_seeds, PAPER_SEEDS)
    yield Line("literal-sum"), 1
    yield Line("literal-mean"), 1
    for num_actions in (5, 2):
        for group_size in reversed(GROUP_SIZES):
            yield Line("gfucb", group_size, num_actions), num_seeds
        yield Line("greedy", num_actions=num_actions), num_seeds


def _pieces(options: Options) -> list[Piece]:
    seeds = options.seeds or ((0, 1) if options.quick else SEEDS)
    sizes = QUICK if options.quick else Sizes()
    pieces = []
    for line, num_seeds in _lines(len(seeds), options.quick):
        # What runs alone is a piece a seed; fleets take as many seeds as fill the device.
        block = 1 if line.agent in TUNINGS else max(1, BLOCK // max(1, line.num_tasks // 50))
        for begin in range(0, num_seeds, block):
            own = seeds[begin : min(begin + block, num_seeds)]
            name = f"{line.name}-seeds={own[0]}-{own[-1]}"
            pieces.append(Piece(name, partial(_play, line, own, sizes, options)))
    return pieces


def _images(options: Options) -> LabelledImages:
    return load_digits() if options.quick else load_mnist(options.data_dir)


def _play(line: Line, seeds: Sequence[int], sizes: Sizes, options: Options) -> list[Row]:
    """The runs of a curve on some seeds: a row every `stride` rounds.

    `seconds` is the wall time of one seed's run until then; runs of a fleet share it equally.
    """
    images = _images(options)
    worlds = [
        ImageBandit(images, num_tasks=line.num_tasks, num_actions=line.num_actions, seed=seed)
        for seed in seeds
    ]
    begun = time.perf_counter()
    if line.agent in FLEETS:
        rounds = _fleet_rounds(line, seeds, worlds, sizes, options)
    else:
        rounds = _single_rounds(line, seeds, worlds, sizes, options)
    rows: list[Row] = []
    for round_index, regrets in enumerate(rounds, start=1):
        if round_index % sizes.stride == 0:
            seconds = (time.perf_counter() - begun) / len(seeds)
            facts: Row = {
                "agent": line.agent,
                "epsilon": line.epsilon,
                "group_size": line.group_size,
                "num_actions": line.num_actions,
                "round": round_index,
            }
            rows += [
                {**facts, "seed": seed, "regret": round(regret, 4), "seconds": round(seconds, 2)}
                for seed, regret in zip(seeds, regrets, strict=True)
            ]
    return rows


def _fleet_rounds(
    line: Line,
    seeds: Sequence[int],
    worlds: Sequence[ImageBandit],
    sizes: Sizes,
    options: Options,
) -> Iterator[list[float]]:
    """The cumulative regret of every world, round by round; all groups of all seeds at once."""
    groups = line.num_tasks // line.group_size
    own_seeds = [
        random_stream(seed, "group", group).initial_seed() if groups > 1 else seed
        for seed in seeds
        for group in range(groups)
    ]
    make = FLEETS[line.agent]
    agents = [make(line.group_size, seed=seed, device=options.device) for seed in own_seeds]
    explorers = [
        EpsilonGreedy(agent, epsilon=line.epsilon, seed=seed)
        for agent, seed in zip(agents, own_seeds, strict=True)
        if line.epsilon > 0
    ]
    played = play_together(Fleet(agents), worlds, num_rounds=sizes.num_rounds, explorers=explorers)
    for rows in played:
        yield [float(row["cumulative_regret"]) for row in rows]


def _single_rounds(
    line: Line,
    seeds: Sequence[int],
    worlds: Sequence[ImageBandit],
    sizes: Sizes,
    options: Options,
) -> Iterator[list[float]]:
    """The same for agents that no fleet takes."""
    if line.agent in TUNINGS:
        agents: list[BanditAgent] = [
            paper_agent(
                line.num_tasks,
                world.data.images.shape[1:],
                seed=seed,
                noise_scale=world.noise_scale,
                epochs=sizes.epochs,
                optimism=TUNINGS[line.agent](sizes.tuning_iterations),
                device=options.device,
            )
            for world, seed in zip(worlds, seeds, strict=True)
        ]
        num_rounds = sizes.paper_rounds
    else:
        config = AgentConfig(name=line.agent)
        agents = [make_agent(config, w, seed) for w, seed in zip(worlds, seeds, strict=True)]
        num_rounds = sizes.num_rounds
    runs = [
        play(agent, world, num_rounds=num_rounds, reads_truth=line.agent == "oracle-ucb")
        for agent, world in zip(agents, worlds, strict=True)
    ]
    for rows in zip(*runs, strict=True):
        yield [float(row["cumulative_regret"]) for row in rows]


# --- what was measured ---------------------------------------------------------------------------


def _of(rows: pd.DataFrame, line: Line) -> pd.DataFrame:
    """The rows of a curve."""
    return rows[
        (rows["agent"] == line.agent)
        & (rows["group_size"] == line.group_size)
        & (rows["num_actions"] == line.num_actions)
        & (rows["epsilon"] == line.epsilon)
    ]


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
        f"{len(pair)} seeds, T = {last}",
    )


def _words(line: Line) -> str:
    if line.agent == "eps-greedy":
        return f"independent ε-greedy ({line.epsilon:g})"
    if line.agent == "greedy":
        return "multitask greedy"
    return f"GFUCB M = {line.group_size}"


def _mean(values: pd.Series) -> str:
    array = values.to_numpy(float)
    return f"{array.mean():.3g} ± {half_width(array):.2g}"


# --- the picture ---------------------------------------------------------------------------------

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
        curves, by_actions, cost = figure.subplots(1, 3, width_ratios=[2.2, 1, 1])
        _draw_curves(curves, rows)
        _draw_actions(by_actions, rows)
        _draw_cost(cost, rows)
        return figure


def _curve(rows: pd.DataFrame, line: Line) -> pd.DataFrame:
    """Regret by round and seed."""
    return _of(rows, line).pivot(index="round", columns="seed", values="regret")


def _draw_curves(axes: Axes, rows: pd.DataFrame) -> None:
    styles = dict(STYLES)
    best = Line("eps-greedy", 1, epsilon=best_epsilon(rows))
    if best not in styles:
        styles[best] = ("#009e73", "--", f"ε-greedy alone ({best.epsilon:g}, best)")
    ends = []
    for line, (colour, dashes, words) in styles.items():
        table = _curve(rows, line)
        if table.empty:
            continue
        mean = table.mean(axis=1)
        axes.plot([0, *table.index], [0.0, *mean], dashes, color=colour, lw=1.9)
        if table.shape[1] > 1:
            spread = table.apply(lambda values: half_width(values.dropna().to_numpy(float)), axis=1)
            axes.fill_between(
                table.index, mean - spread, mean + spread, color=colour, alpha=0.18, lw=0
            )
        ends.append((float(mean.iloc[-1]), int(table.index[-1]), words, colour, table.shape[1]))
    _label_ends(axes, ends)
    axes.set(xlabel="steps", ylabel="cumulative regret of a task", ylim=(0, None))
    axes.set_xlim(0, int(rows["round"].max()))
    axes.set_title("ten tasks in groups of M, K = 10; mean and 95% band", fontsize=10)


def _label_ends(axes: Axes, ends: list[tuple[float, int, str, str, int]]) -> None:
    """Names beside the ends of their curves, moved apart where they would overlap."""
    top = 1.05 * max(end[0] for end in ends)
    axes.set_ylim(0, top)
    gap, height = 0.058 * top, -np.inf
    for value, _, words, colour, _ in sorted(ends):
        height = max(value, height + gap)
        axes.annotate(
            words,
            (1.0, height),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=8.5,
            annotation_clip=False,
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
    axes.legend(frameon=False)
    axes.set_title("by number of actions", fontsize=10)


def _draw_cost(axes: Axes, rows: pd.DataFrame) -> None:
    """Final regret against the wall time of a run."""
    for line, (colour, _, words) in STYLES.items():
        values = final_regrets(rows, line).to_numpy(float)
        if len(values):
            axes.plot(_seconds(rows, line), values.mean(), "o", color=colour, ms=7)
            axes.annotate(
                words.removeprefix("GFUCB, ").removesuffix(", M = 10"),
                (_seconds(rows, line), values.mean()),
                xytext=(5, 4),
                textcoords="offset points",
                color=colour,
                fontsize=7.5,
            )
    axes.set(xscale="log", xlabel="seconds a run of 10 tasks", ylabel="final regret of a task")
    axes.set_ylim(0, None)
    axes.margins(x=0.35)
    axes.set_title("what it costs", fontsize=10)


def _seconds(rows: pd.DataFrame, line: Line) -> float:
    own = _of(rows, line)
    ends = own[own["round"] == own["round"].max()]
    return float(ends["seconds"].mean())


FIG1 = Reproduction(
    "Cumulative regret of ten tasks falls as more of them share a representation: M = 10 below "
    "M = 5 below M = 1 below independent epsilon-greedy.",
    _pieces,
    _figure,
    _verdicts,
)

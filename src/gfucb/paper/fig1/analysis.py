"""The numbers of Figure 1: regret by curve and seed, paired differences and ratios, verdicts."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from gfucb.paper.common import Verdict
from gfucb.paper.fig1.sweep import (
    EPSILONS,
    GFUCB_TEN,
    GREEDY_TEN,
    GROUP_SIZES,
    NUM_ACTIONS,
    Curve,
)
from gfucb.paper.intervals import exceeds, mean_and_half_width, paired_ratio

LABELS = {
    "gfucb": "GFUCB",
    "greedy": "multitask greedy",
    "eps-greedy": "independent ε-greedy",
    "oracle-ucb": "UCB on the true representation",
    "paper": "the paper's procedure, stable",
    "literal-sum": "the paper's procedure as printed, sum",
    "literal-mean": "the paper's procedure as printed, mean",
}
PAPER_VARIANT_LABELS = {
    "paper": "stable",
    "literal-sum": "literal, sum",
    "literal-mean": "literal, mean",
}


def rows_of(rows: pd.DataFrame, curve: Curve) -> pd.DataFrame:
    """The rows of a curve, up to the last round that all its seeds have reached."""
    return common_rounds(
        rows[
            (rows["agent"] == curve.agent)
            & (rows["group_size"] == curve.group_size)
            & (rows["num_actions"] == curve.num_actions)
            & (rows["epsilon"] == curve.epsilon)
        ]
    )


def common_rounds(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of rounds that every seed has reached: unfinished runs may differ in length."""
    return rows[rows["round"] <= rows.groupby("seed")["round"].max().min()]


def common_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the seeds that M = 1 has, if there are any: some curves have more seeds."""
    shared = rows.loc[rows["group_size"] == 1, "seed"].unique()
    return rows[rows["seed"].isin(shared)] if len(shared) else rows


def final_regrets(rows: pd.DataFrame, curve: Curve, at: int | None = None) -> pd.Series:
    """Cumulative regret of a task by seed, after the last round or after round `at`."""
    own = rows_of(rows, curve)
    last = own[own["round"] == (own["round"].max() if at is None else at)]
    return last.set_index("seed")["regret"].sort_index()


def best_epsilon(rows: pd.DataFrame) -> float:
    """The epsilon of the grid with the least regret on these seeds: the baseline's best case."""
    means = {e: final_regrets(rows, Curve("eps-greedy", 1, epsilon=e)).mean() for e in EPSILONS}
    finite = {e: mean for e, mean in means.items() if np.isfinite(mean)}
    return min(finite, key=finite.__getitem__) if finite else EPSILONS[-1]


def paired_regrets(rows: pd.DataFrame, first: Curve, second: Curve) -> tuple[pd.DataFrame, int]:
    """Regrets [seed, first | second] after the last round that both curves have, and that round."""
    last_rounds = [rows_of(rows, curve)["round"].max() for curve in (first, second)]
    if np.isnan(last_rounds).any():
        return pd.DataFrame(columns=["first", "second"]), 0
    last = int(min(last_rounds))
    regrets = {
        "first": final_regrets(rows, first, last),
        "second": final_regrets(rows, second, last),
    }
    return pd.DataFrame(regrets).dropna(), last


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """The ordering of the figure, ratios of regret, and the settings that the paper omits."""
    found = [
        *_ordering(rows),
        *_ratios(rows),
        *_fewer_actions(rows),
    ]
    return [verdict for verdict in found if verdict is not None]


def _ordering(rows: pd.DataFrame) -> list[Verdict | None]:
    curves = [Curve("gfucb", size) for size in reversed(GROUP_SIZES)]
    curves.append(Curve("eps-greedy", 1, epsilon=0.1))
    found = [_lower_regret(rows, a, b) for a, b in itertools.pairwise(curves)]
    best = Curve("eps-greedy", 1, epsilon=best_epsilon(rows))
    if best != curves[-1]:
        found.append(_lower_regret(rows, Curve("gfucb", 1), best))
    return found


def _ratios(rows: pd.DataFrame) -> list[Verdict | None]:
    one, hundred = Curve("gfucb", 1), Curve("gfucb", 100, num_tasks=100)
    oracle = Curve("oracle-ucb", 1)
    more = "{} has more regret than {}"
    found = [
        _ratio(rows, more.format("GFUCB with M = 1", "with M = 10"), one, GFUCB_TEN),
        _ratio(rows, more.format("GFUCB with M = 1", "with M = 100"), one, hundred),
        _ratio(rows, "M = 10: " + more.format("multitask greedy", "GFUCB"), GREEDY_TEN, GFUCB_TEN),
    ]
    for curve in (GFUCB_TEN, hundred):
        claim = f"M = {curve.group_size}: " + more.format("GFUCB", LABELS["oracle-ucb"])
        found.append(_ratio(rows, claim, curve, oracle))
    for name, label in PAPER_VARIANT_LABELS.items():
        claim = "M = 10: " + more.format(f"the paper's procedure ({label})", "GFUCB")
        found.append(_ratio(rows, claim, Curve(name), GFUCB_TEN))
    return found


def _fewer_actions(rows: pd.DataFrame) -> list[Verdict | None]:
    found = []
    for num_actions in (5, 2):
        ten = Curve("gfucb", 10, num_actions)
        found.append(_lower_regret(rows, ten, Curve("gfucb", 1, num_actions)))
        found.append(_lower_regret(rows, ten, Curve("greedy", num_actions=num_actions)))
    return found


def _lower_regret(rows: pd.DataFrame, lower: Curve, upper: Curve) -> Verdict | None:
    """Whether the first curve has less regret on paired seeds."""
    pairs, _ = paired_regrets(rows, lower, upper)
    if len(pairs) < 2:
        return None
    differences = pairs["second"] - pairs["first"]
    setting = "" if lower.num_actions == NUM_ACTIONS else f"K = {lower.num_actions}: "
    return Verdict(
        f"{setting}regret of {_label(lower)} is below {_label(upper)}",
        f"{mean_and_half_width(pairs['first'])} against {mean_and_half_width(pairs['second'])}",
        exceeds(differences),
        f"difference {mean_and_half_width(differences)}, {len(pairs)} seeds",
    )


def _ratio(rows: pd.DataFrame, claim: str, top: Curve, bottom: Curve) -> Verdict | None:
    """Whether the ratio of mean regrets is above one."""
    pairs, last = paired_regrets(rows, top, bottom)
    if len(pairs) < 2:
        return None
    ratio = paired_ratio(pairs["first"], pairs["second"])
    return Verdict(
        claim,
        f"{pairs['first'].mean():.1f} / {pairs['second'].mean():.1f} = {ratio}",
        ratio.low > 1,
        f"{len(pairs)} seeds, T = {last}",
    )


def _label(curve: Curve) -> str:
    if curve.agent == "eps-greedy":
        return f"independent ε-greedy ({curve.epsilon:g})"
    if curve.agent == "greedy":
        return "multitask greedy"
    return f"GFUCB with M = {curve.group_size}"


def table(rows: pd.DataFrame) -> str:
    """Regret and wall time of every curve with ten actions, in Markdown."""
    lines = [
        "| agent | M | regret per task | rounds | seeds | seconds per run |",
        "|---|---|---|---|---|---|",
    ]
    ten = common_seeds(rows[rows["num_actions"] == NUM_ACTIONS])
    for key, own in ten.groupby(["agent", "epsilon", "group_size"], sort=False):
        agent, epsilon, group_size = str(key[0]), float(str(key[1])), key[2]
        shared = common_rounds(own)
        last = int(shared["round"].max())
        ends = shared[shared["round"] == last]
        label = f"{LABELS[agent]} ({epsilon:g})" if epsilon else LABELS[agent]
        lines.append(
            f"| {label} | {group_size} | {mean_and_half_width(ends['regret'])} | {last} | "
            f"{len(ends)} | {ends['seconds'].mean():.3g} |"
        )
    return "\n".join(lines)

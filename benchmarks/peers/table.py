"""Tables of the comparison, from the files of its runs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from .plan import PEERS
from .problem_files import PROBLEMS
from .running import Comparison, read

OWN = "gfucb"
RANDOM = f"| {PEERS['uniform'].title} |"
COLUMNS = [
    "problem",
    "num_rounds",
    "peer",
    "version",
    "settings",
    "seed",
    "regret",
    "decisions",
    "decide_seconds",
    "learn_seconds",
    "peak_memory",
    "memory_before",
    "load",
    "python",
    "numpy",
    "commit",
    "finished",
]


def run_table(comparison: Comparison) -> pd.DataFrame:
    """One line for each finished report run."""
    rows = []
    for name in comparison.problems:
        spec = PROBLEMS[name]
        if not comparison.problem_file(spec, 0).is_file():
            continue
        for peer in (PEERS[own] for own in comparison.peers):
            settings = comparison.chosen(spec, peer)
            for seed in range(comparison.num_seeds):
                found = read(comparison.run_file(spec, peer, settings or {}, seed))
                if "provenance" in found:
                    rows.append(_row(found))
    return pd.DataFrame(rows, columns=COLUMNS)


def with_kept(runs: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """The runs, and of an earlier table those of packages and problems that were not played now."""
    pairs = set(zip(runs["problem"], runs["peer"], strict=True))
    is_kept = [pair not in pairs for pair in zip(before["problem"], before["peer"], strict=True)]
    both = pd.concat([runs, before[is_kept]], ignore_index=True)
    order = [
        (list(PROBLEMS).index(problem), list(PEERS).index(peer), seed)
        for problem, peer, seed in zip(both["problem"], both["peer"], both["seed"], strict=True)
    ]
    return both.iloc[sorted(range(len(both)), key=order.__getitem__)].reset_index(drop=True)


def _row(found: dict[str, object]) -> dict[str, object]:
    provenance = found["provenance"]
    assert isinstance(provenance, dict)
    mark = "+" if provenance["uncommitted_changes"] else ""
    return found | {
        "settings": json.dumps(found["settings"], sort_keys=True),
        "commit": provenance["commit"] + mark,
        "finished": provenance["finished"],
    }


def summary_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One line for each problem and package; differences to ours are paired by seed."""
    runs = runs.assign(seconds=runs["decide_seconds"] + runs["learn_seconds"])
    rows = []
    for (problem, peer), group in runs.groupby(["problem", "peer"], sort=False):
        own = runs[(runs["problem"] == problem) & (runs["peer"] == OWN)].set_index("seed")
        paired = group.set_index("seed")["regret"] - own["regret"]
        rows.append(
            {
                "problem": problem,
                "peer": peer,
                "regret": group["regret"].mean(),
                "regret_interval": half_width(group["regret"]),
                "difference": paired.mean() if peer != OWN else np.nan,
                "difference_interval": half_width(paired.dropna()) if peer != OWN else np.nan,
                "speed": (group["decisions"] / group["seconds"]).mean(),
                "memory": group["peak_memory"].mean(),
                "seeds": len(group),
                "settings": group["settings"].iloc[0],
            }
        )
    return pd.DataFrame(rows)


def half_width(values: pd.Series[float]) -> float:
    """Half of the 95% interval of a mean, by Student's t; NaN for a single value."""
    if len(values) < 2:
        return float("nan")
    quantile = float(stats.t.ppf(0.975, len(values) - 1))
    return quantile * float(values.std(ddof=1)) / len(values) ** 0.5


def markdown(summary: pd.DataFrame, runs: pd.DataFrame) -> str:
    """The compact table, one table for each problem, and the versions."""
    parts = ["# Side by side with other packages", compact(summary)]
    parts += ["## Decisions per CPU-second, and peak memory", speeds(summary), memories(summary)]
    parts += ["## Against the best and the fastest", verdicts(summary)]
    for problem in summary["problem"].unique():
        own = summary[summary["problem"] == problem]
        spec = PROBLEMS[problem]
        parts += [f"## {spec.title}, {spec.num_rounds} rounds", _problem_table(own)]
    used = runs[runs["version"] != ""].groupby("peer", sort=False)["version"].first()
    listed = ", ".join(f"{name} {version}" for name, version in used.items())
    parts += ["## Versions", f"{listed}; Python {', '.join(sorted(set(runs['python'])))}."]
    return "\n\n".join(parts) + "\n"


def compact(summary: pd.DataFrame) -> str:
    """Regret of each package on each problem; the lowest is bold."""
    problems = list(dict.fromkeys(summary["problem"]))
    lines = []
    for peer in dict.fromkeys(summary["peer"]):
        cells = [PEERS[peer].title]
        for problem in problems:
            own = summary[summary["problem"] == problem].set_index("peer")["regret"]
            cells.append(_regret_cell(own, peer))
        lines.append(cells)
    titles = [f"{PROBLEMS[p].title} (T = {PROBLEMS[p].num_rounds})" for p in problems]
    return _table(["regret", *titles], lines)


def speeds(summary: pd.DataFrame) -> str:
    """Decisions per CPU-second of each package on each problem; random actions cost nothing."""
    return _by_problem(summary[summary["peer"] != "uniform"], "speed", "decisions / CPU-s")


def memories(summary: pd.DataFrame) -> str:
    """Peak memory of each package on each problem."""
    return _by_problem(summary, "memory", "peak memory, MB")


def _by_problem(summary: pd.DataFrame, column: str, name: str) -> str:
    problems = list(dict.fromkeys(summary["problem"]))
    lines = []
    for peer in dict.fromkeys(summary["peer"]):
        own = summary[summary["peer"] == peer].set_index("problem")[column]
        cells = [f"{own[problem]:,.0f}" if problem in own else "" for problem in problems]
        lines.append([PEERS[peer].title, *cells])
    return _table([name, *(PROBLEMS[p].title for p in problems)], lines)


def verdicts(summary: pd.DataFrame) -> str:
    """On each problem: the best other package, and the fastest other one with a network."""
    lines = []
    for problem in dict.fromkeys(summary["problem"]):
        group = summary[summary["problem"] == problem]
        names = [str(name) for name in group["peer"]]
        regrets = dict(zip(names, group["regret"].astype(float), strict=True))
        speeds = dict(zip(names, group["speed"].astype(float), strict=True))
        others = [name for name in names if name not in (OWN, "uniform")]
        if OWN not in names or not others:
            continue
        best = min(others, key=lambda name: regrets[name])
        fastest = max([speeds[n] for n in others if PEERS[n].is_neural], default=float("nan"))
        ratios = [regrets[OWN] / regrets[best], speeds[OWN] / fastest]
        seeds = group["seeds"].astype(int).min()
        cells = [PEERS[best].title, *(f"{ratio:.2f}" for ratio in ratios), f"{seeds}"]
        lines.append([PROBLEMS[str(problem)].title, *cells])
    head = ["problem", "best other package", "our regret / its regret"]
    return _table([*head, "our speed / calvera's", "seeds"], lines)


def quoted(document: str, table: str) -> str:
    """The document, with its table of the same first column name replaced by this one.

    Documents with little room, such as the README, leave random actions out of a table that has
    other lines; the new table then has none either.
    """
    name = table.split("|")[1].strip()
    pattern = rf"^\| {re.escape(name)} \|.*?\n(?!\|)"

    def replacement(found: re.Match[str]) -> str:
        is_short = found[0].count("\n|") > 1 and RANDOM not in found[0]
        lines = [line for line in table.splitlines() if not (is_short and line.startswith(RANDOM))]
        return "\n".join(lines) + "\n"

    return re.sub(pattern, replacement, document, count=1, flags=re.S | re.M)


def _regret_cell(regrets: pd.Series[float], peer: str) -> str:
    if peer not in regrets:
        return ""
    value = float(regrets[peer])
    text = f"{value:.0f}" if value >= 100 else f"{value:.2f}"
    return f"**{text}**" if value == regrets.min() else text


def _problem_table(summary: pd.DataFrame) -> str:
    lines = []
    for row in summary.sort_values("regret").itertuples():
        difference = (
            "" if row.peer == OWN else f"{row.difference:+.2f} ± {row.difference_interval:.2f}"
        )
        lines.append(
            [
                PEERS[str(row.peer)].title,
                f"{row.regret:.2f} ± {row.regret_interval:.2f}",
                difference,
                f"{row.speed:,.0f}",
                f"{row.memory:.0f}",
                str(row.seeds),
                f"`{row.settings}`" if row.settings != "{}" else "",
            ]
        )
    head = ["package", "regret of a task", "difference to gfucb, paired", "decisions / CPU-s"]
    # The interval of one seed is not known.
    return _table([*head, "peak memory, MB", "seeds", "settings"], lines).replace(" ± nan", "")


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)

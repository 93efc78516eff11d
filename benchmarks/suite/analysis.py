"""Tables of the suite: regret of the default relative to the best alternative, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from .contenders import CONTENDERS, DEFAULT
from .families import FAMILIES, Family
from .running import Plan, Result, best_trial, results_of, settings_text

CONFIDENCE = 0.95
NUM_RESAMPLES = 4999
RUN_COLUMNS = ("family", "contender", "settings", "seed", "regret", "seconds", "latency", "stuck")


def run_table(plan: Plan) -> pd.DataFrame:
    """One line for each finished report run: family, contender, settings, seed and results."""
    lines = []
    for name in plan.families:
        family = FAMILIES[name]
        for contender in plan.contenders_of(family):
            trial = best_trial(plan, family, contender)
            if trial is None:
                continue
            for seed, result in results_of(plan.out, trial, plan.seeds_for_report).items():
                lines.append(_line(family, contender, settings_text(trial.settings), seed, result))
    return pd.DataFrame(lines, columns=[*RUN_COLUMNS, "commit"])


def with_earlier_runs(runs: pd.DataFrame, earlier: Sequence[Path]) -> pd.DataFrame:
    """Add lines of earlier run tables, for families and contenders that have none.

    Of several tables the first that has a family and contender counts, with all of its seeds.
    """
    for path in earlier:
        found = pd.read_csv(path, dtype={"settings": str}).fillna({"settings": ""})
        if list(found.columns) != [*RUN_COLUMNS, "commit"]:
            raise SystemExit(f"{path} is no table of runs: its columns are {list(found.columns)}")
        known = set(zip(runs["family"], runs["contender"], strict=True))
        pairs = zip(found["family"], found["contender"], strict=True)
        is_new = [pair not in known and pair[0] in FAMILIES for pair in pairs]
        runs = found[is_new] if runs.empty else pd.concat([runs, found[is_new]])
    return runs.reset_index(drop=True)


def _line(
    family: Family, contender: str, settings: str, seed: int, result: Result
) -> dict[str, object]:
    own = {"family": family.name, "contender": contender, "settings": settings, "seed": seed}
    return own | vars(result)


def contender_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, one line for each family and contender, the smallest regret first."""
    grouped = runs.groupby(["family", "contender"], sort=False)
    table = grouped.agg(
        regret=("regret", "mean"),
        spread=("regret", "std"),
        seeds=("seed", "count"),
        seconds=("seconds", "mean"),
        # Some seeds import modules in their first call.
        latency=("latency", "median"),
        stuck=("stuck", "mean"),
        settings=("settings", "first"),
    ).reset_index()
    order = {name: index for index, name in enumerate(FAMILIES)}
    table["order"] = table["family"].map(order)
    table = table.sort_values(["order", "regret"], ignore_index=True).drop(columns="order")
    uniform = table[table["contender"] == "uniform"].set_index("family")["regret"]
    table["percent_of_uniform"] = 100 * table["regret"] / table["family"].map(uniform)
    return table


def ratio_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One line for each family: the default against the alternative with the smallest regret.

    The alternative is chosen on the report seeds themselves, which favours it. The interval of the
    ratio of mean regrets is a paired bootstrap over the seeds that both have.
    """
    means = contender_table(runs)
    lines = []
    for family in dict.fromkeys(means["family"]):
        own = means[means["family"] == family].set_index("contender")
        rivals = [name for name in own.index if CONTENDERS[str(name)].is_alternative]
        if DEFAULT not in own.index or not rivals:
            continue
        best = str(own.loc[rivals, "regret"].astype(float).idxmin())
        default, alternative = paired_regrets(runs, str(family), best)
        low, high = ratio_interval(default, alternative)
        default_line = own.loc[DEFAULT]
        lines.append(
            {
                "family": family,
                "regret": default.mean(),
                "percent_of_uniform": default_line["percent_of_uniform"],
                "best_alternative": best,
                "alternative_regret": alternative.mean(),
                "ratio": default.mean() / alternative.mean(),
                "ratio_low": low,
                "ratio_high": high,
                "seeds": len(default),
                "stuck": default_line["stuck"],
                "alternative_stuck": own.loc[best, "stuck"],
                "seconds": default_line["seconds"],
                "alternative_seconds": own.loc[best, "seconds"],
                "latency": default_line["latency"],
                "commit": _commits(runs, str(family)),
            }
        )
    return pd.DataFrame(lines)


def _commits(runs: pd.DataFrame, family: str) -> str:
    """The commits of the runs of the default, abbreviated."""
    own = runs[(runs["family"] == family) & (runs["contender"] == DEFAULT)]["commit"]
    return " ".join(dict.fromkeys(f"{c[:7]}{'+' * c.endswith('+')}" for c in own.astype(str)))


def paired_regrets(
    runs: pd.DataFrame, family: str, alternative: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Regrets of the default and of an alternative on the seeds that both have."""
    own = runs[(runs["family"] == family) & runs["contender"].isin([DEFAULT, alternative])]
    by_seed = own.pivot(index="seed", columns="contender", values="regret").dropna()
    return by_seed[DEFAULT].to_numpy(np.float64), by_seed[alternative].to_numpy(np.float64)


def ratio_interval(
    numerator: NDArray[np.float64], denominator: NDArray[np.float64]
) -> tuple[float, float]:
    """The 95% interval of the ratio of means, paired percentile bootstrap; NaN for one seed."""
    if len(numerator) < 2:
        return float("nan"), float("nan")

    def ratio(
        a: NDArray[np.float64], b: NDArray[np.float64], axis: int = -1
    ) -> NDArray[np.float64]:
        return a.mean(axis=axis) / b.mean(axis=axis)

    result = stats.bootstrap(
        (numerator, denominator),
        ratio,
        paired=True,
        vectorized=True,
        confidence_level=CONFIDENCE,
        n_resamples=NUM_RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    interval = result.confidence_interval
    return float(interval.low), float(interval.high)


def markdown(ratios: pd.DataFrame, contenders: pd.DataFrame) -> str:
    """Both tables as a markdown document."""
    parts = ["# Benchmark suite", ""]
    if len(ratios):
        parts += ["## The default agent against the best alternative", "", *_ratio_lines(ratios)]
    compared = set(ratios["family"]) if len(ratios) else set()
    missing = [name for name in dict.fromkeys(contenders["family"]) if name not in compared]
    if missing:
        parts += [
            "",
            f"No finished runs of the default or of an alternative: {', '.join(missing)}.",
        ]
    for family in dict.fromkeys(contenders["family"]):
        own = contenders[contenders["family"] == family]
        parts += ["", f"## {family}", "", *_contender_lines(own)]
    return "\n".join(parts) + "\n"


def _ratio_lines(ratios: pd.DataFrame) -> list[str]:
    head = (
        "family",
        "regret",
        "% of uniform",
        "best alternative",
        "its regret",
        "ratio (95% interval)",
        "seeds",
        "stuck, default / alternative",
        "seconds, default / alternative",
        "worst latency, s",
        "commit of the default",
    )
    rows = []
    for line in ratios.to_dict("records"):
        interval = f"{line['ratio']:.2f} ({line['ratio_low']:.2f} to {line['ratio_high']:.2f})"
        has_stuck = bool(np.isfinite(line["stuck"]))
        stuck = f"{line['stuck']:.0%} / {line['alternative_stuck']:.0%}" if has_stuck else ""
        rows.append(
            (
                line["family"],
                f"{line['regret']:.4g}",
                f"{line['percent_of_uniform']:.1f}",
                line["best_alternative"],
                f"{line['alternative_regret']:.4g}",
                interval,
                line["seeds"],
                stuck,
                f"{line['seconds']:.1f} / {line['alternative_seconds']:.1f}",
                f"{line['latency']:.2f}",
                line["commit"],
            )
        )
    return _lines(head, rows)


def _contender_lines(table: pd.DataFrame) -> list[str]:
    head = ("contender", "regret", "sd", "% of uniform", "seeds", "seconds", "settings")
    rows = [
        (
            line.contender,
            f"{line.regret:.4g}",
            f"{line.spread:.2g}",
            f"{line.percent_of_uniform:.1f}",
            line.seeds,
            f"{line.seconds:.1f}",
            line.settings,
        )
        for line in table.itertuples()
    ]
    return _lines(head, rows)


def _lines(head: Sequence[object], rows: Sequence[Sequence[object]]) -> list[str]:
    shown = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(str(cell) for cell in row) + " |" for row in shown]

"""From rows to tables: means, 95% intervals, and paired differences over seeds."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from gfucb.core.errors import RunDirectoryError, lookup
from gfucb.runs.metrics import metric_of
from gfucb.runs.registry import ENVIRONMENTS, agent_label
from gfucb.runs.store import read_config, read_provenance, read_rows
from gfucb.runs.stored_settings import field_defaults
from gfucb.runs.text_files import as_json

CONFIDENCE = 0.95
# Agents with which the others are compared, the first one present.
REFERENCES = ("gfucb-mdp", "gfucb")


def find_runs(directory: Path | str) -> list[Path]:
    """All run directories at or below `directory`, in the order of their names."""
    directory = Path(directory)
    if not directory.is_dir():
        raise RunDirectoryError(f"there is no directory {directory}; `gfucb compare` makes one")
    found = sorted(path.parent for path in directory.rglob("config.json"))
    if not found:
        raise RunDirectoryError(
            f"there are no runs in {directory}; `gfucb compare --out` makes some"
        )
    return found


def load_rows(directory: Path | str) -> pd.DataFrame:
    """The rows of all finished runs at or below `directory`, with columns agent and seed."""
    tables = []
    found: dict[tuple[str, int], Path] = {}
    shared: dict[str, Any] | None = None
    plugins: dict[str, str] = {}
    for path in find_runs(directory):
        if read_provenance(path).get("finished"):
            config = read_config(path)
            if "environment" not in config:
                raise RunDirectoryError(
                    f"{path} holds no run of an agent, so it has no part in a comparison; choose a "
                    "directory that `gfucb compare` or `gfucb run` wrote"
                )
            problem = _problem(config)
            if problem != (shared := shared or problem):
                raise RunDirectoryError(
                    f"{path} is a run of another environment or length than those beside it, so "
                    "they cannot be compared; give each comparison a directory of its own"
                )
            _require_one_version(config.get("plugins", {}), plugins, path)
            agent, seed = config["agent"]["name"], config["seed"]
            if (other := found.setdefault((agent, seed), path)) != path:
                raise RunDirectoryError(
                    f"{other} and {path} are both runs of {agent} with seed {seed}, so {directory} "
                    "has more than one comparison; choose the directory of one"
                )
            rows = _numbers_of(path, config["num_rounds"])
            tables.append(rows.assign(agent=agent, seed=seed))
    if not tables:
        raise RunDirectoryError(
            f"no run in {directory} is finished; repeat the command that started them"
        )
    return pd.concat(tables, ignore_index=True)


def _numbers_of(path: Path, num_rounds: int) -> pd.DataFrame:
    """The rows of a finished run as numbers; all of them must be there."""
    problem = ""
    try:
        rows = pd.DataFrame(read_rows(path)).apply(pd.to_numeric)
    except (ValueError, TypeError, csv.Error) as error:
        problem = str(error)
    else:
        if len(rows) == num_rounds:
            return rows
        problem = f"it has {len(rows)} rows, and num_rounds is {num_rounds}"
    raise RunDirectoryError(
        f"{path / 'rows.csv'} is damaged: {problem}; remove {path} and compute the run again"
    )


def _require_one_version(own: Mapping[str, str], known: dict[str, str], path: Path) -> None:
    """Refuse runs of two versions of one plugin; `known` are those of the runs before."""
    for name, version in own.items():
        if known.setdefault(name, version) != version:
            raise RunDirectoryError(
                f"{path} is a run of another version of the plugin {name} than those beside it, so "
                "they cannot be compared; delete the runs of the older version"
            )


def _problem(config: dict[str, Any]) -> dict[str, Any]:
    """Environment and length of a run; settings that it does not state are at their defaults."""
    environment, name = config["environment"], config["environment"]["name"]
    known = field_defaults(ENVIRONMENTS[name].config) if name in ENVIRONMENTS else {}
    return {"environment": as_json(known) | environment, "num_rounds": config["num_rounds"]}


def load_seconds(directory: Path | str) -> pd.Series:
    """CPU seconds of one finished run, mean over seeds, by agent."""
    runs = [(read_config(path), read_provenance(path)) for path in find_runs(directory)]
    table = pd.DataFrame(
        {
            "agent": [config["agent"]["name"] for config, _ in runs],
            "seconds": [provenance["cpu_seconds"] for _, provenance in runs],
            "finished": [bool(provenance.get("finished")) for _, provenance in runs],
        }
    )
    return table[table["finished"]].groupby("agent")["seconds"].mean()


def summarise(directory: Path | str, reference: str | None = None) -> pd.DataFrame:
    """The summary of the finished runs at or below `directory`, see `summarise_rows`."""
    return summarise_rows(load_rows(directory), load_seconds(directory), reference)


def summarise_rows(
    rows: pd.DataFrame, seconds: pd.Series, reference: str | None = None
) -> pd.DataFrame:
    """One line per agent, the best first.

    Columns: regret (cumulative, per task, mean over seeds) and its 95% half width;
    regret_per_decision; late_regret, per decision in the last quarter of the rounds;
    cpu_seconds of one run; seeds; versus_reference, the mean paired difference of regret to
    `reference`, and its half width; and in episodic environments optimism_violations, the share
    of episodes whose optimistic value was below the optimal value. In environments without
    optimal values reward, the mean reward per task and round, replaces regret, late_reward
    replaces late_regret, and there is no regret_per_decision.

    Args:
        rows: rows of all runs, with columns agent and seed.
        seconds: CPU seconds of one run, by agent.
        reference: the agent others are compared with; by default GFUCB, if it is there. The
            table has its name in `attrs["reference"]`.
    """
    metric = metric_of(rows.columns)
    reference = reference or reference_among(rows["agent"].unique())
    final = metric.final(rows)
    if reference is not None:
        lookup(dict.fromkeys(final.index), reference, "agent of these runs")
    num_rounds = int(rows["round"].max())
    late = rows[rows["round"] > 0.75 * num_rounds].groupby("agent")[metric.name].mean()
    lines = []
    for agent, by_seed in ((str(name), final.loc[name]) for name in final.index):
        values = by_seed.dropna().to_numpy(np.float64)
        line = {
            "agent": agent,
            metric.name: values.mean(),
            f"{metric.name}_half_width": half_width(values),
            **({"regret_per_decision": values.mean() / num_rounds} if metric.is_cost else {}),
            f"late_{metric.name}": late[agent],
            "cpu_seconds": seconds[agent],
            "seeds": len(values),
        }
        if "optimism_violations" in rows.columns:
            own = rows[rows["agent"] == agent]
            line["optimism_violations"] = own["optimism_violations"].mean()
        if reference is not None:
            differences = (by_seed - final.loc[reference]).dropna().to_numpy(np.float64)
            line["versus_reference"] = differences.mean()
            line["versus_reference_half_width"] = half_width(differences)
        lines.append(line)
    table = pd.DataFrame(lines).sort_values(
        metric.name, ascending=metric.is_cost, ignore_index=True
    )
    table.attrs["reference"] = reference
    return table


def reference_among(agents: Iterable[str]) -> str | None:
    """The agent with which others are compared; None if there is no GFUCB among them."""
    names = set(agents)
    return next((name for name in REFERENCES if name in names), None)


def half_width(values: NDArray[np.float64]) -> float:
    """Half the 95% t-interval of the mean of independent values; NaN for a single one."""
    if len(values) < 2:
        return float("nan")
    error = values.std(ddof=1) / np.sqrt(len(values))
    return float(error * stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))


def presentable(table: pd.DataFrame) -> list[dict[str, str]]:
    """The lines of a summary as text, by column."""
    reference = table.attrs.get("reference") or reference_among(table["agent"])
    return [_presentable_line(line, reference) for line in table.to_dict("records")]


def _presentable_line(line: dict[Any, Any], reference: str | None) -> dict[str, str]:
    metric = metric_of(line)
    mean, spread = line[metric.name], line[f"{metric.name}_half_width"]
    cells = {"agent": line["agent"], metric.label: interval(mean, spread)}
    if reference is not None:
        mean, spread = line["versus_reference"], line["versus_reference_half_width"]
        is_reference = line["agent"] == reference
        difference = "" if is_reference else interval(mean, spread, sign=True)
        cells[f"versus {agent_label(reference)}"] = difference
    if metric.is_cost:
        cells["per decision"] = f"{line['regret_per_decision']:.3f}"
    cells["late"] = f"{line[f'late_{metric.name}']:.3f}"
    cells["seconds"] = f"{line['cpu_seconds']:.1f}"
    if "optimism_violations" in line:
        cells["< V*"] = f"{line['optimism_violations']:.1%}"
    return cells


def interval(mean: float, half_width: float, *, sign: bool = False) -> str:
    """`mean ± half width`; only the mean if there is no interval."""
    if not math.isfinite(mean):
        return ""
    text = f"{mean:+.2f}" if sign else f"{mean:.2f}"
    return f"{text} ± {half_width:.2f}" if math.isfinite(half_width) else text

"""One self-contained HTML page from a directory of runs: figures, tables, provenance."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import jinja2
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from gfucb.core.errors import GFUCBError
from gfucb.core.protocols import BanditEnvironment
from gfucb.runs.build_run import make_environment
from gfucb.runs.figure_style import NARROW, WIDE
from gfucb.runs.metrics import Metric, count_of_seeds, metric_of, number_of_seeds
from gfucb.runs.plots import (
    UNIFORM,
    action_sets_figure,
    comparison_curves,
    late_regret,
    paired_results,
    svg,
)
from gfucb.runs.registry import AGENTS, ENVIRONMENTS, agent_colours, agent_label
from gfucb.runs.store import read_config, read_provenance
from gfucb.runs.summary import find_runs, load_rows, presentable, reference_among, summarise
from gfucb.runs.text_files import write_text

# Sizes of the page: agents that get a card, and agents that the first sentences name.
MOST_CARDS, MOST_RIVALS = 6, 4


def write_report(directory: Path) -> Path:
    """Write `directory`/report.html from the finished runs below `directory`; return its path."""
    path = directory / "report.html"
    write_text(path, report_page(directory))
    return path


def report_page(directory: Path) -> str:
    """The page as text. It loads no other file."""
    rows, table = load_rows(directory), summarise(directory)
    runs = find_runs(directory)
    config = read_config(runs[0])
    environment, num_rounds = config["environment"], int(rows["round"].max())
    reference, metric = reference_among(table["agent"]), metric_of(rows.columns)
    lines = presentable(table)
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("gfucb.runs", "."),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return templates.get_template("report.html.jinja").render(
        title=_title(environment, num_rounds),
        environment_label=_environment_label(environment["name"]),
        metric=metric,
        lead=lead(table, num_rounds),
        cards=_cards(table, reference),
        pictures={
            "curves": _picture(partial(comparison_curves, rows)),
            "late": _picture(partial(late_regret, rows)) if metric.is_cost else None,
            "paired": _picture(partial(paired_results, rows)),
            "problem": _problem(config),
        },
        columns=[_heading(name, metric) for name in lines[0]],
        num_seeds=number_of_seeds(rows),
        lines=_lines(lines, reference),
        reference_label=agent_label(reference) if reference else "",
        is_episodic="optimism_violations" in table.columns,
        seed=config["seed"],
        num_runs=len(runs),
        directory=directory.name,
        provenance={"uncommitted_changes": False} | read_provenance(runs[0]),
        settings=json.dumps({name: config[name] for name in ("environment", "agent")}, indent=2),
    )


def lead(table: pd.DataFrame, num_rounds: int) -> str:
    """The result in words; differences that are not significant are marked."""
    by_agent = table.set_index("agent")
    reference, metric = reference_among(by_agent.index), metric_of(table.columns)
    own: Any = by_agent.loc[reference] if reference else by_agent.iloc[0]
    seeds = f" (mean of {count_of_seeds(int(own['seeds']))})" if "seeds" in own.index else ""
    value = f"{own[metric.name]:.1f}" if metric.is_cost else f"{own[metric.name]:.3g}"
    if reference is None:
        best = agent_label(str(by_agent.index[0]))
        return (
            f"{len(table)} agents on the same seeds, {num_rounds} rounds. {best} has the best "
            f"{metric.label}: {value} per task{seeds}."
        )
    sentences = [
        f"After {num_rounds} rounds the {metric.label} of {agent_label(reference)} is {value} per "
        f"task{seeds}."
    ]
    if "optimism_violations" in own.index:
        sentences.append(
            f"Its optimistic value was below the optimal value in "
            f"{own['optimism_violations']:.1%} of the episodes."
        )
    rivals = [str(name) for name in by_agent.index if _is_rival(str(name), reference)]
    return " ".join(
        [*sentences, *(_versus(by_agent.loc[name], name) for name in rivals[:MOST_RIVALS])]
    )


def _is_rival(name: str, reference: str) -> bool:
    """Whether the first sentences may compare with an agent: it learns, and is no oracle."""
    is_oracle = name in AGENTS and AGENTS[name].uses_true_features
    return name not in (reference, *UNIFORM) and not is_oracle


def _versus(line: Any, rival: str) -> str:
    difference, spread = line["versus_reference"], line["versus_reference_half_width"]
    value = line[metric_of(line.index).name]
    share = abs(difference / value) if value else math.nan
    direction = "less" if difference > 0 else "more"
    is_significant = math.isfinite(spread) and abs(difference) > spread
    caveat = "" if is_significant else " (not significant with these seeds)"
    amount = f"{share:.0%}" if math.isfinite(share) else f"{abs(difference):.2f}"
    return f"That is {amount} {direction} than {agent_label(rival)}{caveat}."


def _title(environment: dict[str, Any], num_rounds: int) -> str:
    sizes = [
        f"{environment[f'num_{noun}']} {noun}"
        for noun in ("tasks", "actions")
        if f"num_{noun}" in environment
    ]
    return ", ".join([*sizes, f"{num_rounds} rounds"])


def _environment_label(name: str) -> str:
    return ENVIRONMENTS[name].label if name in ENVIRONMENTS else name


def _cards(table: pd.DataFrame, reference: str | None) -> list[dict[str, Any]]:
    """A number for each of the best agents, the last one and the reference."""
    column = "regret_per_decision" if metric_of(table.columns).is_cost else "reward"
    values = table.set_index("agent")[column]
    names = [str(name) for name in values.index]
    if len(names) > MOST_CARDS:
        names = [*names[: MOST_CARDS - 1], names[-1]]
        if reference and reference not in names:
            names[-2] = reference
    return [
        {"label": agent_label(name), "value": values[name], "is_reference": name == reference}
        for name in names
    ]


def _heading(column: str, metric: Metric) -> str:
    """The name of a column of the summary in plain words."""
    whole = {"regret": "regret of a task", "mean reward": "mean reward"}
    rest = {
        "per decision": "regret per decision",
        "late": f"{metric.per_round}, last quarter",
        "seconds": "CPU seconds of a run",
        "< V*": "episodes below optimal value",
    }
    return (whole | rest).get(column, column.replace("versus ", "difference to "))


def _lines(lines: list[dict[str, str]], reference: str | None) -> list[dict[str, Any]]:
    colours = agent_colours(line["agent"] for line in lines)
    return [
        {
            "label": agent_label(agent),
            "description": AGENTS[agent].description if agent in AGENTS else "",
            "colour": colours[agent],
            "cells": cells,
            "is_reference": agent == reference,
        }
        for agent, *cells in (line.values() for line in lines)
    ]


def _picture(draw: Callable[..., Figure]) -> dict[str, Markup]:
    """The same figure for a page and for a phone."""
    widths = {"wide": WIDE, "narrow": NARROW}
    return {name: Markup(svg(draw(width=width))) for name, width in widths.items()}


def _problem(config: dict[str, Any]) -> dict[str, Markup] | None:
    """The first round of a bandit whose actions are images, unless it needs data files."""
    entry = ENVIRONMENTS.get(config["environment"]["name"])
    if entry is None or entry.kind != "bandit" or entry.uses_data_dir:
        return None
    try:
        environment = make_environment(entry.config(**config["environment"]), config["seed"])
    except (GFUCBError, TypeError):  # written by another version: the page has no picture of it
        return None
    first = cast(BanditEnvironment, environment).round(1)
    return _picture(partial(action_sets_figure, first)) if first.candidates.ndim == 4 else None

"""The table of the benchmark, from the stored runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from gfucb.runs.store import distinct_provenance, is_finished, read_rows

from .contenders import CONTENDERS, DEFAULT, JOINING
from .problems import PROBLEMS
from .running import Plan, best_scale, job

HEADER = (
    "| problem | agent | seeds solved | episodes a task until solved | greedy return at the end | "
    "CPU seconds |\n|---|---|---|---|---|---|\n"
)

# (problem, contender), and what it is compared with on the same seeds.
COMPARISONS = [
    (("lock-12", DEFAULT), ("lock-12-alone", DEFAULT)),
    (("lock-12-ten", DEFAULT), ("lock-12-alone", DEFAULT)),
    (("lock-12-alone", JOINING), ("lock-12-alone", DEFAULT)),
    (("lock-12-nonlinear", DEFAULT), ("lock-12-nonlinear-alone", DEFAULT)),
    (("lock-12-nonlinear-alone", JOINING), ("lock-12-nonlinear-alone", DEFAULT)),
]
COMPARISON_HEADER = (
    "| problem and agent | compared with | paired seeds | difference in episodes a task |\n"
    "|---|---|---|---|\n"
)


def results(plan: Plan) -> dict[str, Any]:
    """A line for each problem and contender that has finished runs, and their provenance."""
    lines, paths = [], []
    for problem, contender in plan.pairs:
        scale = best_scale(plan, problem, contender)
        found = [plan.out / job(plan, problem, contender, scale, s).name for s in plan.seeds]
        found = [path for path in found if is_finished(path)]
        if found:
            lines.append(_line(problem, contender, scale, found))
            paths += found
    return {
        "results": lines,
        "comparisons": comparisons(plan),
        "provenance": distinct_provenance(paths),
    }


def comparisons(plan: Plan) -> list[dict[str, Any]]:
    """Differences of the episodes until solved, over the seeds that both have finished."""
    lines = []
    for one, other in COMPARISONS:
        first, second = _episodes(plan, *one), _episodes(plan, *other)
        both = sorted(first.keys() & second.keys())
        if both:
            difference = mean_and_interval([first[seed] - second[seed] for seed in both])
            lines.append({"one": one, "other": other, "seeds": both, "difference": difference})
    return lines


def _episodes(plan: Plan, problem: str, contender: str) -> dict[int, float]:
    """Mean episodes until solved by seed; tasks that are not solved count with all episodes."""
    scale = best_scale(plan, problem, contender)
    paths = {s: plan.out / job(plan, problem, contender, scale, s).name for s in plan.seeds}
    return {
        seed: float(list(read_rows(path))[-1]["mean_solved_after"])
        for seed, path in paths.items()
        if is_finished(path)
    }


def _line(problem: str, contender: str, scale: float, paths: Sequence[Path]) -> dict[str, Any]:
    last = [list(read_rows(path))[-1] for path in paths]
    num_tasks = PROBLEMS[problem].num_tasks
    solved = [int(row["solved_tasks"]) == num_tasks for row in last]
    line: dict[str, Any] = {
        "problem": problem,
        "contender": contender,
        "scale": scale if CONTENDERS[contender].scales else None,
        "num_seeds": len(last),
        "num_solved": sum(solved),
        "solved_tasks": sum(int(row["solved_tasks"]) for row in last) / len(last) / num_tasks,
    }
    for name in ("mean_solved_after", "episodes", "greedy_return", "cpu_seconds"):
        line[name] = mean_and_interval([float(row[name]) for row in last])
    return line


def mean_and_interval(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and half the width of its 95% interval, by Student's t over seeds."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return {"mean": mean, "half_width": None}
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return {"mean": mean, "half_width": float(student.ppf(0.975, len(values) - 1)) * error}


def markdown(lines: Sequence[dict[str, Any]]) -> str:
    """The table as text."""
    rows = []
    for line in lines:
        is_solved = line["num_solved"] == line["num_seeds"]
        key = "mean_solved_after" if is_solved else "episodes"
        episodes = _text(line[key], 0)
        if not is_solved:
            episodes = f"{line['solved_tasks']:.0%} of tasks in {episodes}"
        rows.append(
            f"| {PROBLEMS[line['problem']].description} | {CONTENDERS[line['contender']].label} | "
            f"{line['num_solved']} of {line['num_seeds']} | {episodes} | "
            f"{_text(line['greedy_return'], 2)} | {_text(line['cpu_seconds'], 0)} |"
        )
    return HEADER + "\n".join(rows) + "\n"


def overview_markdown(lines: Sequence[dict[str, Any]]) -> str:
    """Episodes until solved as text: a row for each problem, a column for each agent."""
    cells = {(line["problem"], line["contender"]): line for line in lines}
    problems = [name for name in PROBLEMS if any(problem == name for problem, _ in cells)]
    contenders = [name for name in CONTENDERS if any(name == other for _, other in cells)]
    rows = [
        ["problem", *(_heading(name, lines) for name in contenders)],
        ["---"] * (1 + len(contenders)),
        *(
            [PROBLEMS[problem].description]
            + [_overview_cell(problem, name, cells.get((problem, name))) for name in contenders]
            for problem in problems
        ),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _heading(contender: str, lines: Sequence[dict[str, Any]]) -> str:
    numbers = sorted({line["num_seeds"] for line in lines if line["contender"] == contender})
    seeds = " or ".join(map(str, numbers))
    return f"{CONTENDERS[contender].label}; {seeds} seed{'' if numbers == [1] else 's'}"


def _overview_cell(problem: str, contender: str, line: dict[str, Any] | None) -> str:
    if line is None:
        return "not run" if CONTENDERS[contender].suits(problem) else "does not apply"
    if line["num_solved"] == line["num_seeds"]:
        return _text(line["mean_solved_after"], 0)
    return (
        f"{line['num_solved']} of {line['num_seeds']} seeds, {line['solved_tasks']:.0%} of tasks "
        f"in {line['episodes']['mean']:,.0f}"
    )


def comparison_markdown(lines: Sequence[dict[str, Any]]) -> str:
    """The paired differences as text; nothing if there are none."""
    rows = [
        f"| {_name(*line['one'])} | {_name(*line['other'])} | {len(line['seeds'])} | "
        f"{_text(line['difference'], 1)} |"
        for line in lines
    ]
    return COMPARISON_HEADER + "\n".join(rows) + "\n" if rows else ""


def _name(problem: str, contender: str) -> str:
    return f"{PROBLEMS[problem].description}; {CONTENDERS[contender].label}"


def _text(value: dict[str, float | None], digits: int) -> str:
    mean = f"{value['mean']:,.{digits}f}"
    half = value["half_width"]
    return mean if half is None else f"{mean} ± {half:,.{digits}f}"

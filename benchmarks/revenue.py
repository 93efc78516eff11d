"""Revenue in dollars with value_range="auto", against rewards scaled to 0 .. 1 with a stated range.

    python -m benchmarks.revenue --runs OUT/revenue.jsonl --processes 16

The same problems as in `forgetting.py`, without a change, for 200 rounds. Dollars are 40 + 400
times the scaled reward; regret is in scaled units. The goal is a ratio of at most 1.05 on paired
seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.forgetting import NEVER, PROBLEMS, environment
from benchmarks.paired import Job, interval, make_runs, ratio, write_table

from gfucb import GFUCB

GOAL = 1.05
OFFSET, DOLLARS = 40.0, 400.0
ROUNDS = 200
UNITS = ("scaled", "dollars")


def play(job: Job, digits: str | None = None) -> Mapping[str, Any]:
    """The regret of a job per task, in scaled units."""
    problem, regret = environment(job, NEVER, digits), 0.0
    is_scaled = job["unit"] == "scaled"
    agent = GFUCB(
        problem.num_tasks, seed=job["seed"], value_range=(0.0, 1.0) if is_scaled else "auto"
    )
    for index in range(1, job["rounds"] + 1):
        offered = problem.round(index)
        decision = agent.decide(offered.candidates)
        rewards = offered.rewards(decision.actions)
        agent.observe(decision, rewards if is_scaled else OFFSET + DOLLARS * rewards)
        regret += float(offered.regrets(decision.actions).mean())
    return {"regret": regret}


def table(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ratios of dollars to scaled rewards over paired seeds."""
    found = {
        (line["job"]["problem"], line["job"]["unit"], line["job"]["seed"]): line["result"]["regret"]
        for line in lines
    }
    seeds = sorted({key[2] for key in found})
    rows = []
    for problem in dict.fromkeys(key[0] for key in found):
        scaled, dollars = ([found[problem, unit, seed] for seed in seeds] for unit in UNITS)
        row = {"problem": problem, "scaled": np.mean(scaled), "dollars": np.mean(dollars)}
        rows.append(row | ratio(dollars, scaled) | {"goal": GOAL})
    return rows


def main() -> None:
    """Make the runs that are missing; write the table if a file is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--digits", default=None, help="see forgetting.py")
    parser.add_argument("--runs", type=Path, default=Path("runs/revenue.jsonl"))
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--page", type=Path, default=None, help="document to write the table to")
    choices = parser.parse_args()
    seeds = range(choices.first_seed, choices.first_seed + choices.seeds)
    jobs: list[Job] = [
        {"problem": problem, "unit": unit, "seed": seed, "rounds": choices.rounds}
        for problem in choices.problems
        for seed in seeds
        for unit in UNITS
    ]
    lines = make_runs(partial(play, digits=choices.digits), jobs, choices.runs, choices.processes)
    rows = table(lines)
    print(*rows, sep="\n")
    if choices.json is not None:
        from gfucb.runs.provenance import current_provenance
        from gfucb.runs.text_files import write_json

        content = {"table": rows, "runs": lines, "provenance": current_provenance()}
        write_json(choices.json, content)
    if choices.page is not None:
        write_table(choices.page, "revenue", markdown(rows))


def markdown(rows: list[dict[str, Any]]) -> list[list[str]]:
    """The table of a page."""
    head = ["problem", "scaled to 0 .. 1, range stated", 'dollars, "auto"', "ratio", "seeds"]
    cells = [
        [
            row["problem"],
            f"{row['scaled']:.2f}",
            f"{row['dollars']:.2f}",
            interval(row),
            str(row["seeds"]),
        ]
        for row in rows
    ]
    return [head, *cells]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main()

"""Revenue in dollars with value_range="auto", against rewards scaled to 0 .. 1 with a stated range.

    python -m benchmarks.revenue --json benchmarks/revenue.json --page docs/explanation/rewards.md

The same problems as in `forgetting.py`, without a change, for 200 rounds. Dollars are 40 + 400
times the scaled reward; regret is in scaled units. The goal is a ratio of at most 1.05 on paired
seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from benchmarks.forgetting import NEVER, PROBLEMS, environment
from benchmarks.paired import Job, by_seed, interval, numbers, ratio
from benchmarks.paired_command import Column, Comparison, Rows

from gfucb import GFUCB

GOAL = 1.05
OFFSET, DOLLARS = 40.0, 400.0
ROUNDS = 200
UNITS = ("scaled", "dollars")


def play(job: Job) -> Mapping[str, Any]:
    """The regret of a job per task, in scaled units."""
    problem, regret = environment(job, NEVER), 0.0
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


def jobs_of(seeds: Sequence[int], choices: argparse.Namespace) -> list[Job]:
    """Both units on all problems."""
    return [
        {"problem": problem, "unit": unit, "seed": seed, "rounds": choices.rounds}
        for problem in choices.problems
        for seed in seeds
        for unit in UNITS
    ]


def tables(lines: Rows) -> Mapping[str, Rows]:
    """Ratios of dollars to scaled rewards over paired seeds."""
    rows = []
    for problem in dict.fromkeys(line["job"]["problem"] for line in lines):
        found = (by_seed(lines, problem=problem, unit=unit) for unit in UNITS)
        scaled, dollars = numbers("regret", *found)
        row = {"problem": problem, "scaled": np.mean(scaled), "dollars": np.mean(dollars)}
        rows.append(row | ratio(dollars, scaled) | {"goal": GOAL})
    return {"revenue": rows}


COMPARISON = Comparison(
    name="revenue",
    description=(__doc__ or "").splitlines()[0],
    seeds=16,
    jobs=jobs_of,
    play=lambda _: play,
    tables=tables,
    columns={
        "revenue": (
            Column("problem", lambda row: row["problem"]),
            Column("scaled to 0 .. 1, range stated", lambda row: f"{row['scaled']:.2f}"),
            Column('dollars, "auto"', lambda row: f"{row['dollars']:.2f}"),
            Column("ratio", interval),
            Column("seeds", lambda row: str(row["seeds"])),
        )
    },
)


def main() -> None:
    """Make the runs that are missing; write the table if a file is given."""
    parser = COMPARISON.parser()
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    COMPARISON.main(parser.parse_args())


if __name__ == "__main__":
    main()

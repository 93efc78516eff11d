"""Regret of tasks that join a running agent, against agents that start with that task alone.

    python -m benchmarks.joining_tasks --data DATA --json benchmarks/joining_tasks.json

Some tasks play first. Then tasks join one after another, and each plays its rounds before the next
one joins. The regret of the 1st, 10th and 100th is compared with that of a new agent for this
task alone, on the same rounds. Digits have a network, whose new heads are zero; schools
are tables, whose new heads start from the learned prior. DATA has a directory `school`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from benchmarks.paired import Job, by_seed, interval, numbers, ratio
from benchmarks.paired_command import Column, Comparison, Rows
from benchmarks.suite.problems.tables import School

from gfucb import GFUCB
from gfucb.core.protocols import BanditEnvironment
from gfucb.environments import ImageBandit, load_digits

JOINED = (1, 10, 100)


@dataclass(frozen=True)
class Problem:
    """An environment with at least `founders` + 100 tasks."""

    environment: Callable[[int, str], BanditEnvironment]
    founders: int
    founder_rounds: int
    rounds: int


PROBLEMS = {
    "digits": Problem(
        lambda seed, _: ImageBandit(load_digits(), num_tasks=110, num_actions=10, seed=seed),
        founders=10,
        founder_rounds=40,
        rounds=20,
    ),
    "school": Problem(
        lambda seed, data: School(data, seed=seed), founders=39, founder_rounds=20, rounds=20
    ),
}


def play(
    agent: GFUCB, environment: BanditEnvironment, tasks: range, rounds: int, own: range
) -> float:
    """Rounds of tasks of the environment, which the agent numbers `own`; the sum of regret."""
    total, rows = 0.0, torch.tensor(list(tasks))
    for index in range(1, rounds + 1):
        offered = environment.round(index)
        decision = agent.decide(offered.candidates[rows], tasks=list(own))
        every = torch.zeros(environment.num_tasks, dtype=torch.int64)
        every[rows] = decision.actions
        agent.observe(decision, offered.rewards(every)[rows])
        total += float(offered.regrets(every)[rows].sum())
    return total


def measure(job: Job, data: str) -> Mapping[str, Any]:
    """One seed of a problem: regret of the tasks that joined, and of the same tasks alone."""
    problem, seed = PROBLEMS[job["problem"]], job["seed"]
    environment = problem.environment(seed, data)
    agent = GFUCB(problem.founders, seed=seed)
    founders = range(problem.founders)
    play(agent, environment, founders, problem.founder_rounds, founders)
    found: dict[str, float] = {}
    for position in range(1, max(JOINED) + 1):
        task = range(problem.founders + position - 1, problem.founders + position)
        agent.add_tasks()
        regret = play(agent, environment, task, problem.rounds, task)
        if position in JOINED:
            alone = play(GFUCB(1, seed=seed), environment, task, problem.rounds, range(1))
            found |= {f"joined {position}": regret, f"alone {position}": alone}
    return found


def jobs_of(seeds: Sequence[int], choices: argparse.Namespace) -> list[Job]:
    """All problems."""
    return [{"problem": name, "seed": seed} for seed in seeds for name in choices.problems]


def tables(lines: Rows) -> Mapping[str, Rows]:
    """Ratios of tasks that joined to tasks alone over paired seeds."""
    rows = []
    for name in dict.fromkeys(line["job"]["problem"] for line in lines):
        found = by_seed(lines, problem=name)
        for position in JOINED:
            (joined,), (alone,) = (
                numbers(f"{kind} {position}", found) for kind in ("joined", "alone")
            )
            row = {"problem": name, "position": position}
            means = {"joined": np.mean(joined), "alone": np.mean(alone)}
            rows.append(row | means | ratio(joined, alone))
    return {"joining tasks": rows}


COMPARISON = Comparison(
    name="joining_tasks",
    description=(__doc__ or "").splitlines()[0],
    seeds=10,
    jobs=jobs_of,
    play=lambda choices: partial(measure, data=choices.data),
    tables=tables,
    columns={
        "joining tasks": (
            Column("problem", lambda row: row["problem"]),
            Column("task number, of those that join", lambda row: str(row["position"])),
            Column("regret when it joins", lambda row: f"{row['joined']:.2f}"),
            Column("alone", lambda row: f"{row['alone']:.2f}"),
            Column("ratio", interval),
            Column("seeds", lambda row: str(row["seeds"])),
        )
    },
)


def main() -> None:
    """Make the runs that are missing; write the table if a file is given."""
    parser = COMPARISON.parser()
    parser.add_argument("--data", default="data")
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    COMPARISON.main(parser.parse_args())


if __name__ == "__main__":
    main()

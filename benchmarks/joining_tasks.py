"""Regret of tasks that join a running agent, against agents that start with that task alone.

    python -m benchmarks.joining_tasks --data DATA --json benchmarks/joining_tasks.json

Some tasks play first. Then tasks join one after another, and each plays its rounds before the next
one joins. The regret of the 1st, 10th and 100th is compared with that of a new agent for this
task alone, on the same rounds. Digits have a network, whose new heads are zero; schools
are tables, whose new heads start from the learned prior. DATA has a directory `school`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from benchmarks.suite.problems.tables import School

from gfucb import GFUCB
from gfucb.core.protocols import BanditEnvironment
from gfucb.environments import ImageBandit, load_digits
from gfucb.runs.provenance import current_provenance
from gfucb.runs.text_files import write_json

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


@dataclass(frozen=True)
class Joined:
    """The regret of one task in its first rounds, when it joined and alone."""

    problem: str
    seed: int
    position: int
    joined: float
    alone: float


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


def measure(name: str, seed: int, data: str) -> list[Joined]:
    """One seed of a problem."""
    problem = PROBLEMS[name]
    environment = problem.environment(seed, data)
    agent = GFUCB(problem.founders, seed=seed)
    founders = range(problem.founders)
    play(agent, environment, founders, problem.founder_rounds, founders)
    results = []
    for position in range(1, max(JOINED) + 1):
        task = range(problem.founders + position - 1, problem.founders + position)
        agent.add_tasks()
        regret = play(agent, environment, task, problem.rounds, task)
        if position in JOINED:
            alone = play(GFUCB(1, seed=seed), environment, task, problem.rounds, range(1))
            results.append(Joined(name, seed, position, regret, alone))
    return results


def main() -> None:
    """Measure all problems and seeds; print and store the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data")
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=None)
    choices = parser.parse_args()
    torch.set_num_threads(1)
    results: list[Joined] = []
    for name in choices.problems:
        for seed in range(choices.seeds):
            results += measure(name, seed, choices.data)
            print(json.dumps([asdict(result) for result in results[-len(JOINED) :]]), flush=True)
    table = []
    for name in choices.problems:
        for position in JOINED:
            own = [r for r in results if (r.problem, r.position) == (name, position)]
            joined, alone = (
                float(np.mean([getattr(r, n) for r in own])) for n in ("joined", "alone")
            )
            table.append(
                {"problem": name, "position": position, "joined": joined, "alone": alone}
                | {"ratio": joined / alone, "seeds": len(own)}
            )
            print(json.dumps(table[-1]))
    if choices.json is not None:
        runs = [asdict(result) for result in results]
        content = {"table": table, "runs": runs, "provenance": current_provenance()}
        write_json(choices.json, content)


if __name__ == "__main__":
    main()

"""The runs of the benchmark: one job for each problem, contender, scale and seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gfucb.core.records import Row
from gfucb.runs.jobs import Job, run_all, run_jobs
from gfucb.runs.store import is_finished, read_rows

from .contenders import CONTENDERS
from .problems import PROBLEMS
from .solving import solve

FIRST_TUNING_SEED = 2000


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        out: directory of the runs.
        problems: names.
        contenders: names.
        seeds: of the report.
        tuning_seeds: how many, from 2000 on.
        max_episodes: instead of that of each problem.
        scales: of exploration, to tune some of them only; None for all.
    """

    out: Path
    problems: tuple[str, ...]
    contenders: tuple[str, ...]
    seeds: tuple[int, ...]
    tuning_seeds: int = 1
    max_episodes: int | None = None
    scales: tuple[float, ...] | None = None

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Problems with the contenders that can be used in them."""
        return [
            (problem, contender)
            for problem in self.problems
            for contender in self.contenders
            if CONTENDERS[contender].suits(problem)
        ]


def solved_rows(
    problem: str, contender: str, scale: float, seed: int, max_episodes: int | None
) -> list[Row]:
    """Train one contender in one problem."""
    entry, agent_entry = PROBLEMS[problem], CONTENDERS[contender]
    episodes = max_episodes or round(agent_entry.share * entry.budget.max_episodes)
    budget = replace(entry.budget, max_episodes=episodes)
    shown = agent_entry.shown(entry, entry.environment(seed))
    return solve(agent_entry.make(shown, scale, seed), shown, budget)


def job(plan: Plan, problem: str, contender: str, scale: float, seed: int) -> Job:
    """The job of one run."""
    settings = {
        "problem": problem,
        "contender": contender,
        "scale": scale,
        "seed": seed,
        "max_episodes": plan.max_episodes,
    }
    return Job(
        f"{problem}/{contender}/scale={scale:g}/seed={seed}",
        partial(solved_rows, problem, contender, scale, seed, plan.max_episodes),
        settings=settings,
    )


def tuning_jobs(plan: Plan) -> list[Job]:
    """All scales on the tuning seeds, where there is a choice."""
    seeds = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + plan.tuning_seeds)
    return [
        job(plan, problem, contender, scale, seed)
        for problem, contender in plan.pairs
        for scale in _scales(contender)
        for seed in seeds
        if len(_scales(contender)) > 1 and (plan.scales is None or scale in plan.scales)
    ]


def report_jobs(plan: Plan) -> list[Job]:
    """The best scales on the report seeds; those of the tuning must be finished."""
    return [
        job(plan, problem, contender, best_scale(plan, problem, contender), seed)
        for problem, contender in plan.pairs
        for seed in plan.seeds
    ]


def tune(plan: Plan, processes: int) -> None:
    """Compute the missing runs of the tuning."""
    run_jobs(tuning_jobs(plan), plan.out, processes=processes)


def run(plan: Plan, processes: int) -> None:
    """Compute the missing runs: first the tuning, then the report.

    Raises:
        RunDirectoryError: another process is computing a run of the tuning, whose result is needed.
    """
    run_all(tuning_jobs(replace(plan, scales=None)), plan.out, processes=processes)
    run_jobs(report_jobs(plan), plan.out, processes=processes)


def best_scale(plan: Plan, problem: str, contender: str) -> float:
    """The scale that solves a problem first; ties and failures by the return of the end."""
    scales = _scales(contender)
    if len(scales) == 1:
        return scales[0]
    return min(scales, key=lambda scale: _tuning_score(plan, problem, contender, scale))


def _scales(contender: str) -> Sequence[float]:
    return CONTENDERS[contender].scales or (1.0,)


def _tuning_score(plan: Plan, problem: str, contender: str, scale: float) -> tuple[float, float]:
    episodes = returns = 0.0
    for index in range(plan.tuning_seeds):
        one = job(plan, problem, contender, scale, FIRST_TUNING_SEED + index)
        path = plan.out / one.name
        if not is_finished(path):
            return math.inf, 0.0
        last = list(read_rows(path))[-1]
        is_solved = int(last["solved_tasks"]) == PROBLEMS[problem].num_tasks
        episodes += float(last["mean_solved_after"]) if is_solved else math.inf
        returns += float(last["training_return"])
    return episodes, -returns

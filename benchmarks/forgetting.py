"""Regret after a change of the rewards, the price of forgetting, and that of bounded memory.

    python -m benchmarks.forgetting --json benchmarks/forgetting.json

Three problems, one for each default model: digits (network), stores (table) and items (catalogue).
All rewards change after round 200. Regret of the 120 rounds that follow, per task, is compared with
that of a fresh agent that plays only these rounds, for each kind of forgetting; so is that of the
last 30 of them. Without a change, regret of all 320 rounds is compared with that of an agent that
keeps everything; this is also done for a bounded number of samples. The first 200 rounds are played
once: a copy of the agent plays on with the other rewards. `--runs` stores one line per run; the
command continues from there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from benchmarks.paired import Job, by_seed, interval, numbers, ratio
from benchmarks.paired_command import Column, Comparison, Rows
from benchmarks.suite.problems.synthetic import Stores
from benchmarks.suite.problems.variants import Drift

from gfucb import GFUCB
from gfucb.bandits import Discounting, SlidingWindow
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound
from gfucb.environments import ImageBandit, load_digits

CHANGE, AFTER, LATE = 200, 120, 30
NEVER = 10**9
KEEP_ALL, FRESH = "everything", "fresh"
FORGETTING: dict[str, dict[str, Any]] = {
    KEEP_ALL: {},
    "window 100": {"forgetting": SlidingWindow(100)},
    "discounting 100": {"forgetting": Discounting(100)},
    "auto": {"forgetting": "auto"},
}
BOUNDED: dict[str, dict[str, Any]] = {
    f"at most {count}": {"max_samples_per_task": count} for count in (40, 80, 160)
}
PROBLEMS = ("digits", "stores", "items")
AFTER_CHANGE, PRICE = "after a change to fresh", "without a change to everything"


class Items:
    """A catalogue: values of items have a low rank over tasks; later they are other ones."""

    num_tasks, num_items, num_offered, rank, noise_scale = 20, 40, 10, 3, 0.1

    def __init__(self, *, drift_at: int, seed: int) -> None:
        self.seed, self.drift_at = seed, drift_at
        generator = random_stream(seed, "truth")
        self.values = [self._draw(generator) for _ in range(2)]

    def _draw(self, generator: torch.Generator) -> torch.Tensor:
        shapes = ((self.num_tasks, self.rank), (self.rank, self.num_items), (1, self.num_items))
        left, right, mean = (torch.randn(s, generator=generator).double() for s in shapes)
        return torch.sigmoid(0.7 * mean + left @ right / self.rank**0.5)

    def round(self, round_index: int) -> BanditRound:
        """Ten random items for each task."""
        generator = random_stream(self.seed, "round", round_index)
        draws = torch.rand(self.num_tasks, self.num_items, generator=generator)
        items = draws.argsort(1)[:, : self.num_offered]
        noise = torch.randn(self.num_tasks, generator=generator).double()
        means = self.values[int(round_index > self.drift_at)].gather(1, items)
        return BanditRound(items, means, self.noise_scale * noise, means[:, :, None])


def environment(job: Job, change: int) -> Drift | Stores | Items:
    """The problem of a job with this last round before the change."""
    seed = job["seed"]
    if job["problem"] == "stores":
        return Stores(num_tasks=20, drift_at=change, seed=seed)
    if job["problem"] == "items":
        return Items(drift_at=change, seed=seed)
    bandit = ImageBandit(
        load_digits(), num_tasks=10, reward_map="uniform", noise_scale=0.1, seed=seed
    )
    return Drift(bandit, at=change)


def play(job: Job) -> Mapping[str, Any]:
    """The regret of a job, per task: before the change, after it, and without it."""
    start = time.process_time()
    setting = job["setting"]
    changed, same = (environment(job, change) for change in (CHANGE, NEVER))
    options = (FORGETTING | BOUNDED).get(setting, {})
    agent = GFUCB(changed.num_tasks, seed=job["seed"], value_range=(0.0, 1.0), **options)
    found: dict[str, Any] = {}
    later = range(CHANGE + 1, CHANGE + AFTER + 1)
    if setting != FRESH:
        found["before"] = sum(regrets(agent, same, range(1, CHANGE + 1)))
    if setting not in BOUNDED:
        after = regrets(agent.snapshot(), changed, later)
        found |= {"after": sum(after), "late": sum(after[-LATE:])}
    if setting != FRESH:
        found["all"] = found["before"] + sum(regrets(agent, same, later))
        found["kept"] = len(agent.state()["data.tasks"]) / changed.num_tasks
    return found | {"cpu_seconds": round(time.process_time() - start, 1)}


def regrets(agent: GFUCB, problem: Drift | Stores | Items, rounds: range) -> list[float]:
    """Play some rounds; the mean regret of the tasks in each."""
    found = []
    for index in rounds:
        offered = problem.round(index)
        decision = agent.decide(offered.candidates)
        agent.observe(decision, offered.rewards(decision.actions))
        found.append(float(offered.regrets(decision.actions).mean()))
    return found


def jobs_of(seeds: Sequence[int], choices: argparse.Namespace) -> list[Job]:
    """All runs, those of the first seeds first."""
    return [
        {"problem": problem, "seed": seed, "setting": setting}
        for seed in seeds
        for problem in choices.problems
        for setting in choices.settings
    ]


def tables(lines: Rows) -> Mapping[str, Rows]:
    """Ratios over paired seeds: after a change to a fresh agent, without one to keeping all."""
    rows: dict[str, Rows] = {AFTER_CHANGE: [], PRICE: []}
    jobs = dict.fromkeys((line["job"]["problem"], line["job"]["setting"]) for line in lines)
    for problem, setting in jobs:
        own, fresh, everything = (
            by_seed(lines, problem=problem, setting=name) for name in (setting, FRESH, KEEP_ALL)
        )
        row = {"problem": problem, "setting": setting}
        if setting in FORGETTING and own.keys() & fresh.keys():
            after, late = (numbers(name, own, fresh) for name in ("after", "late"))
            means = {"regret": np.mean(after[0]), "late": ratio(*late)}
            rows[AFTER_CHANGE].append(row | means | ratio(*after))
        if setting != FRESH and own.keys() & everything.keys():
            total, kept = (numbers(name, own, everything) for name in ("all", "kept"))
            means = {"regret": np.mean(total[0]), "samples_per_task": np.mean(kept[0])}
            rows[PRICE].append(row | means | ratio(*total))
    return rows


FIRST_COLUMNS = (
    Column("problem", lambda row: row["problem"]),
    Column("setting", lambda row: row["setting"]),
    Column("regret per task", lambda row: f"{row['regret']:.2f}"),
)
SEEDS = Column("seeds", lambda row: str(row["seeds"]))
COMPARISON = Comparison(
    name="forgetting",
    description=(__doc__ or "").splitlines()[0],
    seeds=10,
    jobs=jobs_of,
    play=lambda _: play,
    tables=tables,
    columns={
        AFTER_CHANGE: (
            *FIRST_COLUMNS,
            Column("relative to a fresh agent", interval),
            Column("the same, last 30 rounds", lambda row: interval(row["late"])),
            SEEDS,
        ),
        PRICE: (
            *FIRST_COLUMNS,
            Column("relative to keeping everything", interval),
            Column("samples per task at the end", lambda row: f"{row['samples_per_task']:.0f}"),
            SEEDS,
        ),
    },
)


def main() -> None:
    """Make the runs that are missing; write the tables if a file is given."""
    parser = COMPARISON.parser()
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--settings", nargs="*", default=[*FORGETTING, FRESH, *BOUNDED])
    COMPARISON.main(parser.parse_args())


if __name__ == "__main__":
    main()

"""Regret after a change of the rewards, the price of forgetting, and that of bounded memory.

    python -m benchmarks.forgetting --runs runs/forgetting.jsonl --json benchmarks/forgetting.json

Three problems, one for each default model: digits (network), stores (table) and items (catalogue).
All rewards change after round 200. Regret of the 120 rounds that follow, per task, is compared with
that of a fresh agent that plays only these rounds, for each kind of forgetting. Without a change,
regret of all 320 rounds is compared with that of an agent that keeps everything; this is also done
for a bounded number of samples. `--runs` stores one line per run; the command continues from there.

Runs need torch, numpy and scipy, and for digits scikit-learn or a file that `--save-digits` wrote:

    python -m benchmarks.forgetting --save-digits digits.npz
    python -m benchmarks.forgetting --digits digits.npz --runs OUT/forgetting.jsonl --processes 16
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.paired import Job, interval, make_runs, ratio, stored_runs, write_table
from benchmarks.suite.problems.synthetic import Stores
from benchmarks.suite.problems.variants import Drift

from gfucb import GFUCB
from gfucb.bandits import Discounting, SlidingWindow
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound
from gfucb.environments import ImageBandit, LabelledImages, load_digits

CHANGE, AFTER = 200, 120
NEVER = 10**9
SETTINGS: dict[str, dict[str, Any]] = {
    "everything": {},
    "window 100": {"forgetting": SlidingWindow(100)},
    "discounting 100": {"forgetting": Discounting(100)},
    "auto": {"forgetting": "auto"},
    "at most 40": {"max_samples_per_task": 40},
    "at most 80": {"max_samples_per_task": 80},
    "at most 160": {"max_samples_per_task": 160},
}
FORGETTING = ("everything", "window 100", "discounting 100", "auto")
FRESH = "fresh"
PROBLEMS = ("digits", "stores", "items")


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


def environment(job: Job, change: int, digits: str | None) -> Drift | Stores | Items:
    """The problem of a job with this last round before the change."""
    seed = job["seed"]
    if job["problem"] == "stores":
        return Stores(num_tasks=20, drift_at=change, seed=seed)
    if job["problem"] == "items":
        return Items(drift_at=change, seed=seed)
    images = _images(digits) if digits else load_digits()
    bandit = ImageBandit(images, num_tasks=10, reward_map="uniform", noise_scale=0.1, seed=seed)
    return Drift(bandit, at=change)


def _images(path: str) -> LabelledImages:
    with np.load(path) as stored:
        return LabelledImages(*(torch.from_numpy(stored[name]) for name in ("images", "labels")))


def play(job: Job, digits: str | None = None) -> Mapping[str, Any]:
    """The regret of a job before and after the change, per task, and what it took."""
    start = time.process_time()
    problem = environment(job, CHANGE if job["changes"] else NEVER, digits)
    first = CHANGE + 1 if job["setting"] == FRESH else 1
    settings = SETTINGS.get(job["setting"], {})
    agent = GFUCB(problem.num_tasks, seed=job["seed"], value_range=(0.0, 1.0), **settings)
    before = after = 0.0
    for index in range(first, CHANGE + AFTER + 1):
        offered = problem.round(index)
        decision = agent.decide(offered.candidates)
        agent.observe(decision, offered.rewards(decision.actions))
        regret = float(offered.regrets(decision.actions).mean())
        before, after = (before + regret, after) if index <= CHANGE else (before, after + regret)
    kept = len(agent.state()["data.tasks"]) / problem.num_tasks
    seconds = time.process_time() - start
    return {"before": before, "after": after, "kept": kept, "cpu_seconds": round(seconds, 1)}


def jobs_of(problems: list[str], seeds: list[int]) -> list[Job]:
    """All runs, those that take long first."""
    jobs: list[Job] = []
    for seed in seeds:
        for problem in problems:
            base: Job = {"problem": problem, "seed": seed}
            for setting in (*FORGETTING, FRESH):
                jobs.append({**base, "setting": setting, "changes": True})
            jobs += [{**base, "setting": setting, "changes": False} for setting in SETTINGS]
    return jobs


def tables(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Ratios over paired seeds: after a change to a fresh agent, without one to keeping all."""
    found = {
        (j["problem"], j["setting"], j["changes"], j["seed"]): line["result"]
        for line in lines
        for j in [line["job"]]
    }
    rows: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for problem, setting, changes, _ in dict.fromkeys((*key[:3], None) for key in found):
        reference = FRESH if changes else "everything"
        seeds = [
            key[3]
            for key in sorted(found)
            if key[:3] == (problem, setting, changes)
            and (problem, reference, changes, key[3]) in found
        ]
        if setting == FRESH or not seeds:
            continue
        own, others = (
            [_regret(found[problem, name, changes, seed], changes) for seed in seeds]
            for name in (setting, reference)
        )
        kept = [found[problem, setting, changes, seed]["kept"] for seed in seeds]
        row = {"problem": problem, "setting": setting, "regret": float(np.mean(own))}
        rows[changes].append(row | ratio(own, others) | {"samples_per_task": float(np.mean(kept))})
    return {"after_a_change_to_fresh": rows[True], "without_a_change_to_everything": rows[False]}


def _regret(result: Mapping[str, float], changes: bool) -> float:
    return result["after"] if changes else result["before"] + result["after"]


def main() -> None:
    """Make the runs that are missing; write the tables if a file is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=8, help="this many, from --first-seed on")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--settings", nargs="*", default=None, help="some of them; by default all")
    parser.add_argument("--only-stored", action="store_true", help="tables of all stored runs")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--digits", default=None, help="file with images and labels")
    parser.add_argument("--save-digits", type=Path, default=None)
    parser.add_argument("--runs", type=Path, default=Path("runs/forgetting.jsonl"))
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--page", type=Path, default=None, help="document to write tables to")
    choices = parser.parse_args()
    if choices.save_digits is not None:
        images = load_digits()
        np.savez(choices.save_digits, images=images.images.numpy(), labels=images.labels.numpy())
        return
    seeds = list(range(choices.first_seed, choices.first_seed + choices.seeds))
    jobs = jobs_of(choices.problems, seeds)
    if choices.settings:
        wanted = set(choices.settings)
        jobs = [job for job in jobs if job["setting"] in wanted]
    if choices.only_stored:
        lines = stored_runs(choices.runs)
    else:
        play_job = partial(play, digits=choices.digits)
        lines = make_runs(play_job, jobs, choices.runs, choices.processes)
    content = tables(lines)
    for row in (row for table in content.values() for row in table):
        print(row)
    if choices.json is not None:
        from gfucb.runs.provenance import current_provenance
        from gfucb.runs.text_files import write_json

        write_json(choices.json, content | {"runs": lines, "provenance": current_provenance()})
    if choices.page is not None:
        for name, rows in markdown(content).items():
            write_table(choices.page, name, rows)


def markdown(content: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[list[str]]]:
    """The tables of a page, by name."""
    found = {}
    heads = ("relative to a fresh agent", "relative to keeping everything")
    for (name, rows), title in zip(content.items(), heads, strict=True):
        head = ["problem", "setting", "regret per task", title, "seeds"]
        table = [head]
        for row in rows:
            cells = [row["problem"], row["setting"], f"{row['regret']:.2f}", interval(row)]
            table.append([*cells, str(row["seeds"])])
        found[name.replace("_", " ")] = table
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main()

"""Regret of fits in the background relative to inline fits, at several rates of requests.

    python -m benchmarks.background_regret --runs OUT/background.jsonl --processes 16

The problem is that of `serving_latency.py`: 500 tasks, 5 actions, 20 features, one random task at
a time. A fit in the background begins when it is due and is used when it is ready; rewards that
arrive meanwhile are applied to it. Here nobody waits: a fit that takes s seconds of one core is
used after s times the rate further decisions. Seconds are measured in each run, and are a little
longer if other programs share the caches. The goal is regret within 5% of inline
fits on the same seeds.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from benchmarks.paired import Job, interval, make_runs, ratio, write_table
from benchmarks.serving_latency import GOAL_REGRET, TASKS, Stores

from gfucb import GFUCB, Decision
from gfucb.serving.live_model import LiveModel

INLINE = 0.0
# Requests per second. A service with 500 tasks that each decide once a minute has 8.
RATES = (2.0, 8.0, 50.0)


class Observed:
    """The reward of a decision as an operation of `LiveModel`."""

    def __init__(self, decision: Decision, reward: float, *, is_inline: bool) -> None:
        self.decision, self.reward, self.is_inline = decision, reward, is_inline

    def apply(self, agent: GFUCB) -> None:
        """Learn; with fits that are due, or without."""
        agent.learner.defers_fits = agent.learner.defers_first_fit = not self.is_inline
        agent.observe(self.decision, [self.reward])


def play(job: Job) -> Mapping[str, Any]:
    """Serve the decisions of a job; its regret, and how long fits took."""
    stores, regret, rate = Stores(job["seed"]), 0.0, job["rate"]
    model = LiveModel(GFUCB(TASKS, seed=job["seed"]))
    fit, ready_at, seconds = None, math.inf, [0.0]
    for index in range(job["decisions"]):
        if fit is not None and index >= ready_at:
            model.end_fit(fit)
            fit = None
        task, candidates = stores.request()
        means = stores.means(task, candidates)
        decision = model.agent.decide(candidates, tasks=[task])
        action = int(decision.actions[0])
        reward = float(means[action]) + stores.noise()
        operation = Observed(decision, reward, is_inline=rate == INLINE)
        operation.apply(model.agent)
        model.keep(operation)
        regret += float(means.max() - means[action])
        if rate != INLINE and fit is None and model.agent.learner.is_fit_due:
            fit = model.begin_fit()
            start = time.thread_time()
            fit.run()
            seconds.append(time.thread_time() - start)
            ready_at = index + 1 + math.ceil(rate * seconds[-1])
    fits = model.agent.learner.num_fits
    return {"regret": regret, "fits": fits, "longest_fit": round(max(seconds), 2)}


def table(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ratios to inline fits over paired seeds, for each rate."""
    found = {(line["job"]["rate"], line["job"]["seed"]): line["result"] for line in lines}
    seeds = sorted({seed for _, seed in found})
    inline = [found[INLINE, seed]["regret"] for seed in seeds]
    rows = []
    for rate in sorted({rate for rate, _ in found} - {INLINE}):
        own = [found[rate, seed] for seed in seeds]
        measured = ratio([run["regret"] for run in own], inline)
        longest = max(run["longest_fit"] for run in own)
        rows.append({"rate": rate, **measured, "goal": GOAL_REGRET, "longest_fit": longest})
    return rows


def main() -> None:
    """Make the runs that are missing; write the table if a file is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--decisions", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--runs", type=Path, default=Path("runs/background_regret.jsonl"))
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--page", type=Path, default=None, help="document to write the table to")
    choices = parser.parse_args()
    jobs: list[Job] = [
        {"seed": seed, "rate": rate, "decisions": choices.decisions}
        for seed in range(choices.seeds)
        for rate in (INLINE, *RATES)
    ]
    lines = make_runs(play, jobs, choices.runs, choices.processes)
    rows = table(lines)
    print(*rows, sep="\n")
    if choices.json is not None:
        from gfucb.runs.provenance import current_provenance
        from gfucb.runs.text_files import write_json

        content = {"table": rows, "runs": lines, "provenance": current_provenance()}
        write_json(choices.json, content)
    if choices.page is not None:
        write_table(choices.page, "background regret", markdown(rows))


def markdown(rows: list[dict[str, Any]]) -> list[list[str]]:
    """The table of a page."""
    head = ["requests per second", "regret relative to inline fits", "longest fit", "seeds"]
    cells = [
        [f"{row['rate']:g}", interval(row), f"{row['longest_fit']:.1f} s", str(row["seeds"])]
        for row in rows
    ]
    return [head, *cells]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    torch.set_num_threads(1)
    main()

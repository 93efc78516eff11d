"""Regret of fits in the background relative to inline fits, at several rates of requests.

    python -m benchmarks.background_regret --processes 16 --json benchmarks/background_regret.json

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
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from benchmarks.paired import Job, by_seed, interval, numbers, ratio
from benchmarks.paired_command import Column, Comparison, Rows
from benchmarks.serving_latency import GOAL_REGRET, Stores

from gfucb import GFUCB, Decision
from gfucb.serving.live_model import LiveModel
from gfucb.serving.operations import GrowTo, Operation
from gfucb.serving.task_numbers import TaskNumbers

INLINE = 0.0
# Requests per second. A service with 500 tasks that each decide once a minute has 8.
RATES = (8.0, 50.0, 200.0)


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
    model, numbers = LiveModel(GFUCB(1, seed=job["seed"])), TaskNumbers()
    fit, ready_at, seconds = None, math.inf, [0.0]
    for index in range(job["decisions"]):
        if fit is not None and index >= ready_at:
            model.end_fit(fit)
            fit = None
        task, candidates = stores.request()
        means = stores.means(task, candidates)
        own = numbers.of([task])  # as in `Agent`: with its first reward a task joins the model
        numbers.add([task])
        _change(model, GrowTo(own[0] + 1))
        decision = model.agent.decide(candidates, tasks=own)
        action = int(decision.actions[0])
        reward = float(means[action]) + stores.noise()
        _change(model, Observed(decision, reward, is_inline=rate == INLINE))
        regret += float(means.max() - means[action])
        if rate != INLINE and fit is None and model.agent.learner.is_fit_due:
            fit = model.begin_fit()
            start = time.thread_time()
            fit.run(only_due=True)
            seconds.append(time.thread_time() - start)
            ready_at = index + 1 + math.ceil(rate * seconds[-1])
    fits = model.agent.learner.num_fits
    return {"regret": regret, "fits": fits, "longest_fit": round(max(seconds), 2)}


def _change(model: LiveModel, operation: Operation) -> None:
    operation.apply(model.agent)
    model.keep(operation)


def jobs_of(seeds: Sequence[int], choices: argparse.Namespace) -> list[Job]:
    """Inline fits, and all rates."""
    return [
        {"seed": seed, "rate": rate, "decisions": choices.decisions}
        for seed in seeds
        for rate in (INLINE, *choices.rates)
    ]


def tables(lines: Rows) -> Mapping[str, Rows]:
    """Ratios to inline fits over paired seeds, for each rate."""
    rows, inline = [], by_seed(lines, rate=INLINE)
    for rate in sorted({line["job"]["rate"] for line in lines} - {INLINE}):
        own = by_seed(lines, rate=rate)
        regrets = numbers("regret", own, inline)
        longest, fits = (numbers(name, own, inline)[0] for name in ("longest_fit", "fits"))
        row = {"rate": rate, **ratio(*regrets), "goal": GOAL_REGRET}
        rows.append(row | {"longest_fit": max(longest), "fits": np.mean(fits)})
    return {"background regret": rows}


COMPARISON = Comparison(
    name="background_regret",
    description=(__doc__ or "").splitlines()[0],
    seeds=20,
    jobs=jobs_of,
    play=lambda _: play,
    tables=tables,
    columns={
        "background regret": (
            Column("requests per second", lambda row: f"{row['rate']:g}"),
            Column("regret relative to inline fits", interval),
            Column("fits", lambda row: f"{row['fits']:.0f}"),
            Column("longest fit", lambda row: f"{row['longest_fit']:.1f} s"),
            Column("seeds", lambda row: str(row["seeds"])),
        )
    },
)


def main() -> None:
    """Make the runs that are missing; write the table if a file is given."""
    parser = COMPARISON.parser()
    parser.add_argument("--decisions", type=int, default=2000)
    parser.add_argument("--rates", type=float, nargs="*", default=list(RATES))
    COMPARISON.main(parser.parse_args())


if __name__ == "__main__":
    main()

"""Latency of decisions and rewards while a model is fitted, and what fits in the background cost.

    python benchmarks/serving_latency.py --json benchmarks/serving_latency.json

500 tasks, 5 actions with 20 features each, a log on the disk. A client decides for one random task
at a time and rewards the decision at once, without pauses. Times are those of `Agent.decide` and
`Agent.observe`, with the sync of the log to the disk. The goal is a 99th percentile below 50 ms
during fits in the background on 2 cores, and regret within 5% of inline fits on the same seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gfucb import Agent
from gfucb.core.random import random_stream

TASKS, ACTIONS, FEATURES, TRUE_FEATURES, NOISE = 500, 5, 20, 3, 0.1
GOAL_MS, GOAL_REGRET = 50.0, 1.05
Refit = Literal["inline", "background"]


class Stores:
    """Tasks whose rewards share a nonlinear representation of the candidates."""

    def __init__(self, seed: int) -> None:
        draws = random_stream(seed, "serving latency")
        options: dict[str, Any] = {"generator": draws, "dtype": torch.float64}
        self._weights = torch.randn(FEATURES, TRUE_FEATURES, **options) / FEATURES**0.5
        self._heads = torch.randn(TASKS, TRUE_FEATURES, **options)
        self._options = options

    def request(self) -> tuple[int, Tensor]:
        """A random task and its candidates [1, action, feature]."""
        task = int(torch.randint(TASKS, (), generator=self._options["generator"]))
        return task, torch.rand(1, ACTIONS, FEATURES, **self._options)

    def means(self, task: int, candidates: Tensor) -> Tensor:
        """The mean rewards of all actions."""
        return torch.tanh(candidates[0] @ self._weights) @ self._heads[task]

    def noise(self) -> float:
        """Of one reward."""
        return NOISE * float(torch.randn((), **self._options))


@dataclass(frozen=True)
class Run:
    """One run: percentiles of latencies in milliseconds, all and during fits, and regret."""

    refit: str
    seed: int
    calls: int
    calls_during_fits: int
    p50: float
    p99: float
    p99_during_fits: float | None
    largest: float
    fits: int
    regret: float
    seconds: float


def run(refit: Refit, seed: int, decisions: int, directory: Path) -> Run:
    """Serve so many decisions."""
    stores, regret = Stores(seed), 0.0
    times: list[float] = []
    during: list[bool] = []
    start = time.perf_counter()
    log = directory / f"{refit} {seed}"
    with Agent(log=log, refit=refit, tasks=range(TASKS), seed=seed) as agent:
        for _ in range(decisions):
            task, candidates = stores.request()
            means = stores.means(task, candidates)
            before = time.perf_counter()
            is_fitting = agent.is_fitting
            decision = agent.decide(candidates, tasks=[task])
            decided = time.perf_counter()
            action = int(decision.actions[0])
            reward = float(means[action]) + stores.noise()
            observing = time.perf_counter()
            agent.observe(decision, [reward])
            observed = time.perf_counter()
            times += [1e3 * (decided - before), 1e3 * (observed - observing)]
            during += [is_fitting or agent.is_fitting] * 2
            regret += float(means.max() - means[action])
        seconds = time.perf_counter() - start
        fits = agent.model.learner.num_fits
    selected = np.array(times)[np.array(during)]
    return Run(
        refit,
        seed,
        len(times),
        len(selected),
        float(np.percentile(times, 50)),
        float(np.percentile(times, 99)),
        float(np.percentile(selected, 99)) if len(selected) else None,
        max(times),
        fits,
        regret,
        seconds,
    )


def main() -> None:
    """Run both ways to fit on all seeds; print and store the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=int, default=2000)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--json", type=Path, default=None)
    choices = parser.parse_args()
    runs: list[Run] = []
    modes: tuple[Refit, ...] = ("background", "inline")
    with tempfile.TemporaryDirectory() as directory:
        for seed in choices.seeds:
            for refit in modes:
                runs.append(run(refit, seed, choices.decisions, Path(directory)))
                print(json.dumps(asdict(runs[-1])), flush=True)
    regret = {mode: sum(r.regret for r in runs if r.refit == mode) for mode in modes}
    worst = max(r.p99_during_fits or 0.0 for r in runs if r.refit == "background")
    result = {
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
        "p99_during_fits": worst,
        "goal_ms": GOAL_MS,
        "regret_ratio": regret["background"] / regret["inline"],
        "goal_regret": GOAL_REGRET,
        "runs": [asdict(r) for r in runs],
    }
    summary = {name: value for name, value in result.items() if name != "runs"}
    print(json.dumps(summary, indent=2))
    if choices.json is not None:
        choices.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

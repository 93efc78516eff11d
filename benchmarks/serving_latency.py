"""Latency of decisions and rewards while a model is fitted, and what fits in the background cost.

    python -m benchmarks.serving_latency --json benchmarks/serving_latency.json

500 tasks, 5 actions with 20 features each, a log on the disk. A client decides for one random task
at a time and rewards the decision at once: without pauses, or 50 times per second. Times are those
of `Agent.decide` and `Agent.observe`, with the sync of the log to the disk. The goal is a 99th
percentile below 50 ms during fits in the background on 2 cores, and regret within 5% of inline fits
on the same seeds. The more decisions are made during a fit, the more of them use the fit before:
`background_regret.py` measures what this costs without waiting.
A repeated command computes what is missing in the JSON file; `--add` takes runs of other files.
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
from benchmarks.paired import interval, ratio, write_table
from torch import Tensor

from gfucb import Agent
from gfucb.core.random import random_stream

TASKS, ACTIONS, FEATURES, TRUE_FEATURES, NOISE = 500, 5, 20, 3, 0.1
GOAL_MS, GOAL_REGRET = 50.0, 1.05
Refit = Literal["inline", "background"]
# How to fit, and requests per second; 0 is without pauses.
MODES: tuple[tuple[Refit, float], ...] = (
    ("background", 0.0),
    ("background", 50.0),
    ("inline", 0.0),
)


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
    rate: float
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


def run(refit: Refit, rate: float, seed: int, decisions: int, directory: Path) -> Run:
    """Serve so many decisions, at this rate."""
    stores, regret = Stores(seed), 0.0
    times: list[float] = []
    during: list[bool] = []
    start = time.perf_counter()
    log = directory / f"{refit} {rate} {seed}"
    with Agent(log=log, refit=refit, tasks=range(TASKS), seed=seed) as agent:
        for index in range(decisions):
            if rate:
                time.sleep(max(0.0, start + index / rate - time.perf_counter()))
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
        rate,
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
    parser.add_argument("--refits", nargs="*", default=["background", "inline"])
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--add", type=Path, nargs="*", default=[], help="other JSON files")
    parser.add_argument("--page", type=Path, default=None, help="document to write the table to")
    choices = parser.parse_args()
    files = [choices.json, *choices.add]
    runs = [Run(**row) for path in files for row in stored_rows(path)]
    done = {(r.refit, r.rate, r.seed, r.calls) for r in runs}
    modes = [(refit, rate) for refit, rate in MODES if refit in choices.refits]
    with tempfile.TemporaryDirectory() as directory:
        for seed in choices.seeds:
            for refit, rate in modes:
                if (refit, rate, seed, 2 * choices.decisions) in done:
                    continue
                runs.append(run(refit, rate, seed, choices.decisions, Path(directory)))
                print(json.dumps(asdict(runs[-1])), flush=True)
                if choices.json is not None:
                    store(choices.json, runs)
    print(json.dumps(summary(runs), indent=2))
    if choices.add and choices.json is not None:
        store(choices.json, runs)
    if choices.page is not None:
        write_table(choices.page, "serving latency", cells(runs))


def store(path: Path, runs: list[Run]) -> None:
    """Write all runs so far."""
    from gfucb.runs.provenance import current_provenance
    from gfucb.runs.text_files import write_json

    content = {"runs": [asdict(r) for r in runs], "provenance": current_provenance()}
    write_json(path, summary(runs) | content)


def cells(runs: list[Run]) -> list[list[str]]:
    """The table of a document: the largest numbers over all seeds, in milliseconds."""
    titles = ["median", "99th percentile", "during fits", "regret relative to inline", "seeds"]
    rows, found = [["fits", "requests per second", *titles]], regret_ratios(runs)
    for refit, rate in MODES:
        own = [r for r in runs if (r.refit, r.rate) == (refit, rate)]
        if not own:
            continue
        during = [r.p99_during_fits for r in own if r.p99_during_fits is not None]
        numbers = [max(r.p50 for r in own), max(r.p99 for r in own)]
        shown = [f"{number:.1f} ms" for number in numbers]
        shown.append(f"{max(during):.1f} ms" if during else "")
        shown.append(interval(found[rate]) if refit == "background" and rate in found else "")
        rows.append([refit, f"{rate:g}" if rate else "without pauses", *shown, str(len(own))])
    return rows


def stored_rows(path: Path | None) -> list[dict[str, Any]]:
    """The runs in a JSON file."""
    if path is None or not path.exists():
        return []
    rows: list[dict[str, Any]] = json.loads(path.read_text())["runs"]
    return rows


def summary(runs: list[Run]) -> dict[str, Any]:
    """The largest percentile during fits, and the ratios of regret to inline fits."""
    background = [r for r in runs if r.refit == "background"]
    return {
        "cores": cores(),
        "threads": torch.get_num_threads(),
        "p99_during_fits": max((r.p99_during_fits or 0.0 for r in background), default=None),
        "goal_ms": GOAL_MS,
        "regret_ratio_by_rate": {str(rate): row for rate, row in regret_ratios(runs).items()},
        "goal_regret": GOAL_REGRET,
    }


def cores() -> int | None:
    """How many this process may use: `taskset` can give it fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def regret_ratios(runs: list[Run]) -> dict[float, dict[str, Any]]:
    """Regret of fits in the background relative to inline fits on the same seeds, by rate."""
    inline = {r.seed: r.regret for r in runs if r.refit == "inline"}
    found: dict[float, dict[str, Any]] = {}
    for rate in sorted({r.rate for r in runs if r.refit == "background"}):
        own = {r.seed: r.regret for r in runs if (r.refit, r.rate) == ("background", rate)}
        seeds = sorted(own.keys() & inline.keys())
        if seeds:
            found[rate] = ratio([own[seed] for seed in seeds], [inline[seed] for seed in seeds])
    return found


if __name__ == "__main__":
    main()

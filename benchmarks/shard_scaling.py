"""Weak and strong scaling of one agent in several processes of one machine.

    python -m benchmarks.shard_scaling --json benchmarks/shard_scaling.json

Weak scaling: 1,000 tasks and a batch of 1,024 samples for each shard. Strong scaling: 4,000 tasks
and batches of 4,096 samples, divided among the shards. The data are synthetic: 16 columns, 10
actions, 20 samples for each task. The network is the default one, with 128 features. Each process
has one thread. Measured are the time of a fit of phi, and that of a round in which every task
decides (the joint choice) and gets a reward. A round or a fit ends when the last shard has ended.
Efficiency of weak scaling is the time of one shard divided by that of S shards; of strong scaling,
the same divided by S.

The clock of a core falls when other cores work, so the time of one shard alone is not what S
processes on one machine could reach. The kind "independent" measures that: S agents of one shard
each, of the size of weak scaling, at the same time and without exchanges. The time of independent
agents divided by that of one agent in as many shards is the efficiency under equal load: what it
costs that shards are one agent.

The first fit and the first round of a case are not counted. Exchanges are counted. Small and large
ones are timed by themselves, and so are two fixed pieces of work that all shards do at once and
that show how much shards on one machine slow each other down: one of steps of a fit and of systems
of linear equations, and one of products of small matrices, which need no memory outside of a core's
cache. `shard_plan.py` predicts from these. It needs torch, numpy, scipy and safetensors only. The
file is written after each case.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from benchmarks.counted_shards import CountedShards
from benchmarks.machine import provenance
from benchmarks.process_groups import join_all
from torch import Tensor

from gfucb import GFUCB
from gfucb.core.linalg import ridge_cholesky
from gfucb.core.memory import keep_more_freed_memory
from gfucb.core.shards import ONE_SHARD, Shards
from gfucb.distributed import Shard, connected, meeting_address
from gfucb.estimation.profile import trainable_copy
from gfucb.estimation.variable_projection import VariableProjection
from gfucb.models.network_classes import DefaultNetworkClass

COLUMNS, ACTIONS, SAMPLES, TRUE_FEATURES = 16, 10, 20, 4
WEAK_TASKS, STRONG_TASKS, BATCH = 1000, 4000, 1024
KINDS = ("weak", "independent", "strong")
GOAL, WORK_TASKS, WORK_STEPS, PRODUCTS = 0.7, 100, 4, 300


@dataclass(frozen=True)
class Case:
    """One number of shards.

    Attributes:
        kind: "weak", "strong" or "independent".
        shards: their number; of independent agents, that of the agents.
        tasks: of each shard.
        batch_size: samples in a step of a fit, of all shards together.
        rounds: how many are timed.
        fits: how many are timed.
        exchange: "memory" or "sockets".
    """

    kind: str
    shards: int
    tasks: int
    batch_size: int
    rounds: int
    fits: int
    exchange: str = "memory"


@dataclass
class Times:
    """Seconds of one shard, and what it exchanged, for each fit and each round."""

    fits: list[float] = field(default_factory=list)
    rounds: list[float] = field(default_factory=list)
    fit_exchanges: list[dict[str, float]] = field(default_factory=list)
    round_exchanges: list[dict[str, float]] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    sums: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    products: list[float] = field(default_factory=list)
    gradient_bytes: int = 0
    memory: int = 0


class Problem:
    """Rewards of one shard's tasks, which share a nonlinear representation."""

    def __init__(self, index: int, num_tasks: int) -> None:
        self.draws = torch.Generator().manual_seed(1000 + index)
        shared = torch.Generator().manual_seed(0)
        self.basis = torch.randn(COLUMNS, TRUE_FEATURES, generator=shared)
        self.heads = torch.randn(num_tasks, TRUE_FEATURES, generator=self.draws)

    def inputs(self, *shape: int) -> Tensor:
        """Random inputs [*shape, column]."""
        return torch.randn(*shape, COLUMNS, generator=self.draws)

    def rewards(self, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Noisy rewards of inputs [n, column] for tasks [n]."""
        noise = 0.1 * torch.randn(len(tasks), generator=self.draws)
        return (((inputs @ self.basis).tanh() * self.heads[tasks]).sum(1) + noise).double()


def run_shard(case: Case, address: str, index: int, path: str) -> None:
    """Measure one shard, and write its times to a file."""
    torch.set_num_threads(1)
    keep_more_freed_memory()
    with connected(address, index=index, count=case.shards) as processes:
        times = _measured(case, processes)
    Path(path).write_text(json.dumps(asdict(times)))


def _measured(case: Case, processes: Shards) -> Times:
    is_one_agent = case.kind != "independent"
    shards, times = CountedShards(processes if is_one_agent else ONE_SHARD), Times()
    problem = Problem(processes.index, case.tasks)
    agent = GFUCB(
        case.tasks,
        DefaultNetworkClass(),
        seed=0,
        fit=VariableProjection(batch_size=case.batch_size),
        refit_growth=float("inf"),
        self_supervision=None,
    )
    shard = Shard(agent, shards)
    learner = agent.network_learner
    tasks = torch.arange(case.tasks).repeat(SAMPLES)
    inputs = problem.inputs(len(tasks))
    learner.learn(
        tasks[: case.tasks], inputs[: case.tasks], problem.rewards(inputs, tasks)[: case.tasks]
    )
    later = slice(case.tasks, None)
    learner.learn(tasks[later], inputs[later], problem.rewards(inputs[later], tasks[later]))
    shards.taken()
    for _ in range(case.fits + 1):
        times.fits.append(_seconds(processes, agent.refit))
        times.fit_exchanges.append(shards.taken())
    every = torch.arange(case.tasks)
    for _ in range(case.rounds + 1):
        candidates = problem.inputs(case.tasks, ACTIONS)
        one_round = functools.partial(play, shard, problem, candidates, every)
        times.rounds.append(_seconds(processes, one_round))
        times.round_exchanges.append(shards.taken())
    del times.fits[0], times.fit_exchanges[0]  # the first ones load libraries and ask for memory
    del times.rounds[0], times.round_exchanges[0]
    state = agent.state()
    weights = torch.cat([x.flatten() for n, x in state.items() if n.startswith("representation.")])
    times.gradient_bytes = weights.numel() * weights.element_size()
    for values, found in ((torch.zeros(1), times.latencies), (weights, times.sums)):
        for _ in range(20):
            found.append(_seconds(processes, functools.partial(processes.sum, values)))
    own_work = functools.partial(work, agent, problem)
    times.work = [_seconds(processes, own_work) for _ in range(7)]
    times.products = [_seconds(processes, products) for _ in range(7)]
    times.memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return times


def work(agent: GFUCB, problem: Problem) -> None:
    """Steps of the network, and systems of the size of the samples: what an agent computes."""
    center, _, _ = agent.network_learner.fit_state(torch.zeros(1, COLUMNS))
    representation = trainable_copy(center)
    weights = [p for p in representation.module.parameters() if p.requires_grad]
    with torch.enable_grad():
        for _ in range(WORK_STEPS):
            features = representation(problem.inputs(BATCH))
            torch.autograd.grad(features.square().mean(), weights, allow_unused=True)
            own = features.detach().double()[: WORK_TASKS * SAMPLES // 2]
            own = own.unflatten(0, (-1, SAMPLES))
            factors = ridge_cholesky(own @ own.mT, 1.0)
            torch.linalg.solve_triangular(factors, own, upper=False)


def products() -> None:
    """Products of matrices that fit into the first caches of a core."""
    x = torch.eye(96, dtype=torch.float64)
    for _ in range(PRODUCTS):
        x = x @ x


def play(shard: Shard, problem: Problem, candidates: Tensor, tasks: Tensor) -> None:
    """A round: a decision and a reward of each task."""
    available = torch.ones(candidates.shape[:2], dtype=torch.bool)
    decision = shard.decide(candidates, tasks, available)
    shard.observe(decision, problem.rewards(decision.inputs, tasks))


def _seconds(shards: Shards, call: Callable[[], object]) -> float:
    """From when all shards begin a call to when it has ended in this one."""
    shards.sum(torch.zeros(1))
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def run_case(case: Case) -> dict[str, Any]:
    """Start the shards of a case and put their times together."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory, meeting_address(case.shards) as memory:
        files = [str(Path(directory) / f"{index}.json") for index in range(case.shards)]
        address = f"file://{directory}/address" if case.exchange == "sockets" else memory
        workers = [
            context.Process(target=run_shard, args=(case, address, index, path), daemon=True)
            for index, path in enumerate(files)
        ]
        for worker in workers:
            worker.start()
        join_all(workers, str(case))
        found = [json.loads(Path(path).read_text()) for path in files]
    return asdict(case) | _together(found)


def _together(shards: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over repetitions of the slowest shard's times, and the exchanges of the first."""
    row: dict[str, Any] = {}
    for name in ("fits", "rounds", "latencies", "sums", "work", "products"):
        slowest = [max(values) for values in zip(*(own[name] for own in shards), strict=True)]
        row[f"{name}_seconds"] = statistics.median(slowest)
    for name in ("fit_exchanges", "round_exchanges"):
        last = shards[0][name][-1]
        row[name] = int(last["exchanges"])
        row[name.replace("exchanges", "bytes")] = int(last["bytes"])
        row[name.replace("exchanges", "exchange_seconds")] = last["seconds"]
    row["gradient_bytes"] = shards[0]["gradient_bytes"]
    row["memory_bytes"] = max(own["memory"] for own in shards)
    return row


def with_efficiency(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the efficiency of a fit and of a round, relative to the fewest shards.

    `work_efficiency` is that of the fixed work, which all shards do at once without an exchange:
    what the machine allows. Where as many independent agents were measured, weak scaling also has
    the efficiency under equal load, `fit_equal_load` and `round_equal_load`.
    """
    independent = {row["shards"]: row for row in rows if row["kind"] == "independent"}
    first = {row["kind"]: row for row in sorted(rows, key=lambda row: -row["shards"])}
    for row in rows:
        one = first[row["kind"]]
        share = one["shards"] / row["shards"] if row["kind"] == "strong" else 1
        for name in ("fit", "round"):
            seconds = f"{name}s_seconds"
            row[f"{name}_efficiency"] = share * one[seconds] / row[seconds]
            if row["kind"] == "weak" and row["shards"] in independent:
                row[f"{name}_equal_load"] = independent[row["shards"]][seconds] / row[seconds]
        row["work_efficiency"] = one["work_seconds"] / row["work_seconds"]
    return rows


def cases(
    kinds: list[str], counts: list[int], weak: int, strong: int, fits: int, exchange: str = "memory"
) -> list[Case]:
    """The cases in the order in which they run."""
    sizes: dict[str, Any] = {"rounds": 7, "fits": fits, "exchange": exchange}
    found = []
    for kind in kinds:
        for count in counts:
            if kind == "weak":
                found.append(Case(kind, count, weak, BATCH * count, **sizes))
            elif kind == "independent":
                found.append(Case(kind, count, weak, BATCH, **sizes))
            else:
                found.append(Case(kind, count, strong // count, 4 * BATCH, **sizes))
    return found


def main() -> None:
    """Run all cases and write the file after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--shards", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--tasks", type=int, default=WEAK_TASKS, help="of each shard, weak scaling")
    parser.add_argument("--all-tasks", type=int, default=STRONG_TASKS, help="strong scaling")
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--exchange", choices=("memory", "sockets"), default="memory")
    parser.add_argument("--commit", help="of the code, where there is no checkout")
    words = parser.parse_args()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the shards use CPUs, and wait for no GPU
    rows: list[dict[str, Any]] = []
    for case in cases(
        words.kinds, words.shards, words.tasks, words.all_tasks, words.fits, words.exchange
    ):
        begin, load = time.perf_counter(), os.getloadavg()[0]
        rows.append(run_case(case) | {"load_before": load})
        result = {
            "provenance": provenance(words.commit),
            "cores": os.cpu_count(),
            "goal": GOAL,
            "rows": with_efficiency(rows),
        }
        words.json.parent.mkdir(parents=True, exist_ok=True)
        words.json.write_text(json.dumps(result, indent=2) + "\n")
        row = rows[-1]
        print(
            f"{case.kind} {case.shards} shards, {case.tasks} tasks each: "
            f"fit {row['fits_seconds']:.3f} s ({row['fit_efficiency']:.0%}), "
            f"round {row['rounds_seconds']:.4f} s ({row['round_efficiency']:.0%}), "
            f"work without exchanges ({row['work_efficiency']:.0%}), "
            f"all {time.perf_counter() - begin:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()

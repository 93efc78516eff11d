"""Time and memory of one agent in one process with 100,000 tasks, of which 1% act in a round.

    python -m benchmarks.many_tasks --json benchmarks/many_tasks.json
    python -m benchmarks.many_tasks --model table --json benchmarks/many_tasks_table.json
    python -m benchmarks.many_tasks --model items --json benchmarks/many_tasks_items.json

The model is the default network with 128 features for 16 columns, or the default agent for a table
of 8 columns, or the default agent for a catalogue of 100 items. There are 10 actions, with
synthetic rewards. In every round 1,000 random tasks decide and get a reward. Times are CPU seconds
of one thread, and wall-clock seconds. Fits are counted by themselves. At the end the agent is
saved, restored by a new agent, and the heads of some tasks are compared with those of matrices in
double precision.

The goal is a round below 1 s, without the fit of phi, and 6 GB of memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

import gfucb
from gfucb import GFUCB
from gfucb.core.features import features_of
from gfucb.core.linalg import cholesky_solve, ridge_cholesky
from gfucb.models import HeadStatistics
from gfucb.models.head_posterior import HeadPosterior
from gfucb.models.network_classes import DefaultNetworkClass
from gfucb.models.sample_covariances import SampleCovariances
from gfucb.runs.provenance import current_provenance
from gfucb.runs.text_files import write_json

ACTIONS, TRUE_FEATURES, COMPARED = 10, 4, 200
COLUMNS = {"network": 16, "table": 8, "items": 100}
GOAL_SECONDS, GOAL_BYTES = 1.0, 6e9


class Problem:
    """Tasks whose rewards share a nonlinear representation."""

    def __init__(self, num_tasks: int, seed: int, model: str) -> None:
        self.draws, self.model = torch.Generator().manual_seed(seed), model
        self.basis = torch.randn(COLUMNS[model], TRUE_FEATURES, generator=self.draws)
        self.heads = torch.randn(num_tasks, TRUE_FEATURES, generator=self.draws)

    def candidates(self, num_rows: int) -> Tensor:
        """Inputs [row, action, column], or ids [row, action, 1]."""
        if self.model != "items":
            shape = (num_rows, ACTIONS, COLUMNS[self.model])
            return torch.randn(*shape, generator=self.draws)
        keys = torch.rand(num_rows, COLUMNS[self.model], generator=self.draws)
        return keys.argsort(1)[:, :ACTIONS].unsqueeze(-1)

    def means(self, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Mean rewards of inputs [row, n, column] for tasks [row]: [row, n]."""
        rows = self.basis[inputs.squeeze(-1)] if self.model == "items" else inputs @ self.basis
        return (rows.tanh() * self.heads[tasks][:, None]).sum(-1)


def play(agent: GFUCB, problem: Problem, num_active: int) -> dict[str, Any]:
    """One round: its times, and the regret of a decision."""
    tasks = torch.randperm(agent.num_tasks, generator=problem.draws)[:num_active]
    candidates = problem.candidates(num_active)
    fits, clocks = agent.learner.num_fits, [(time.process_time(), time.perf_counter())]
    decision = agent.decide(candidates, tasks)
    clocks.append((time.process_time(), time.perf_counter()))
    means = problem.means(candidates, tasks)
    chosen = means.gather(1, decision.actions[:, None]).squeeze(1)
    rewards = chosen + 0.1 * torch.randn(num_active, generator=problem.draws)
    begin = (time.process_time(), time.perf_counter())
    agent.observe(decision, rewards.double())
    clocks.append((time.process_time(), time.perf_counter()))
    return {
        "decide_cpu": clocks[1][0] - clocks[0][0],
        "observe_cpu": clocks[2][0] - begin[0],
        "wall": clocks[1][1] - clocks[0][1] + clocks[2][1] - begin[1],
        "fits": agent.learner.num_fits - fits,
        "regret": float((means.max(1).values - chosen).mean()),
        "peak_bytes": peak_bytes(),
    }


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def head_error(agent: GFUCB, problem: Problem) -> float:
    """The largest relative difference of heads from those of Gram matrices in double precision."""
    learner = agent.learner
    center, data, posterior = learner.fit_state(problem.candidates(1).flatten(0, 1))
    tasks = (data.samples_per_task > 0).nonzero().squeeze(1)[:COMPARED]
    rows = torch.isin(data.tasks, tasks).nonzero().squeeze(1)
    positions = torch.searchsorted(tasks, data.tasks[rows])
    features = features_of(center.representation, data.inputs[rows])
    targets = data.targets[rows] - center.offset
    if isinstance(posterior, HeadPosterior):
        assert isinstance(posterior.covariances, SampleCovariances)  # there are many tasks
        grams = posterior.covariances.statistics.taken(tasks).grams
        pulls = posterior.moments[tasks] + posterior.mean
        heads = cholesky_solve(ridge_cholesky(grams, 1.0), pulls)
        heads = pad(heads, (0, posterior.uncertain_dim - posterior.feature_dim))
    else:
        expected = HeadStatistics.of(features, positions, targets, len(tasks))
        heads = expected.heads(agent.network_learner.penalty)
    return float(((center.heads[tasks] - heads).norm(dim=1) / heads.norm(dim=1)).max())


def save_and_restore(agent: GFUCB, make: Any) -> dict[str, float]:
    """Times, and the size of the file."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "agent.safetensors"
        begin = time.process_time()
        gfucb.save(agent, path)
        saved = time.process_time()
        gfucb.restore(make(), path)
        restored = time.process_time()
        size = path.stat().st_size
    return {"bytes": size, "save_cpu": saved - begin, "restore_cpu": restored - saved}


def main() -> None:
    """Play all rounds and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--model", choices=tuple(COLUMNS), default="network")
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--active", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    torch.set_num_threads(1)

    def make() -> GFUCB:
        network = DefaultNetworkClass() if words.model == "network" else None
        return GFUCB(words.tasks, network, seed=words.seed, self_supervision=None)

    agent, problem = make(), Problem(words.tasks, words.seed, words.model)
    rows = []
    for index in range(words.rounds):
        rows.append(play(agent, problem, words.active))
        print(index, rows[-1], flush=True)
    plain = [row for row in rows if not row["fits"]]
    fitted = [row["observe_cpu"] for row in rows if row["fits"]]
    peak, tenth = peak_bytes(), max(1, len(rows) // 10)
    rounds_cpu = [row["decide_cpu"] + row["observe_cpu"] for row in plain]
    result = {
        "provenance": current_provenance(),
        "load": os.getloadavg(),
        "model": words.model,
        "tasks": words.tasks,
        "active": words.active,
        "rounds": words.rounds,
        "seed": words.seed,
        "samples": agent.learner.num_samples,
        "goal": {"seconds": GOAL_SECONDS, "bytes": GOAL_BYTES},
        "round_cpu": {"median": statistics.median(rounds_cpu), "largest": max(rounds_cpu)},
        "round_wall": statistics.median(row["wall"] for row in plain),
        "largest_round_wall": max(row["wall"] for row in plain),
        "fits": len(fitted),
        "longest_fit_cpu": max(fitted),
        "peak_bytes": peak,
        "regret_first": statistics.mean(row["regret"] for row in rows[:tenth]),
        "regret_last": statistics.mean(row["regret"] for row in rows[-tenth:]),
        "largest_head_error": head_error(agent, problem),
        "file": save_and_restore(agent, make),
        "peak_bytes_with_restore": peak_bytes(),
    }
    write_json(words.json, result)
    print(result)


if __name__ == "__main__":
    main()

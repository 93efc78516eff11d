"""Regret of the default agents on 8x8 digits, relative to LinUCB.

    python benchmarks/regret.py digits --first-seed 300 --seeds 20 --processes 2
    python benchmarks/regret.py tables

Each run is one line of benchmarks/regret.csv; a repeated command computes the missing lines. No
setting was tuned on these seeds: tuning used seeds from 2000 on. For MNIST see
`gfucb reproduce fig1`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import gfucb
from gfucb.bandits import Grouped
from gfucb.core.protocols import BanditAgent, BanditEnvironment
from gfucb.runs import ImageBanditConfig
from gfucb.runs.loop import play
from gfucb.runs.pool import run_in_processes
from gfucb.runs.provenance import current_provenance
from gfucb.runs.row_writer import RowWriter
from gfucb.runs.sources import AgentLike, agent_sources, environment_source
from gfucb.runs.text_files import read_csv, read_json, write_json

HERE = Path(__file__).parent
ROWS, PROVENANCE = HERE / "regret.csv", HERE / "regret.json"
FIELDS = ("environment", "agent", "tasks", "rounds", "seed", "regret", "seconds")
INDEPENDENT = "gfucb, each task alone"
DIGIT_SIZES = ((10, 200), (30, 400), (100, 200))


def independent(environment: BanditEnvironment, seed: int) -> BanditAgent:
    """One GFUCB agent per task."""
    num_tasks = environment.num_tasks

    def alone(size: int, own: int) -> gfucb.GFUCB:
        return gfucb.GFUCB(size, seed=own, value_range=(0.0, 1.0))

    return Grouped(num_tasks, alone, seed=seed)


AGENTS: dict[str, AgentLike] = {
    "linucb": "linucb",
    "oracle-ucb": "oracle-ucb",
    "gfucb": "gfucb",
    "multitask-greedy": "multitask-greedy",
    INDEPENDENT: independent,
}


@dataclass(frozen=True)
class Run:
    """One line of the table."""

    agent: str
    num_tasks: int
    num_rounds: int
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """The first fields of the line, as text."""
        return (
            "digits",
            self.agent,
            *(str(n) for n in (self.num_tasks, self.num_rounds, self.seed)),
        )


def main() -> None:
    """Compute what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["digits", "tables"])
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first-seed", type=int, default=300)
    parser.add_argument("--processes", type=int, default=1, help="runs at a time")
    parser.add_argument("--rows", type=Path, default=ROWS)
    chosen = parser.parse_args()
    if chosen.what == "digits":
        seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
        run_missing(seeds, chosen.rows, chosen.processes)
        if chosen.rows == ROWS:
            known = read_json(PROVENANCE) if PROVENANCE.exists() else {}
            write_json(PROVENANCE, known | {chosen.what: current_provenance()})
    print_tables(read_csv(chosen.rows))


def run_missing(seeds: Sequence[int], rows: Path, processes: int) -> None:
    """Run every agent at every size on every seed, and append a line for each run."""
    done = {tuple(row[field] for field in FIELDS[:5]) for row in read_csv(rows)}
    runs = [
        Run(agent, num_tasks, num_rounds, seed)
        for seed in seeds
        for num_tasks, num_rounds in DIGIT_SIZES
        for agent in AGENTS
        if agent != INDEPENDENT or num_tasks == 10
    ]
    missing = [run for run in runs if run.key not in done]
    with RowWriter(rows) as writer:
        for run, (regret, seconds) in run_in_processes(regret_of, missing, processes):
            writer.write(dict(zip(FIELDS, (*run.key, regret, seconds), strict=True)))


def regret_of(run: Run) -> tuple[float, float]:
    """Cumulative regret per task, and wall seconds."""
    start = time.perf_counter()
    config = ImageBanditConfig(num_tasks=run.num_tasks)
    environment = environment_source(config, None).make(run.seed)
    source = agent_sources({run.agent: AGENTS[run.agent]})[run.agent]
    rows = play(
        source.make(environment, run.seed),
        environment,
        num_rounds=run.num_rounds,
        uses_true_features=source.uses_true_features,
    )
    *_, last = rows
    return float(last["cumulative_regret"]), time.perf_counter() - start


def print_tables(rows: list[dict[str, str]]) -> None:
    """Print ratios of means over seeds, with 95% intervals from 10 000 bootstrap samples."""

    def regrets(environment: str, agent: str, tasks: int) -> dict[int, float]:
        return {
            int(row["seed"]): float(row["regret"])
            for row in rows
            if (row["environment"], row["agent"], row["tasks"]) == (environment, agent, str(tasks))
        }

    print("\n| digits | to LinUCB | 95% | goal | seeds |\n|---|---|---|---|---|")
    for (tasks, rounds), goal in zip(DIGIT_SIZES, (0.47, 0.29, 0.31), strict=True):
        base = regrets("digits", "linucb", tasks)
        for name in ("gfucb", "multitask-greedy", "oracle-ucb", INDEPENDENT):
            own = regrets("digits", name, tasks)
            if own:
                target = f"{goal}" if name == "gfucb" else ""
                what = f"M={tasks}, T={rounds}: {name}"
                print(f"| {what} | {ratio(own, base)} | {target} | {len(own)} |")
    print("\n| comparison | ratio | 95% | seeds |\n|---|---|---|---|")
    own = regrets("digits", "gfucb", 10)
    print(f"| digits, M=10: alone / shared | {ratio(regrets('digits', INDEPENDENT, 10), own)} | |")


def ratio(top: dict[int, float], bottom: dict[int, float]) -> str:
    """Ratio of the means over common seeds, with its 95% bootstrap interval."""
    seeds = sorted(top.keys() & bottom.keys())
    if not seeds:
        return "- | -"
    pairs = np.array([[top[seed], bottom[seed]] for seed in seeds])
    draws = np.random.default_rng(0).integers(len(seeds), size=(10_000, len(seeds)))
    means = pairs[draws].mean(1)
    low, high = np.quantile(means[:, 0] / means[:, 1], [0.025, 0.975])
    middle = pairs.mean(0)
    return f"{middle[0] / middle[1]:.3f} | {low:.3f} to {high:.3f}"


if __name__ == "__main__":
    main()

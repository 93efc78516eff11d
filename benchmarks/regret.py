"""Regret of the defaults on digits, against LinUCB.

    python benchmarks/regret.py digits --first-seed 300 --seeds 20
    python benchmarks/regret.py tables

Each run is one line of benchmarks/regret.csv; given again, a command plays what is missing.
Nothing here was used for tuning: choices were made on seeds from 2000 on. MNIST is the matter
of `gfucb reproduce fig1`.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import gfucb
from gfucb.core.protocols import BanditAgent
from gfucb.environments import ImageBandit, LabelledImages, load_digits
from gfucb.runs.files import read_json, write_json
from gfucb.runs.loop import play
from gfucb.runs.provenance import current_provenance

HERE = Path(__file__).parent
ROWS, PROVENANCE = HERE / "regret.csv", HERE / "regret.json"
FIELDS = ("environment", "agent", "tasks", "rounds", "seed", "regret", "seconds")
INDEPENDENT = "gfucb, each task alone"


@dataclass(frozen=True)
class Environment:
    """What is played: images, reward maps, noise."""

    name: str
    reward_map: str
    noise_scale: float

    def bandit(self, images: LabelledImages, num_tasks: int, seed: int) -> ImageBandit:
        """Ten images for each task in every round."""
        return ImageBandit(
            images,
            num_tasks=num_tasks,
            num_actions=10,
            reward_map=self.reward_map,
            noise_scale=self.noise_scale,
            seed=seed,
        )


DIGITS = Environment("digits", "uniform", 0.1)
DIGIT_SIZES = ((10, 200), (30, 400), (100, 200))

Maker = Callable[[int, int], BanditAgent]  # (num_tasks, seed) -> agent
ALONE: dict[str, Maker] = {
    "linucb": lambda tasks, seed: gfucb.linucb(tasks),
    "oracle-ucb": lambda tasks, seed: gfucb.linucb(tasks, ridge=0.1),
    "gfucb": lambda tasks, seed: gfucb.GFUCB(tasks, seed=seed),
    "multitask-greedy": lambda tasks, seed: gfucb.multitask_greedy(tasks, seed=seed),
    INDEPENDENT: lambda tasks, seed: gfucb.bandits.Grouped(
        tasks, lambda size, own: gfucb.GFUCB(size, seed=own), seed=seed
    ),
}


def main() -> None:
    """Play what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["digits", "tables"])
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first-seed", type=int, default=300)
    parser.add_argument("--rows", type=Path, default=ROWS)
    chosen = parser.parse_args()
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    if chosen.what == "digits":
        play_digits(seeds, chosen.rows)
    if chosen.what != "tables" and chosen.rows == ROWS:
        known = read_json(PROVENANCE) if PROVENANCE.exists() else {}
        write_json(PROVENANCE, known | {chosen.what: current_provenance()})
    print_tables(read(chosen.rows))


def play_digits(seeds: Sequence[int], rows: Path) -> None:
    """Every agent alone, size by size, seed by seed."""
    images = load_digits()
    for seed in seeds:
        for tasks, rounds in DIGIT_SIZES:
            for name in ("linucb", "oracle-ucb", "gfucb", "multitask-greedy", INDEPENDENT):
                if name != INDEPENDENT or tasks == 10:
                    play_alone(DIGITS, images, name, tasks, rounds, seed, rows)


def play_alone(
    environment: Environment,
    images: LabelledImages,
    name: str,
    tasks: int,
    rounds: int,
    seed: int,
    rows: Path,
) -> None:
    """One run, unless its line is there."""
    key = (environment.name, name, str(tasks), str(rounds), str(seed))
    if key in {tuple(row[field] for field in FIELDS[:5]) for row in read(rows)}:
        return
    begun = time.perf_counter()
    bandit, agent = environment.bandit(images, tasks, seed), ALONE[name](tasks, seed)
    uses_true_features = name.startswith("oracle")
    last = list(play(agent, bandit, num_rounds=rounds, uses_true_features=uses_true_features))[-1]
    write(rows, [[*key, last["cumulative_regret"], time.perf_counter() - begun]])


def read(rows: Path) -> list[dict[str, str]]:
    """The lines there are."""
    if not rows.exists():
        return []
    with rows.open(newline="") as file:
        return list(csv.DictReader(file))


def write(rows: Path, lines: list[list[object]]) -> None:
    """Append lines, with a header if they are the first."""
    is_new = not rows.exists()
    with rows.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(FIELDS)
        writer.writerows(lines)


def print_tables(rows: list[dict[str, str]]) -> None:
    """Ratios of means over seeds, with 95% intervals from 10 000 resamplings of the seeds."""

    def regrets(environment: str, agent: str, tasks: int) -> dict[int, float]:
        return {
            int(row["seed"]): float(row["regret"])
            for row in rows
            if (row["environment"], row["agent"], row["tasks"]) == (environment, agent, str(tasks))
        }

    print("\n| digits | to LinUCB | 95% | goal | seeds |\n|---|---|---|---|---|")
    for (tasks, rounds), goal in zip(DIGIT_SIZES, (0.80, 0.50, 0.45), strict=True):
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
    """Mean over mean, on the seeds both have."""
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
    torch.set_num_threads(1)
    main()

"""Regret of the defaults: against LinUCB on digits; sharing and optimism, on digits and MNIST.

    python benchmarks/regret.py digits --seeds 20
    python benchmarks/regret.py mnist --data-dir DIR --device cuda --seeds 10
    python benchmarks/regret.py tables

Each run is one line of benchmarks/regret.csv; given again, a command plays what is missing. On
MNIST all seeds of an agent are played together as a fleet. Nothing here was used for tuning:
choices were made on seeds from 2000 on, these are 0, 1, ...
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import gfucb
from gfucb.agents.fleet import Fleet
from gfucb.contracts import BanditAgent
from gfucb.environments import ImageBandit, LabelledImages, load_digits, load_mnist
from gfucb.experiments.lockstep import play_together
from gfucb.experiments.runner import play

HERE = Path(__file__).parent
ROWS, PROVENANCE = HERE / "regret.csv", HERE / "regret.json"
FIELDS = ("world", "agent", "tasks", "rounds", "seed", "regret", "seconds")
INDEPENDENT = "gfucb, each task alone"


@dataclass(frozen=True)
class World:
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


DIGITS = World("digits", "uniform", 0.1)
MNIST = World("mnist", "permutation", 0.01)
DIGIT_SIZES = ((10, 200), (30, 400), (100, 200))

Maker = Callable[[int, int], BanditAgent]  # (num_tasks, seed) -> agent
ALONE: dict[str, Maker] = {
    "linucb": lambda tasks, seed: gfucb.linucb(tasks),
    "oracle-ucb": lambda tasks, seed: gfucb.linucb(tasks, ridge=0.1),
    "gfucb": lambda tasks, seed: gfucb.GFUCB(tasks, seed=seed),
    "multitask-greedy": lambda tasks, seed: gfucb.multitask_greedy(tasks, seed=seed),
    INDEPENDENT: lambda tasks, seed: gfucb.Grouped(
        tasks, lambda size, own: gfucb.GFUCB(size, seed=own), seed=seed
    ),
}


def main() -> None:
    """Play what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["digits", "mnist", "tables"])
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--data-dir", default=None, help="where MNIST's files lie")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=Path, default=ROWS)
    chosen = parser.parse_args()
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    if chosen.what == "digits":
        play_digits(seeds, chosen.rows)
    if chosen.what == "mnist":
        play_mnist(load_mnist(chosen.data_dir), seeds, chosen.device, chosen.rows)
    if chosen.what != "tables" and chosen.rows == ROWS:
        from gfucb.experiments.records import provenance_now

        known = json.loads(PROVENANCE.read_text()) if PROVENANCE.exists() else {}
        PROVENANCE.write_text(json.dumps(known | {chosen.what: provenance_now()}, indent=1) + "\n")
    print_tables(read(chosen.rows))


def play_digits(seeds: Sequence[int], rows: Path) -> None:
    """Every agent alone, size by size, seed by seed."""
    images = load_digits()
    for seed in seeds:
        for tasks, rounds in DIGIT_SIZES:
            for name in ("linucb", "oracle-ucb", "gfucb", "multitask-greedy", INDEPENDENT):
                if name != INDEPENDENT or tasks == 10:
                    play_alone(DIGITS, images, name, tasks, rounds, seed, rows)


def play_mnist(images: LabelledImages, seeds: Sequence[int], device: str, rows: Path) -> None:
    """T = 600 as fleets; the oracle, which needs no network, alone."""

    def make(tasks: int, seed: int) -> gfucb.GFUCB:
        return gfucb.GFUCB(tasks, seed=seed, device=device)

    def greedy(tasks: int, seed: int) -> gfucb.GFUCB:
        return gfucb.multitask_greedy(tasks, seed=seed, device=device)

    play_fleet(images, "gfucb", make, 10, seeds, rows)
    play_fleet(images, "multitask-greedy", greedy, 10, seeds, rows)
    # Ten single tasks for each seed: task i of seed s has the seed 1000 (i + 1) + s.
    singles = [1000 * (task + 1) + seed for task in range(10) for seed in seeds]
    play_fleet(images, "gfucb", make, 1, singles, rows)
    play_fleet(images, "gfucb", make, 100, list(seeds)[:10], rows)
    for seed in seeds:
        play_alone(MNIST, images, "oracle-ucb", 10, 600, seed, rows)


def play_alone(
    world: World,
    images: LabelledImages,
    name: str,
    tasks: int,
    rounds: int,
    seed: int,
    rows: Path,
) -> None:
    """One run, unless its line is there."""
    key = (world.name, name, str(tasks), str(rounds), str(seed))
    if key in {tuple(row[field] for field in FIELDS[:5]) for row in read(rows)}:
        return
    begun = time.perf_counter()
    bandit, agent = world.bandit(images, tasks, seed), ALONE[name](tasks, seed)
    reads_truth = name.startswith("oracle")
    last = list(play(agent, bandit, num_rounds=rounds, reads_truth=reads_truth))[-1]
    write(rows, [[*key, last["cumulative_regret"], time.perf_counter() - begun]])


def play_fleet(
    images: LabelledImages,
    name: str,
    make: Callable[[int, int], gfucb.GFUCB],
    tasks: int,
    seeds: Sequence[int],
    rows: Path,
    rounds: int = 600,
) -> None:
    """All seeds together, unless their lines are there."""
    done = {
        int(row["seed"])
        for row in read(rows)
        if (row["world"], row["agent"], row["tasks"]) == ("mnist", name, str(tasks))
    }
    missing = [seed for seed in seeds if seed not in done]
    if not missing:
        return
    begun = time.perf_counter()
    fleet = Fleet([make(tasks, seed) for seed in missing])
    worlds = [MNIST.bandit(images, tasks, seed) for seed in missing]
    last: list[float] = []
    for together in play_together(fleet, worlds, num_rounds=rounds):
        last = [float(row["cumulative_regret"]) for row in together]
    each = (time.perf_counter() - begun) / len(missing)
    write(
        rows,
        [
            ["mnist", name, tasks, rounds, seed, regret, each]
            for seed, regret in zip(missing, last, strict=True)
        ],
    )
    print(f"mnist {name} M={tasks}: {len(missing)} runs in {each * len(missing):.0f} s", flush=True)


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

    def regrets(world: str, agent: str, tasks: int) -> dict[int, float]:
        return {
            int(row["seed"]): float(row["regret"])
            for row in rows
            if (row["world"], row["agent"], row["tasks"]) == (world, agent, str(tasks))
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
    ten = regrets("mnist", "gfucb", 10)
    if ten:
        single: dict[int, list[float]] = {}
        for seed, regret in regrets("mnist", "gfucb", 1).items():
            single.setdefault(seed % 1000, []).append(regret)
        alone = {seed: float(np.mean(values)) for seed, values in single.items()}
        for name, top, bottom in (
            ("R(M=1) / R(M=10)", alone, ten),
            ("R(M=1) / R(M=100)", alone, regrets("mnist", "gfucb", 100)),
            ("R(M=10) / multitask greedy", ten, regrets("mnist", "multitask-greedy", 10)),
            ("R(M=10) / oracle UCB", ten, regrets("mnist", "oracle-ucb", 10)),
        ):
            if top and bottom:
                print(f"| mnist: {name} | {ratio(top, bottom)} | {len(top)} |")
        for name, values in (
            ("M=1", alone),
            ("M=10", ten),
            ("M=100", regrets("mnist", "gfucb", 100)),
        ):
            if values:
                print(f"mnist R({name}) = {np.mean(list(values.values())):.1f}")


def ratio(top: dict[int, float], bottom: dict[int, float]) -> str:
    """Mean over mean, on the seeds both have."""
    seeds = sorted(top.keys() & bottom.keys())
    if not seeds:
        return "- | -"
    pairs = np.array([[top[seed], bottom[seed]] for seed in seeds])
    lots = np.random.default_rng(0).integers(len(seeds), size=(10_000, len(seeds)))
    means = pairs[lots].mean(1)
    low, high = np.quantile(means[:, 0] / means[:, 1], [0.025, 0.975])
    middle = pairs.mean(0)
    return f"{middle[0] / middle[1]:.3f} | {low:.3f} to {high:.3f}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()

"""Episodes per CPU-second of LSVI-UCB: this library against the loop of rlberry-scool 0.7.3.

    python benchmarks/lsvi_speed.py --json benchmarks/lsvi_speed.json

The problem is the one that package was timed on: random MDPs with S = 10, A = 3, H = 5, one-hot
features, 120 episodes (64 episodes per CPU-second up to 60, 29 up to 120, on another machine).
`ScoolLoop` stands in for that package: the same computation in the same order, after every episode
one pass over all transitions so far for every stage, and for each of them one product with the
inverse matrix for every next action. A larger bonus makes our agent plan more often. Each run is
stored in `runs/lsvi_speed`; a repeated command computes the missing ones.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch

import gfucb
from gfucb.core.records import Row
from gfucb.environments import TabularMDPs, tabular_mdps
from gfucb.runs.jobs import Job, run_all
from gfucb.runs.loop import play
from gfucb.runs.store import distinct_provenance
from gfucb.runs.text_files import json_text, with_numbers, write_json

RUNS = Path(__file__).parents[1] / "runs" / "lsvi_speed"
STATES, ACTIONS, HORIZON, BONUS = 10, 3, 5, 1.0
SEEDS = range(3)


class ScoolLoop:
    """LSVI-UCB as rlberry-scool runs it: one matrix for all stages, replanned in every episode."""

    def __init__(self, num_states: int, num_actions: int, horizon: int, bonus: float) -> None:
        self.sizes = (num_states, num_actions, horizon)
        self.bonus, self.dim = bonus, num_states * num_actions
        self.features = np.eye(self.dim).reshape(num_states, num_actions, self.dim)
        self.inverse = np.eye(self.dim)
        self.weights = np.zeros((horizon + 1, self.dim))
        self.history: list[tuple[np.ndarray, float, np.ndarray]] = []

    def action(self, state: int, stage: int) -> int:
        """The action with the largest optimistic value."""
        return int(np.argmax([self._value(x, stage) for x in self.features[state]]))

    def _value(self, x: np.ndarray, stage: int) -> float:
        bonus = self.bonus * np.sqrt(x @ self.inverse @ x)
        return min(float(x @ self.weights[stage] + bonus), float(self.sizes[2]))

    def observe(self, state: int, action: int, reward: float, successor: int) -> None:
        """Sherman and Morrison's update, and one more line of history."""
        x = self.features[state, action]
        step = self.inverse @ x
        self.inverse = self.inverse - np.outer(step, step) / (1 + x @ step)
        self.history.append((x, reward, self.features[successor]))

    def replan(self) -> None:
        """Backward induction over all transitions so far, one by one."""
        for stage in reversed(range(self.sizes[2])):
            moment = np.zeros(self.dim)
            for x, reward, following in self.history:
                values = [self._value(y, stage + 1) for y in following]
                moment += x * (reward + (max(values) if stage + 1 < self.sizes[2] else 0.0))
            self.weights[stage] = self.inverse @ moment


def random_environment(seed: int) -> TabularMDPs:
    """A random MDP of the size above, the same tables in every stage."""
    generator = np.random.Generator(np.random.PCG64(seed))
    transitions = generator.dirichlet(np.ones(STATES), size=(STATES, ACTIONS))
    rewards = generator.uniform(size=(STATES, ACTIONS))
    return tabular_mdps([transitions], [rewards], horizon=HORIZON, seed=seed)


def time_theirs(environment: TabularMDPs, episodes: int) -> tuple[float, float]:
    """CPU seconds and mean regret of the re-implemented loop."""
    agent = ScoolLoop(STATES, ACTIONS, HORIZON, BONUS)
    begin, regret = time.process_time(), 0.0
    for index in range(1, episodes + 1):
        episode = environment.episode(index)
        for stage in range(HORIZON):
            state = int(episode.states[0])
            action = agent.action(state, stage)
            reward = float(episode.play(torch.tensor([action])).rewards[0])
            agent.observe(state, action, reward, int(episode.states[0]))
        agent.replan()
        regret += float(episode.gaps[0])
    return time.process_time() - begin, regret / episodes


def time_ours(environment: TabularMDPs, episodes: int, growth: float) -> tuple[float, float]:
    """CPU seconds and mean regret of ours, keeping exact regrets besides."""
    agent = gfucb.episodic.LSVIUCB(
        1,
        HORIZON,
        beta=BONUS,
        ridge=1.0,
        value_range=(0.0, float(HORIZON)),
        replan_growth=growth,
    )
    begin = time.process_time()
    rows = list(play(agent, environment, num_rounds=episodes))
    return time.process_time() - begin, float(rows[-1]["cumulative_regret"]) / episodes


METHODS: dict[str, Callable[[TabularMDPs, int], tuple[float, float]]] = {
    "rlberry-scool's loop, re-implemented": time_theirs,
    "gfucb.episodic.LSVIUCB": partial(time_ours, growth=2.0),
    "gfucb.episodic.LSVIUCB, replanned in every episode": partial(time_ours, growth=1.0),
}


def measured(method: str, seed: int, episodes: int) -> list[Row]:
    """Seconds and regret of one method in one environment."""
    environment = random_environment(seed)
    METHODS[method](environment, 5)  # warm up
    seconds, regret = METHODS[method](environment, episodes)
    return [{"method": method, "seed": seed, "seconds": seconds, "mean_regret": regret}]


def jobs(episodes: int) -> list[Job]:
    """One job for each method and environment."""
    return [
        Job(
            f"method={index}/seed={seed}",
            partial(measured, method, seed, episodes),
            settings={"method": method, "seed": seed, "episodes": episodes},
        )
        for index, method in enumerate(METHODS)
        for seed in SEEDS
    ]


def summary(rows: Iterable[Mapping[str, str]], episodes: int) -> dict[str, dict[str, float]]:
    """Episodes per CPU-second and mean regret of each method."""
    found: dict[str, dict[str, float]] = {}
    table = [with_numbers(row) for row in rows]
    for method in METHODS:
        own = [row for row in table if row["method"] == method]
        seconds = sum(float(row["seconds"]) for row in own)
        found[method] = {
            "episodes_per_cpu_second": len(own) * episodes / seconds,
            "mean_regret": sum(float(row["mean_regret"]) for row in own) / len(own),
        }
    return found


def main() -> None:
    """Time all methods and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=120)
    parser.add_argument("--out", type=Path, default=RUNS, help="directory of the runs")
    parser.add_argument("--processes", type=int, default=1, help="runs at a time")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    computed = run_all(jobs(options.episodes), options.out, processes=options.processes)
    table = summary(itertools.chain(*computed.values()), options.episodes)
    speeds = [line["episodes_per_cpu_second"] for line in table.values()]
    content = {
        "problem": {"S": STATES, "A": ACTIONS, "H": HORIZON, "episodes": options.episodes},
        "results": table,
        "times_as_fast": speeds[1] / speeds[0],
        "provenance": distinct_provenance(options.out / name for name in computed),
    }
    print(json_text(content), end="")
    if options.json:
        write_json(options.json, content)


if __name__ == "__main__":
    main()

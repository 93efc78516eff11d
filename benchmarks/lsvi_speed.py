"""Episodes per CPU-second of LSVI-UCB: this library against the loop of rlberry-scool 0.7.3.

    python benchmarks/lsvi_speed.py --json benchmarks/lsvi_speed.json

The problem is the one that package was timed on: random MDPs with S = 10, A = 3, H = 5, one-hot
features, 120 episodes (64 episodes per CPU-second up to 60, 29 up to 120, on another machine).
`ScoolLoop` stands in for that package: the same computation in the same order, after every episode
one pass over all transitions so far for every stage, and for each of them one product with the
inverse matrix for every next action. A larger bonus makes our agent plan more often.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import gfucb
from gfucb.environments import TabularMDPs, tabular_mdps
from gfucb.runs.loop import play
from gfucb.runs.provenance import current_provenance
from gfucb.runs.text_files import json_text, write_json

STATES, ACTIONS, HORIZON, BONUS = 10, 3, 5, 1.0


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


def main() -> None:
    """Time both in one run and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=120)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    environments = [random_environment(seed) for seed in range(3)]
    time_ours(environments[0], 5, 2.0)  # warm up
    results = {
        "rlberry-scool's loop, re-implemented": [
            time_theirs(w, options.episodes) for w in environments
        ],
        "gfucb.episodic.LSVIUCB": [time_ours(w, options.episodes, 2.0) for w in environments],
        "gfucb.episodic.LSVIUCB, replanned in every episode": [
            time_ours(w, options.episodes, 1.0) for w in environments
        ],
    }
    table = {
        name: {
            "episodes_per_cpu_second": len(runs) * options.episodes / sum(s for s, _ in runs),
            "mean_regret": sum(r for _, r in runs) / len(runs),
        }
        for name, runs in results.items()
    }
    speeds = [line["episodes_per_cpu_second"] for line in table.values()]
    content = {
        "problem": {"S": STATES, "A": ACTIONS, "H": HORIZON, "episodes": options.episodes},
        "results": table,
        "times_as_fast": speeds[1] / speeds[0],
        "provenance": current_provenance(),
    }
    print(json_text(content), end="")
    if options.json:
        write_json(options.json, content)


if __name__ == "__main__":
    main()

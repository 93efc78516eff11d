"""A Gymnasium environment of your own: corridors with a treasure at the far end.

    python examples/own_gymnasium.py

Six corridors are tasks. A step left has a small reward at once, the far end on the right a large
one. A step fails with a probability that differs from corridor to corridor. Optimal values are not
known, so agents are compared by their mean reward.
"""

import argparse
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import gfucb
from gfucb.environments.gymnasium import GymnasiumMDPs
from gfucb.episodic import EpisodicEpsilonGreedy, fitted_q, lsvi_ucb, randomised_lsvi

LENGTH, HORIZON = 8, 10


class Corridor(gymnasium.Env[int, int]):
    """Positions 0 to 7; the actions are left and right."""

    def __init__(self, slip: float) -> None:
        self.observation_space = spaces.Discrete(LENGTH)
        self.action_space = spaces.Discrete(2)
        self.slip, self.position = slip, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        """Start at the left end."""
        super().reset(seed=seed)
        self.position = 0
        return self.position, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Move one step, unless it fails; the far end ends the episode."""
        if self.np_random.random() < self.slip:
            return self.position, 0.0, False, False, {}
        reward = 0.01 if action == 0 else 0.0
        self.position = int(np.clip(self.position + (1 if action == 1 else -1), 0, LENGTH - 1))
        at_end = self.position == LENGTH - 1
        return self.position, 1.0 if at_end else reward, at_end, False, {}


def corridors(seed: int) -> GymnasiumMDPs:
    """Six corridors, with slip probabilities from 0 to 0.15."""
    slips = np.linspace(0, 0.15, 6)
    return GymnasiumMDPs([Corridor(float(slip)) for slip in slips], HORIZON, seed=seed)


def default(environment: GymnasiumMDPs, seed: int) -> gfucb.EpisodicGFUCB:
    """The default agent: optimistic values of the states that it has seen."""
    return gfucb.EpisodicGFUCB(environment.num_tasks, HORIZON, seed=seed)


def optimistic(environment: GymnasiumMDPs, seed: int) -> gfucb.EpisodicGFUCB:
    """Algorithm 2 as printed, on one-hot (position, action): LSVI-UCB."""
    return lsvi_ucb(environment.num_tasks, HORIZON, seed=seed)


def randomised(environment: GymnasiumMDPs, seed: int) -> gfucb.EpisodicGFUCB:
    """Perturbed rewards instead of a bonus."""
    return randomised_lsvi(environment.num_tasks, HORIZON, noise_scale=0.1, seed=seed)


def epsilon_greedy(environment: GymnasiumMDPs, seed: int) -> EpisodicEpsilonGreedy:
    """Fitted Q iteration, with 10% random actions."""
    agent = fitted_q(environment.num_tasks, HORIZON, seed=seed)
    return EpisodicEpsilonGreedy(agent, epsilon=0.1, seed=seed)


AGENTS = {
    "gfucb": default,
    "LSVI-UCB": optimistic,
    "randomised LSVI": randomised,
    "eps-greedy fitted Q": epsilon_greedy,
}


def main(words: list[str] | None = None) -> None:
    """Compare optimism, randomised values and random actions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10], help="END, or START END")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--runs", help="keep finished runs here, and do not repeat them")
    parser.add_argument("--out", default="runs/examples/own_gymnasium")
    given = parser.parse_args(words)
    how = {"num_rounds": given.rounds, "processes": given.processes, "out": given.runs}
    result = gfucb.compare(corridors, AGENTS, seeds=range(*given.seeds), **how)
    print(result)
    result.save(given.out)


if __name__ == "__main__":
    main()

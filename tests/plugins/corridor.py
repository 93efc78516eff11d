"""An episodic environment."""

from dataclasses import dataclass

import numpy as np

from gfucb.environments import tabular_mdps
from gfucb.runs import EnvironmentConfig, register_environment


@dataclass(frozen=True)
class CorridorConfig(EnvironmentConfig):
    name: str = "corridor"
    num_tasks: int = 2
    length: int = 3
    """Number of states."""


@register_environment("corridor", kind="episodic", config=CorridorConfig)
def corridor(config, seed):
    n = config.length
    transitions, rewards = np.zeros((n, 2, n)), np.zeros((n, 2))
    for state in range(n):
        transitions[state, 0, max(state - 1, 0)] = 1
        transitions[state, 1, min(state + 1, n - 1)] = 1
    rewards[n - 1, 1] = 1.0
    tasks = range(config.num_tasks)
    return tabular_mdps(
        [transitions for _ in tasks], [rewards for _ in tasks], horizon=n, seed=seed
    )

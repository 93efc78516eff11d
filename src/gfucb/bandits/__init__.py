"""Bandit agents: GFUCB (Algorithm 1) and its baselines."""

from gfucb.bandits.baselines import EpsilonGreedy, Grouped, Uniform, linucb, multitask_greedy
from gfucb.bandits.batched import BatchedAgents
from gfucb.bandits.gfucb import GFUCB
from gfucb.bandits.neural_baselines import (
    neural_linear_ts,
    neural_linear_ucb,
    neural_ts,
    neural_ucb,
    perturbed_rewards,
    squarecb,
)

__all__ = [
    "GFUCB",
    "BatchedAgents",
    "EpsilonGreedy",
    "Grouped",
    "Uniform",
    "linucb",
    "multitask_greedy",
    "neural_linear_ts",
    "neural_linear_ucb",
    "neural_ts",
    "neural_ucb",
    "perturbed_rewards",
    "squarecb",
]

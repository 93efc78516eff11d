"""Bandit agents: GFUCB (Algorithm 1) and its baselines."""

from gfucb.bandits.baselines import EpsilonGreedy, Grouped, Uniform, linucb, multitask_greedy
from gfucb.bandits.batched import BatchedAgents
from gfucb.bandits.forgetting import Discounting, DriftDetection, SlidingWindow
from gfucb.bandits.gfucb import GFUCB
from gfucb.bandits.linear_baselines import LinearUCB
from gfucb.bandits.neural_baselines import (
    neural_linear_ts,
    neural_linear_ucb,
    neural_ts,
    neural_ucb,
    perturbed_rewards,
    squarecb,
)
from gfucb.bandits.pooled_tasks import PooledTasks
from gfucb.bandits.randomisation import Randomisation
from gfucb.bandits.randomised import Randomised

__all__ = [
    "GFUCB",
    "BatchedAgents",
    "Discounting",
    "DriftDetection",
    "EpsilonGreedy",
    "Grouped",
    "LinearUCB",
    "PooledTasks",
    "Randomisation",
    "Randomised",
    "SlidingWindow",
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

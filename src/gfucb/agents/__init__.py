"""Decisions: GFUCB and the baselines it is compared with."""

from gfucb.agents.baselines import EpsilonGreedy, Grouped, Uniform, linucb, multitask_greedy
from gfucb.agents.field import (
    neural_linear_ts,
    neural_linear_ucb,
    neural_ts,
    neural_ucb,
    perturbed_rewards,
    squarecb,
)
from gfucb.agents.fleet import Fleet
from gfucb.agents.gfucb import GFUCB
from gfucb.agents.saving import restore, save

__all__ = [
    "GFUCB",
    "EpsilonGreedy",
    "Fleet",
    "Grouped",
    "Uniform",
    "linucb",
    "multitask_greedy",
    "neural_linear_ts",
    "neural_linear_ucb",
    "neural_ts",
    "neural_ucb",
    "perturbed_rewards",
    "restore",
    "save",
    "squarecb",
]

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
from gfucb.agents.lsvi import LSVIUCB
from gfucb.agents.mdp import EpisodicGFUCB
from gfucb.agents.mdp_baselines import (
    EpisodicCopies,
    EpisodicEpsilonGreedy,
    fitted_q,
    lsvi_ucb,
    randomised_lsvi,
)
from gfucb.agents.saving import restore, save
from gfucb.agents.ucbvi import UCBVI

__all__ = [
    "GFUCB",
    "LSVIUCB",
    "UCBVI",
    "EpisodicCopies",
    "EpisodicEpsilonGreedy",
    "EpisodicGFUCB",
    "EpsilonGreedy",
    "Fleet",
    "Grouped",
    "Uniform",
    "fitted_q",
    "linucb",
    "lsvi_ucb",
    "multitask_greedy",
    "neural_linear_ts",
    "neural_linear_ucb",
    "neural_ts",
    "neural_ucb",
    "perturbed_rewards",
    "randomised_lsvi",
    "restore",
    "save",
    "squarecb",
]

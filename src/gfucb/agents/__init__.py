"""Decisions: GFUCB and the baselines it is compared with."""

from gfucb.agents.baselines import EpsilonGreedy, Grouped, Uniform, linucb, multitask_greedy
from gfucb.agents.gfucb import GFUCB
from gfucb.agents.lsvi import LSVIUCB
from gfucb.agents.mdp import EpisodicGFUCB
from gfucb.agents.mdp_baselines import (
    UCBVI,
    EpisodicCopies,
    EpisodicEpsilonGreedy,
    fitted_q,
    lsvi_ucb,
    randomised_lsvi,
)
from gfucb.agents.saving import restore, save

__all__ = [
    "GFUCB",
    "LSVIUCB",
    "UCBVI",
    "EpisodicCopies",
    "EpisodicEpsilonGreedy",
    "EpisodicGFUCB",
    "EpsilonGreedy",
    "Grouped",
    "Uniform",
    "fitted_q",
    "linucb",
    "lsvi_ucb",
    "multitask_greedy",
    "randomised_lsvi",
    "restore",
    "save",
]

"""Episodic agents: GFUCB for MDPs (Algorithm 2) and its baselines."""

from gfucb.episodic.baselines import (
    EpisodicEpsilonGreedy,
    fitted_q,
    lsvi_ucb,
    randomised_lsvi,
)
from gfucb.episodic.gfucb import EpisodicGFUCB
from gfucb.episodic.independent import IndependentEpisodicAgents
from gfucb.episodic.lsvi import LSVIUCB
from gfucb.episodic.ucbvi import UCBVI

__all__ = [
    "LSVIUCB",
    "UCBVI",
    "EpisodicEpsilonGreedy",
    "EpisodicGFUCB",
    "IndependentEpisodicAgents",
    "fitted_q",
    "lsvi_ucb",
    "randomised_lsvi",
]

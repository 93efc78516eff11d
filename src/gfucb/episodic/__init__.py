"""Episodic agents: GFUCB for MDPs (Algorithm 2) and its baselines."""

from gfucb.core.episode_batch import EpisodeBatch
from gfucb.episodic.baselines import (
    EpisodicEpsilonGreedy,
    fitted_q,
    lsvi_ucb,
    randomised_lsvi,
)
from gfucb.episodic.gfucb import EpisodicGFUCB
from gfucb.episodic.greedy_evaluation import GreedyEvaluation, SolvedCriterion, evaluate_greedy
from gfucb.episodic.greedy_policy import greedy_policy
from gfucb.episodic.independent import IndependentEpisodicAgents
from gfucb.episodic.lsvi import LSVIUCB
from gfucb.episodic.ucbvi import UCBVI

__all__ = [
    "LSVIUCB",
    "UCBVI",
    "EpisodeBatch",
    "EpisodicEpsilonGreedy",
    "EpisodicGFUCB",
    "GreedyEvaluation",
    "IndependentEpisodicAgents",
    "SolvedCriterion",
    "evaluate_greedy",
    "fitted_q",
    "greedy_policy",
    "lsvi_ucb",
    "randomised_lsvi",
]

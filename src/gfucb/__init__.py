"""Many related decision problems, each learning from all.

agent = gfucb.GFUCB(num_tasks=30, seed=0)
decision = agent.decide(candidates)
agent.observe(decision, rewards)
"""

from gfucb.bandits import (
    GFUCB,
    BatchedAgents,
    EpsilonGreedy,
    Uniform,
    linucb,
    multitask_greedy,
)
from gfucb.core.checkpoint import restore, save
from gfucb.core.errors import GFUCBError, InvalidInputError
from gfucb.core.records import Decision
from gfucb.episodic import EpisodicGFUCB
from gfucb.estimation import CalibratedRadius, ConstantRadius, VariableProjection
from gfucb.exploration import Greedy, LastLayer
from gfucb.models import FiniteClass, LinearClass, NeuralClass

__version__ = "0.1.0"

__all__ = [
    "GFUCB",
    "BatchedAgents",
    "CalibratedRadius",
    "ConstantRadius",
    "Decision",
    "EpisodicGFUCB",
    "EpsilonGreedy",
    "FiniteClass",
    "GFUCBError",
    "Greedy",
    "InvalidInputError",
    "LastLayer",
    "LinearClass",
    "NeuralClass",
    "Uniform",
    "VariableProjection",
    "linucb",
    "multitask_greedy",
    "restore",
    "save",
]

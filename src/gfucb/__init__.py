"""Many related bandits and episodic MDPs that learn one shared representation.

agent = gfucb.GFUCB(num_tasks=30, seed=0)
decision = agent.decide(candidates)
agent.observe(decision, rewards)

These names are what most programs need. Everything else is in the submodules: more baselines in
`gfucb.bandits` and `gfucb.episodic`, fits and radii in `gfucb.estimation`, action selectors in
`gfucb.exploration`, the protocols of all components in `gfucb.core.protocols`.
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

__all__ = [  # noqa: RUF022 - grouped by audience
    # To decide and learn: agents, baselines, and what they return.
    "GFUCB",
    "EpisodicGFUCB",
    "EpsilonGreedy",
    "Uniform",
    "linucb",
    "multitask_greedy",
    "Decision",
    # To run many replicas on one device.
    "BatchedAgents",
    # To choose the components of an agent: representations, fit, radius, action selector.
    "FiniteClass",
    "LinearClass",
    "NeuralClass",
    "VariableProjection",
    "CalibratedRadius",
    "ConstantRadius",
    "Greedy",
    "LastLayer",
    # To save and restore agents.
    "save",
    "restore",
    # To catch errors.
    "GFUCBError",
    "InvalidInputError",
]

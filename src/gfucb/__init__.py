"""Many related bandits and episodic MDPs that learn one shared representation.

agent = gfucb.GFUCB(num_tasks=30, seed=0)
decision = agent.decide(candidates)
agent.observe(decision, rewards)

These names are what most programs need. Everything else is in the submodules: more baselines in
`gfucb.bandits` and `gfucb.episodic`, fits and radii in `gfucb.estimation`, action selectors in
`gfucb.exploration`, the protocols of all components in `gfucb.core.protocols`.
"""

from typing import TYPE_CHECKING, Any

from gfucb import tables as tables  # `gfucb.tables` needs no import of its own
from gfucb.bandits import (
    GFUCB,
    BatchedAgents,
    EpsilonGreedy,
    Randomised,
    Uniform,
    linucb,
    multitask_greedy,
)
from gfucb.core.checkpoint import restore, save
from gfucb.core.discrete_actions import with_actions
from gfucb.core.errors import GFUCBError, InvalidInputError
from gfucb.core.records import Decision
from gfucb.episodic import EpisodicGFUCB
from gfucb.estimation import CalibratedRadius, ConstantRadius, VariableProjection
from gfucb.exploration import Greedy, LastLayer
from gfucb.models import FiniteClass, LinearClass, NeuralClass
from gfucb.serving import Agent, DecisionLog

if TYPE_CHECKING:
    from gfucb.runs.api import compare

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022 - grouped by audience
    # To decide and learn: agents, baselines, and what they return.
    "GFUCB",
    "EpisodicGFUCB",
    "EpsilonGreedy",
    "Uniform",
    "linucb",
    "multitask_greedy",
    "Randomised",
    "Decision",
    # To pass a context with discrete actions; `gfucb.tables` encodes whole tables.
    "with_actions",
    # To run an agent for months: named tasks, ids, a durable log.
    "Agent",
    "DecisionLog",
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
    # To compare agents.
    "compare",
    # To save and restore agents.
    "save",
    "restore",
    # To catch errors.
    "GFUCBError",
    "InvalidInputError",
]


def __getattr__(name: str) -> Any:
    # Loaded at first use: agents work without pandas and matplotlib.
    if name != "compare":
        raise AttributeError(f"module 'gfucb' has no attribute {name!r}")
    try:
        from gfucb.runs.api import compare
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"gfucb.compare needs {error.name}: pip install 'gfucb[experiments]'", name=error.name
        ) from error
    return compare

"""Many related bandits and episodic MDPs that learn one shared representation.

agent = gfucb.GFUCB(num_tasks=30, seed=0)
decision = agent.decide(candidates)
agent.observe(decision, rewards)

These names are what most programs need. Everything else is in the submodules: more baselines in
`gfucb.bandits` and `gfucb.episodic`, fits and radii in `gfucb.estimation`, action selectors in
`gfucb.exploration`, the protocols of all components in `gfucb.core.protocols`.
"""

import importlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from gfucb.runs.api import compare
    from gfucb.serving import Agent, DecisionLog

    # These need no import of their own; `import gfucb.runs` and the others do.
    from . import bandits as bandits
    from . import checks as checks
    from . import core as core
    from . import environments as environments
    from . import episodic as episodic
    from . import estimation as estimation
    from . import evaluation as evaluation
    from . import exploration as exploration
    from . import models as models
    from . import serving as serving
    from . import tables as tables
    from . import theory as theory

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

# Where the public names are defined. They are loaded at first use: `gfucb --help` then works
# without torch, and an agent without sqlite3, pandas and matplotlib.
_DEFINED_IN = {
    "gfucb.bandits": (
        "GFUCB",
        "BatchedAgents",
        "EpsilonGreedy",
        "Randomised",
        "Uniform",
        "linucb",
        "multitask_greedy",
    ),
    "gfucb.core.checkpoint": ("restore", "save"),
    "gfucb.core.discrete_actions": ("with_actions",),
    "gfucb.core.errors": ("GFUCBError", "InvalidInputError"),
    "gfucb.core.records": ("Decision",),
    "gfucb.episodic": ("EpisodicGFUCB",),
    "gfucb.estimation": ("CalibratedRadius", "ConstantRadius", "VariableProjection"),
    "gfucb.exploration": ("Greedy", "LastLayer"),
    "gfucb.models": ("FiniteClass", "LinearClass", "NeuralClass"),
    "gfucb.runs.api": ("compare",),
    "gfucb.serving": ("Agent", "DecisionLog"),
}
_MODULE_OF = {name: module for module, names in _DEFINED_IN.items() for name in names}
_SUBPACKAGES = frozenset(
    "bandits checks core environments episodic estimation evaluation exploration models serving "
    "tables theory".split()
)

# The program that uses the library decides where its messages go.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"gfucb.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gfucb' has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    except ModuleNotFoundError as error:
        if name != "compare":
            raise
        raise ModuleNotFoundError(
            f"gfucb.compare needs {error.name}: pip install 'gfucb[experiments]'", name=error.name
        ) from error
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBPACKAGES})

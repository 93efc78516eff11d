"""Runs, comparisons, tables, figures and reports.

Importing this package registers the built-in agents, environments and presets. What computes and
what analyses runs is loaded at first use: `gfucb compare --help` works without torch, and the
processes that compute runs work without pandas and matplotlib.
"""

import importlib
from typing import TYPE_CHECKING, Any

from gfucb.runs import (  # noqa: F401  (they register themselves)
    agents,
    environments,
    exploration_problems,
    gymnasium_problem,
    presets,
)
from gfucb.runs.build_run import make_agent, make_environment
from gfucb.runs.config import (
    AgentConfig,
    BanditAgentConfig,
    EnvironmentConfig,
    EpisodicAgentConfig,
    RunConfig,
)
from gfucb.runs.environments import (
    FiniteBanditConfig,
    ImageBanditConfig,
    LinearMDPConfig,
    LockConfig,
    RichLockConfig,
    SyntheticBanditConfig,
    TransformedImageConfig,
)
from gfucb.runs.exploration_problems import (
    ChainConfig,
    CombinationLockConfig,
    DeepSeaConfig,
    MountainCarConfig,
)
from gfucb.runs.gymnasium_problem import GymnasiumConfig
from gfucb.runs.plugins import load_plugins
from gfucb.runs.policy_registry import POLICIES, register_policy
from gfucb.runs.presets import PRESETS, Preset, register_preset
from gfucb.runs.registry import (
    ACTION_SELECTORS,
    AGENTS,
    ENVIRONMENTS,
    FITS,
    register_action_selector,
    register_agent,
    register_environment,
    register_fit,
)

if TYPE_CHECKING:
    from gfucb.runs.api import ComparisonResult, compare
    from gfucb.runs.comparison import Comparison, run_comparison
    from gfucb.runs.loop import play
    from gfucb.runs.single import run
    from gfucb.runs.summary import load_rows, summarise

__all__ = [
    "ACTION_SELECTORS",
    "AGENTS",
    "ENVIRONMENTS",
    "FITS",
    "POLICIES",
    "PRESETS",
    "AgentConfig",
    "BanditAgentConfig",
    "ChainConfig",
    "CombinationLockConfig",
    "Comparison",
    "ComparisonResult",
    "DeepSeaConfig",
    "EnvironmentConfig",
    "EpisodicAgentConfig",
    "FiniteBanditConfig",
    "GymnasiumConfig",
    "ImageBanditConfig",
    "LinearMDPConfig",
    "LockConfig",
    "MountainCarConfig",
    "Preset",
    "RichLockConfig",
    "RunConfig",
    "SyntheticBanditConfig",
    "TransformedImageConfig",
    "compare",
    "load_plugins",
    "load_rows",
    "make_agent",
    "make_environment",
    "play",
    "register_action_selector",
    "register_agent",
    "register_environment",
    "register_fit",
    "register_policy",
    "register_preset",
    "run",
    "run_comparison",
    "summarise",
]

_MODULE_OF = {
    "Comparison": "gfucb.runs.comparison",
    "ComparisonResult": "gfucb.runs.api",
    "compare": "gfucb.runs.api",
    "load_rows": "gfucb.runs.summary",
    "play": "gfucb.runs.loop",
    "run": "gfucb.runs.single",
    "run_comparison": "gfucb.runs.comparison",
    "summarise": "gfucb.runs.summary",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gfucb.runs' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

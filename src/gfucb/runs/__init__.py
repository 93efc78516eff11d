"""Evidence: runs, comparisons, tables, figures and reports."""

from gfucb.runs.bandit_agents import AGENTS, make_agent
from gfucb.runs.comparison import Comparison, compare
from gfucb.runs.config import AgentConfig, EnvironmentConfig, RunConfig, make_environment
from gfucb.runs.loop import play
from gfucb.runs.presets import PRESETS, preset
from gfucb.runs.single import run
from gfucb.runs.summary import load_rows, summarise

__all__ = [
    "AGENTS",
    "PRESETS",
    "AgentConfig",
    "Comparison",
    "EnvironmentConfig",
    "RunConfig",
    "compare",
    "load_rows",
    "make_agent",
    "make_environment",
    "play",
    "preset",
    "run",
    "summarise",
]

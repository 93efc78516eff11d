"""Evidence: runs, comparisons, tables, figures and reports."""

from gfucb.experiments.agent_table import AGENTS, make_agent
from gfucb.experiments.comparison import Comparison, compare
from gfucb.experiments.config import AgentConfig, RunConfig, WorldConfig, make_world
from gfucb.experiments.presets import PRESETS, preset
from gfucb.experiments.records import run
from gfucb.experiments.runner import play
from gfucb.experiments.summary import load_rows, summarise

__all__ = [
    "AGENTS",
    "PRESETS",
    "AgentConfig",
    "Comparison",
    "RunConfig",
    "WorldConfig",
    "compare",
    "load_rows",
    "make_agent",
    "make_world",
    "play",
    "preset",
    "run",
    "summarise",
]

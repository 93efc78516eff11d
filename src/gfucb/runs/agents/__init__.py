"""The built-in agents of the command line: one decorated factory each.

Importing this package registers them.
"""

from gfucb.runs.agents import (
    episodic,
    fits_and_selectors,
    gfucb,
    neural_agents,
    paper_procedure,
    simple_baselines,
)

__all__ = [
    "episodic",
    "fits_and_selectors",
    "gfucb",
    "neural_agents",
    "paper_procedure",
    "simple_baselines",
]

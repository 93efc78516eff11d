"""The built-in agents of the command line: one decorated factory each.

Importing this package registers them.
"""

from gfucb.runs.agents import (
    components,
    episodic,
    gfucb,
    neural_baselines,
    paper,
    simple_baselines,
)

__all__ = ["components", "episodic", "gfucb", "neural_baselines", "paper", "simple_baselines"]

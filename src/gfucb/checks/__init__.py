"""Checks for implementations of the protocols, in the manner of scikit-learn's `check_estimator`.

    gfucb.checks.check_bandit_agent(lambda: MyAgent(num_tasks=3))

Each check takes an implementation, or a function that builds it, and raises a `CheckError` that
states the property that does not hold. All shipped implementations pass.
"""

from gfucb.checks.assertions import CheckError
from gfucb.checks.bandits import check_bandit_agent, check_bandit_environment
from gfucb.checks.episodic_agents import check_episodic_agent
from gfucb.checks.episodic_environments import check_episodic_environment
from gfucb.checks.estimation import check_fit, check_squared_radius
from gfucb.checks.exploration import check_action_selector, selection_cases
from gfucb.checks.self_supervised_methods import check_self_supervision

__all__ = [
    "CheckError",
    "check_action_selector",
    "check_bandit_agent",
    "check_bandit_environment",
    "check_episodic_agent",
    "check_episodic_environment",
    "check_fit",
    "check_self_supervision",
    "check_squared_radius",
    "selection_cases",
]

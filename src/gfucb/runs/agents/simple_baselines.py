"""Linear baselines, oracles with the true features, and uniform actions."""

from __future__ import annotations

from gfucb.core.protocols import BanditAgent, BanditEnvironment
from gfucb.runs.config import BanditAgentConfig
from gfucb.runs.registry import register_agent

# Heads on the true features need little shrinkage. With ridge 1 their predictions start far
# below the rewards, and the oracle repeats the first digit it tries.
ORACLE_RIDGE = 0.1


@register_agent(
    "linucb",
    label="LinUCB per task",
    description="LinUCB on the raw inputs, one learner per task.",
    colour="#b8860b",
)
def independent_linucb(
    config: BanditAgentConfig, environment: BanditEnvironment, seed: int
) -> BanditAgent:
    """LinUCB without sharing."""
    from gfucb.bandits import linucb

    return linucb(environment.num_tasks, alpha=config.alpha, ridge=config.ridge)


@register_agent(
    "oracle-ucb",
    label="oracle UCB",
    description="LinUCB on the true representation.",
    colour="#222222",
    uses_true_features=True,
)
def oracle_ucb(config: BanditAgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    """LinUCB on the true features: what remains when the representation is known."""
    from gfucb.bandits import linucb

    return linucb(environment.num_tasks, alpha=config.alpha, ridge=ORACLE_RIDGE)


@register_agent(
    "oracle-greedy",
    label="oracle greedy",
    description="Greedy on the true representation.",
    colour="#777777",
    uses_true_features=True,
)
def oracle_greedy(
    config: BanditAgentConfig, environment: BanditEnvironment, seed: int
) -> BanditAgent:
    """Greedy on the true features."""
    from gfucb.bandits import linucb

    return linucb(environment.num_tasks, alpha=0.0, ridge=ORACLE_RIDGE)


@register_agent(
    "uniform",
    label="uniform",
    description="Actions chosen uniformly at random.",
    colour="#aaaaaa",
)
def uniform(config: BanditAgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    """Uniform actions."""
    from gfucb.bandits import Uniform

    return Uniform(environment.num_tasks, seed=seed)

"""GFUCB and the same model without its bonus."""

from __future__ import annotations

from gfucb.core.protocols import BanditAgent, BanditEnvironment
from gfucb.runs.agents.options import action_selector, learning_options, squared_radius
from gfucb.runs.config import BanditAgentConfig
from gfucb.runs.registry import register_agent


@register_agent(
    "gfucb",
    label="GFUCB",
    description="Algorithm 1 with the defaults of this library.",
    colour="#d55e00",
    relative_cost=20,
)
def gfucb(config: BanditAgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    """Algorithm 1."""
    from gfucb.bandits import GFUCB

    options = learning_options(config, environment, seed)
    return GFUCB(
        environment.num_tasks,
        squared_radius=squared_radius(config, environment),
        action_selector=action_selector(config),
        **options,
    )


@register_agent(
    "multitask-greedy",
    label="multitask greedy",
    description="Same model as GFUCB, no exploration bonus.",
    colour="#0072b2",
    relative_cost=20,
)
def greedy(config: BanditAgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    """The fit of GFUCB without a bonus."""
    from gfucb.bandits import multitask_greedy

    return multitask_greedy(environment.num_tasks, **learning_options(config, environment, seed))


@register_agent(
    "multitask-eps-greedy",
    label="multitask ε-greedy",
    description="Same model as GFUCB, a random action with probability epsilon.",
    colour="#56b4e9",
    relative_cost=20,
)
def eps_greedy(config: BanditAgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    """The fit of GFUCB with epsilon-greedy exploration."""
    from gfucb.bandits import EpsilonGreedy

    agent = greedy(config, environment, seed)
    return EpsilonGreedy(agent, epsilon=config.epsilon, seed=seed)


@register_agent(
    "independent-eps-greedy",
    label="independent ε-greedy",
    description="One network per task, ε-greedy: the paper's baseline.",
    colour="#009e73",
    relative_cost=60,
)
def independent_eps_greedy(
    config: BanditAgentConfig, environment: BanditEnvironment, seed: int
) -> BanditAgent:
    """Epsilon-greedy agents that do not share a representation."""
    from gfucb.bandits import EpsilonGreedy, Grouped, multitask_greedy

    options = learning_options(config, environment, seed)

    def make_group(num_tasks: int, group_seed: int) -> BanditAgent:
        agent = multitask_greedy(num_tasks, **(options | {"seed": group_seed}))
        return EpsilonGreedy(agent, epsilon=config.epsilon, seed=group_seed)

    return Grouped(environment.num_tasks, make_group, group_size=config.group_size, seed=seed)

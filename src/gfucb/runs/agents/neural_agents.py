"""Neural baselines, each with one network for all tasks and with one network per task."""

from __future__ import annotations

from collections.abc import Callable

from gfucb.core.protocols import BanditAgent, BanditEnvironment
from gfucb.runs.agents.options import learning_options, squared_radius
from gfucb.runs.config import BanditAgentConfig
from gfucb.runs.registry import register_agent

# (config, environment, number of tasks of the agent, seed) -> agent
SizedFactory = Callable[[BanditAgentConfig, BanditEnvironment, int, int], BanditAgent]


def _register(name: str, label: str, description: str) -> Callable[[SizedFactory], SizedFactory]:
    """Register a baseline as `name`, and one copy per task as `independent-name`."""

    def register(make: SizedFactory) -> SizedFactory:
        @register_agent(name, label=label, description=f"{description}.", relative_cost=40)
        def shared(
            config: BanditAgentConfig, environment: BanditEnvironment, seed: int
        ) -> BanditAgent:
            return make(config, environment, environment.num_tasks, seed)

        @register_agent(
            f"independent-{name}",
            label=f"{label} per task",
            description=f"{description}; one network per task.",
            relative_cost=200,
        )
        def independent(
            config: BanditAgentConfig, environment: BanditEnvironment, seed: int
        ) -> BanditAgent:
            from gfucb.bandits import Grouped

            return Grouped(
                environment.num_tasks,
                lambda num_tasks, group_seed: make(config, environment, num_tasks, group_seed),
                group_size=config.group_size,
                seed=seed,
            )

        return make

    return register


def _with_radius(name: str) -> SizedFactory:
    """The factory of a baseline whose bonus or sampling variance is scaled by a radius.

    Args:
        name: of the function of `gfucb.bandits` that makes the agent.
    """

    def make(
        config: BanditAgentConfig, environment: BanditEnvironment, num_tasks: int, seed: int
    ) -> BanditAgent:
        from gfucb import bandits

        constructor: Callable[..., BanditAgent] = getattr(bandits, name)
        return constructor(
            num_tasks,
            squared_radius=squared_radius(config, environment),
            **learning_options(config, environment, seed),
        )

    return make


_register(
    "neural-ucb", "NeuralUCB", "NeuralUCB: bonus from weights and heads, diagonal approximation"
)(_with_radius("neural_ucb"))
_register("neural-ts", "NeuralTS", "NeuralTS: Thompson sampling with the variances of NeuralUCB")(
    _with_radius("neural_ts")
)
_register("neural-linear-ucb", "Neural-Linear UCB", "Neural-Linear: LinUCB on the fitted features")(
    _with_radius("neural_linear_ucb")
)
_register("neural-linear-ts", "Neural-Linear TS", "Neural-Linear: Thompson sampling of the heads")(
    _with_radius("neural_linear_ts")
)


@_register("squarecb", "SquareCB", "SquareCB: inverse gap weighting of the predicted rewards")
def _squarecb(
    config: BanditAgentConfig, environment: BanditEnvironment, num_tasks: int, seed: int
) -> BanditAgent:
    from gfucb.bandits import squarecb

    options = learning_options(config, environment, seed)
    return squarecb(num_tasks, scale=config.gap_scale, **options)


@_register("npr", "NPR", "NPR: greedy on a fit to perturbed rewards")
def _npr(
    config: BanditAgentConfig, environment: BanditEnvironment, num_tasks: int, seed: int
) -> BanditAgent:
    from gfucb.bandits import perturbed_rewards

    options = learning_options(config, environment, seed)
    return perturbed_rewards(num_tasks, perturbation=config.perturbation, **options)

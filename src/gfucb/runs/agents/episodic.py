"""Agents for episodic MDPs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gfucb.core.environment_facts import (
    episode_range_of,
    observation_dim_of,
    representation_class_of,
    reward_range_of,
)
from gfucb.core.errors import InvalidInputError, lookup
from gfucb.core.protocols import EpisodicAgent, EpisodicEnvironment
from gfucb.runs.config import EpisodicAgentConfig
from gfucb.runs.registry import FITS, register_agent

if TYPE_CHECKING:
    from gfucb.models import RepresentationClass

EpisodicFactory = Callable[[EpisodicAgentConfig, EpisodicEnvironment, int], EpisodicAgent]


def representation_class(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> RepresentationClass:
    """The class that the settings name: of the environment, or a network."""
    known = {"given": _given, "network": _network}
    return lookup(known, config.representation, "representation")(config, environment, seed)


def _given(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> RepresentationClass:
    from gfucb.models import FiniteClass, IdentityRepresentation

    known = representation_class_of(environment)
    return FiniteClass([IdentityRepresentation()]) if known is None else known


def _network(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> RepresentationClass:
    from gfucb.core.random import random_stream
    from gfucb.models import NeuralClass
    from gfucb.models.nn.actionwise import actionwise_network
    from gfucb.models.nn.networks import default_network

    generator = random_stream(seed, "network")
    observation_dim = observation_dim_of(environment)
    if observation_dim is not None:  # inputs are (observation, one-hot action)
        sizes = {"feature_dim": config.feature_dim, "hidden": config.hidden}
        return NeuralClass(
            actionwise_network(observation_dim, environment.num_actions, generator, **sizes)
        )
    module = default_network(
        environment.episode(1).offered()[1].shape[2:],
        generator,
        feature_dim=config.feature_dim,
        num_directions=None,  # the simplex normalisation below replaces them
        hidden=config.hidden,
        dropout=0.0,
    )
    return NeuralClass(module, "simplex")


def _value_range(environment: EpisodicEnvironment) -> tuple[float, float]:
    stated = episode_range_of(environment)
    if stated is None:  # a user's environment
        raise InvalidInputError(
            "registered episodic agents need an environment that states the range of its sums of "
            f"rewards, got {type(environment).__name__} without value_range; pass "
            "value_range=(low, high) to it, or give `gfucb.compare` a function (environment, seed) "
            "-> agent"
        )
    return stated


def _bonus(config: EpisodicAgentConfig, environment: EpisodicEnvironment) -> float:
    """Multiplier of the standard deviation."""
    low, high = _value_range(environment)
    return config.bonus_scale * (high - low)


def _options(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> dict[str, Any]:
    """Arguments of all agents that plan by least squares."""
    return {
        "ridge": config.ridge,
        "value_range": _value_range(environment),
        "reward_range": reward_range_of(environment),
        "replan": config.replan,
        "seed": seed,
    }


def _learning_options(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> dict[str, Any]:
    """Arguments of all agents that learn a representation."""
    from gfucb.estimation import ConstantRadius

    options = _options(config, environment, seed) | {
        "squared_radius": ConstantRadius(_bonus(config, environment) ** 2),
        "share_stages": config.share_stages,
        "next_targets": config.next_targets,
        "reward_weight": config.reward_weight,
        "warm_start": config.warm_start,
    }
    fit = config.fit
    if fit == "default" and config.representation == "network":
        fit = "variable-projection"
    if fit != "default":
        options["fit"] = FITS[fit].factory(config)
    return options


def _default(num_tasks: int, environment: EpisodicEnvironment, seed: int) -> EpisodicAgent:
    """The default agent, with the ranges of rewards and of their sums."""
    from gfucb.episodic import EpisodicGFUCB

    return EpisodicGFUCB(
        num_tasks,
        environment.horizon,
        value_range=_value_range(environment),
        reward_range=reward_range_of(environment),
        seed=seed,
    )


def _register_gfucb(
    name: str, backup: str, label: str, description: str, colour: str
) -> EpisodicFactory:
    """Register Algorithm 2 with one of the backups."""

    @register_agent(name, label=label, description=description, colour=colour, kind="episodic")
    def gfucb(
        config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
    ) -> EpisodicAgent:
        from gfucb.episodic import EpisodicGFUCB

        if config.representation == "learned":
            return _default(environment.num_tasks, environment, seed)
        known = representation_class(config, environment, seed)
        options = _learning_options(config, environment, seed)
        return EpisodicGFUCB(
            environment.num_tasks, environment.horizon, known, backup=backup, **options
        )

    return gfucb


_register_gfucb(
    "gfucb-mdp", "pointwise", "GFUCB", "Algorithm 2, backing up optimistic values.", "#d55e00"
)
_register_gfucb(
    "gfucb-mdp-literal", "literal", "GFUCB, as printed", "Algorithm 2 as printed.", "#0072b2"
)
_register_gfucb(
    "gfucb-mdp-joint",
    "joint",
    "GFUCB, joint",
    "Algorithm 2 with one optimistic function per stage, chosen jointly.",
    "#b8860b",
)
_register_gfucb(
    "gfucb-mdp-randomised",
    "randomised",
    "GFUCB, randomised",
    "Algorithm 2 with perturbed least squares instead of a bonus.",
    "#cc79a7",
)


@register_agent(
    "gfucb-cells",
    label="GFUCB, default",
    description="EpisodicGFUCB with default arguments: learned abstract states.",
    kind="episodic",
)
def default_agent(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> EpisodicAgent:
    """The default agent, which has nothing to set but the range of the sums of rewards."""
    from gfucb.episodic import EpisodicGFUCB

    return EpisodicGFUCB(
        environment.num_tasks,
        environment.horizon,
        value_range=_value_range(environment),
        seed=seed,
    )


@register_agent(
    "independent-mdp",
    label="each task alone",
    description="gfucb-mdp, one learner per task.",
    colour="#009e73",
    kind="episodic",
    relative_cost=10,
)
def independent(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> EpisodicAgent:
    """Algorithm 2 without sharing."""
    from gfucb.episodic import EpisodicGFUCB, IndependentEpisodicAgents

    def one(task_seed: int) -> EpisodicAgent:
        if config.representation == "learned":
            return _default(1, environment, task_seed)
        known = representation_class(config, environment, task_seed)
        options = _learning_options(config, environment, task_seed)
        return EpisodicGFUCB(1, environment.horizon, known, **options)

    return IndependentEpisodicAgents(environment.num_tasks, one, seed=seed)


@register_agent(
    "lsvi-ucb",
    label="LSVI-UCB",
    description="LSVI-UCB on the inputs, one learner per task.",
    colour="#56b4e9",
    kind="episodic",
)
@register_agent(
    "oracle-lsvi-ucb",
    label="oracle LSVI-UCB",
    description="LSVI-UCB on the true representation.",
    colour="#222222",
    kind="episodic",
    uses_true_features=True,
)
def lsvi(config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int) -> EpisodicAgent:
    """LSVI-UCB on the features it receives."""
    from gfucb.episodic import lsvi_ucb

    return lsvi_ucb(
        environment.num_tasks,
        environment.horizon,
        # Through the square, as the radius of the other agents: results stay bit-identical.
        beta=(_bonus(config, environment) ** 2) ** 0.5,
        **_options(config, environment, seed),
    )


@register_agent(
    "lsvi-ucb-learned",
    label="LSVI-UCB, learned",
    description="LSVI-UCB on a learned network, one per task.",
    kind="episodic",
    relative_cost=10,
)
def learned_lsvi(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> EpisodicAgent:
    """LSVI-UCB with a network for each task."""
    return independent(replace(config, representation="network"), environment, seed)


@register_agent(
    "ucbvi",
    label="UCBVI",
    description="UCBVI on a table of the distinct inputs, one learner per task.",
    kind="episodic",
)
def ucbvi(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> EpisodicAgent:
    """UCBVI, which counts visits of each distinct input."""
    from gfucb.episodic import UCBVI

    return UCBVI(
        environment.num_tasks,
        environment.horizon,
        bonus=_bonus(config, environment),
        value_range=_value_range(environment),
    )


@register_agent(
    "randomised-lsvi",
    label="randomised LSVI",
    description="Randomised LSVI on the inputs, one learner per task.",
    kind="episodic",
)
def randomised(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> EpisodicAgent:
    """Randomised least-squares value iteration."""
    from gfucb.episodic import randomised_lsvi

    return randomised_lsvi(
        environment.num_tasks,
        environment.horizon,
        noise_scale=(_bonus(config, environment) ** 2) ** 0.5,
        **_options(replace(config, replan="every"), environment, seed),
    )


@register_agent(
    "fitted-q",
    label="fitted Q, ε-greedy",
    description="Fitted Q-iteration on the shared representation, ε-greedy.",
    kind="episodic",
)
def shared_fitted_q(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> EpisodicAgent:
    """Algorithm 2 without a bonus, with epsilon-greedy exploration."""
    from gfucb.episodic import fitted_q
    from gfucb.estimation import ConstantRadius

    known = representation_class(config, environment, seed)
    options = _learning_options(config, environment, seed) | {"squared_radius": ConstantRadius(0.0)}
    return fitted_q(
        environment.num_tasks, environment.horizon, known, epsilon=config.epsilon, **options
    )


@register_agent(
    "uniform-mdp",
    label="uniform",
    description="Actions chosen uniformly at random.",
    colour="#aaaaaa",
    kind="episodic",
)
def uniform(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> EpisodicAgent:
    """Uniform actions."""
    from gfucb.episodic import EpisodicEpsilonGreedy

    return EpisodicEpsilonGreedy(ucbvi(config, environment, seed), epsilon=1.0, seed=seed)

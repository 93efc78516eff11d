"""From the names of agents to agents for episodic MDPs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gfucb.core.errors import lookup
from gfucb.core.protocols import EpisodicAgent
from gfucb.core.random import random_stream
from gfucb.environments import LinearMDPs, TabularMDPs
from gfucb.episodic import (
    UCBVI,
    EpisodicEpsilonGreedy,
    EpisodicGFUCB,
    IndependentEpisodicAgents,
    fitted_q,
    lsvi_ucb,
    randomised_lsvi,
)
from gfucb.estimation import ConstantRadius, VariableProjection
from gfucb.models import FiniteClass, IdentityRepresentation, NeuralClass, RepresentationClass
from gfucb.models.nn.actionwise import actionwise_network
from gfucb.models.nn.networks import default_network


@dataclass(frozen=True)
class EpisodicAgentConfig:
    """The learner. Settings an agent does not have are ignored by it."""

    name: str = "gfucb-mdp"
    """Which agent; an unknown name lists the known ones."""
    bonus_scale: float = 0.3
    """The bonus of an input is this times its width, in units of the value range."""
    ridge: float = 0.1
    """Penalty on heads."""
    representation: str = "given"
    """What agents that learn a representation are told: given (the class of the environment, or its
    inputs as they are), or network."""
    replan: str = "determinant"
    """When to plan anew: determinant, doubling or every."""
    share_stages: bool = False
    """One representation for all stages."""
    next_targets: int = 0
    """Directions of the next observation that networks also learn to predict."""
    reward_weight: float = 0.0
    """How loud ranks of rewards are among what networks also learn to predict; 0 for none."""
    warm_start: bool = True
    """Begin a fit of a network at the one before, not at the first weights."""
    fit_steps: int = 60
    """Gradient steps in one fit of a network."""
    fit_rate: float = 1e-2
    """Learning rate of these steps."""
    weight_decay: float = 0.0
    """Weight decay of these steps."""
    fit_batch: int = 1024
    """Samples one step looks at, of all tasks together."""
    fit_window: int = 64
    """Of these, at most so many of one task, stage and target."""
    feature_dim: int = 8
    """Width of networks' features."""
    hidden: int = 32
    """Hidden units of networks."""
    epsilon: float = 0.1
    """fitted-q: probability of an action at random."""


EpisodicAgentFactory = Callable[[EpisodicAgentConfig, TabularMDPs, int], EpisodicAgent]


@dataclass(frozen=True)
class EpisodicAgentEntry:
    """How an agent is built, and what it is shown."""

    description: str
    make: EpisodicAgentFactory
    reads_truth: bool = False
    """Oracles are shown the true features instead of the inputs."""


def make_episodic_agent(
    config: EpisodicAgentConfig, environment: TabularMDPs, seed: int
) -> EpisodicAgent:
    """Build the agent of a config for a environment."""
    return lookup(EPISODIC_AGENTS, config.name, "agent").make(config, environment, seed)


def representation_class(
    config: EpisodicAgentConfig, environment: TabularMDPs, seed: int
) -> RepresentationClass:
    """What an agent is told of phi: the environment's class, its inputs as they are, or a network."""
    return lookup(REPRESENTATIONS, config.representation, "representation")(
        config, environment, seed
    )


def _given(config: EpisodicAgentConfig, environment: TabularMDPs, seed: int) -> RepresentationClass:
    if isinstance(environment, LinearMDPs) and environment.representation_class is not None:
        return environment.representation_class
    return FiniteClass([IdentityRepresentation()])


def _network(
    config: EpisodicAgentConfig, environment: TabularMDPs, seed: int
) -> RepresentationClass:
    generator = random_stream(seed, "network")
    if environment.decoding is not None:  # inputs are (observation, one-hot action)
        observation_dim = environment.inputs.shape[-1] - environment.num_actions
        sizes = {"feature_dim": config.feature_dim, "hidden": config.hidden}
        return NeuralClass(
            actionwise_network(observation_dim, environment.num_actions, generator, **sizes)
        )
    module = default_network(
        environment.inputs.shape[2:],
        generator,
        feature_dim=config.feature_dim,
        num_directions=None,  # they become a point of the simplex
        hidden=config.hidden,
        dropout=0.0,
    )
    return NeuralClass(module, "simplex")


RepresentationMaker = Callable[[EpisodicAgentConfig, TabularMDPs, int], RepresentationClass]
REPRESENTATIONS: Mapping[str, RepresentationMaker] = {"given": _given, "network": _network}


def _options(config: EpisodicAgentConfig, environment: TabularMDPs, seed: int) -> dict[str, Any]:
    low, high = environment.values_lie_in
    return {
        "squared_radius": ConstantRadius((config.bonus_scale * (high - low)) ** 2),
        "ridge": config.ridge,
        "value_range": (low, high),
        "reward_range": environment.reward_range,
        "replan": config.replan,
        "seed": seed,
    }


def _learning_options(
    config: EpisodicAgentConfig, environment: TabularMDPs, seed: int
) -> dict[str, Any]:
    options = _options(config, environment, seed)
    options |= {
        "share_stages": config.share_stages,
        "next_targets": config.next_targets,
        "reward_weight": config.reward_weight,
        "warm_start": config.warm_start,
    }
    if config.representation != "given":
        options["fit"] = VariableProjection(
            steps=config.fit_steps,
            max_steps=config.fit_steps,
            learning_rate=config.fit_rate,
            samples_at_full_rate=0,
            weight_decay=config.weight_decay,
            batch_size=config.fit_batch,
            samples_per_task=config.fit_window,
        )
    return options


def _gfucb(backup: str) -> EpisodicAgentFactory:
    def make(config: EpisodicAgentConfig, environment: TabularMDPs, seed: int) -> EpisodicAgent:
        known = representation_class(config, environment, seed)
        options = _learning_options(config, environment, seed)
        return EpisodicGFUCB(
            environment.num_tasks, environment.horizon, known, backup=backup, **options
        )

    return make


def _copies(config: EpisodicAgentConfig, environment: TabularMDPs, seed: int) -> EpisodicAgent:
    def one(copy_seed: int) -> EpisodicAgent:
        known = representation_class(config, environment, copy_seed)
        options = _learning_options(config, environment, copy_seed)
        return EpisodicGFUCB(1, environment.horizon, known, **options)

    return IndependentEpisodicAgents(environment.num_tasks, one, seed=seed)


def _learned_lsvi(
    config: EpisodicAgentConfig, environment: TabularMDPs, seed: int
) -> EpisodicAgent:
    return _copies(replace(config, representation="network"), environment, seed)


def _given_options(
    config: EpisodicAgentConfig, environment: TabularMDPs, seed: int
) -> dict[str, Any]:
    options = _options(config, environment, seed)
    radius = options.pop("squared_radius")
    return options | {"beta": radius.value**0.5}


def _lsvi_ucb(config: EpisodicAgentConfig, environment: TabularMDPs, seed: int) -> EpisodicAgent:
    return lsvi_ucb(
        environment.num_tasks, environment.horizon, **_given_options(config, environment, seed)
    )


def _randomised(config: EpisodicAgentConfig, environment: TabularMDPs, seed: int) -> EpisodicAgent:
    options = _given_options(config, environment, seed)
    scale = options.pop("beta")
    options["replan"] = "every"
    return randomised_lsvi(environment.num_tasks, environment.horizon, noise_scale=scale, **options)


def _ucbvi(config: EpisodicAgentConfig, environment: TabularMDPs, seed: int) -> EpisodicAgent:
    low, high = environment.values_lie_in
    bonus = config.bonus_scale * (high - low)
    return UCBVI(environment.num_tasks, environment.horizon, bonus=bonus, value_range=(low, high))


def _fitted_q(config: EpisodicAgentConfig, environment: TabularMDPs, seed: int) -> EpisodicAgent:
    known = representation_class(config, environment, seed)
    options = _learning_options(config, environment, seed) | {"squared_radius": ConstantRadius(0.0)}
    return fitted_q(
        environment.num_tasks, environment.horizon, known, epsilon=config.epsilon, **options
    )


def _uniform(config: EpisodicAgentConfig, environment: TabularMDPs, seed: int) -> EpisodicAgent:
    return EpisodicEpsilonGreedy(_ucbvi(config, environment, seed), epsilon=1.0, seed=seed)


EPISODIC_AGENTS: Mapping[str, EpisodicAgentEntry] = {
    "gfucb-mdp": EpisodicAgentEntry("Algorithm 2 with upper values backed up", _gfucb("pointwise")),
    "gfucb-mdp-literal": EpisodicAgentEntry("Algorithm 2 as printed", _gfucb("literal")),
    "gfucb-mdp-joint": EpisodicAgentEntry("one member a stage, chosen together", _gfucb("joint")),
    "gfucb-mdp-randomised": EpisodicAgentEntry("perturbed least squares", _gfucb("randomised")),
    "independent-mdp": EpisodicAgentEntry("gfucb-mdp for each task alone", _copies),
    "lsvi-ucb": EpisodicAgentEntry("LSVI-UCB for each task on the inputs as they are", _lsvi_ucb),
    "lsvi-ucb-learned": EpisodicAgentEntry(
        "LSVI-UCB for each task on a network of its own", _learned_lsvi
    ),
    "oracle-lsvi-ucb": EpisodicAgentEntry(
        "LSVI-UCB on the true representation", _lsvi_ucb, reads_truth=True
    ),
    "ucbvi": EpisodicAgentEntry("UCBVI for each task on states told apart", _ucbvi),
    "randomised-lsvi": EpisodicAgentEntry("randomised LSVI on the inputs as they are", _randomised),
    "fitted-q": EpisodicAgentEntry("fitted Q on the shared representation, at random", _fitted_q),
    "uniform-mdp": EpisodicAgentEntry("actions at random", _uniform),
}

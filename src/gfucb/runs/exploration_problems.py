"""Exploration problems of the command line: locks with fresh noise, bsuite, mountain cars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gfucb.core.protocols import EpisodicEnvironment
from gfucb.runs.config import EnvironmentConfig
from gfucb.runs.registry import register_environment

if TYPE_CHECKING:
    from gfucb.environments import RichObservationMDPs, TabularMDPs


@dataclass(frozen=True)
class CombinationLockConfig(EnvironmentConfig):
    """Combination locks with fresh observation noise in every step."""

    name: str = "combination-lock"
    """Which environment; an unknown name lists the known ones."""
    num_tasks: int = 5
    """M, the number of tasks."""
    num_actions: int = 10
    """A, the number of actions."""
    horizon: int = 12
    """H, the number of stages."""
    noise_scale: float = 0.1
    """Standard deviation of the observation noise."""
    emission: Literal["hadamard", "nonlinear", "identity"] = "hadamard"
    """How observations hide the latent state: a rotation, a random network, or not at all."""
    temperature: float | None = None
    """Randomness of the latent state given the observation; without it the state is determined."""
    dense: bool = False
    """Pay 0.1 for every right action instead of a reward for wrong ones."""


@dataclass(frozen=True)
class DeepSeaConfig(EnvironmentConfig):
    """Deep sea of bsuite: only one sequence of actions finds the treasure."""

    name: str = "deep-sea"
    """Which environment; an unknown name lists the known ones."""
    num_tasks: int = 5
    """M, the number of tasks."""
    size: int = 10
    """N, the number of columns and of stages."""
    stochastic: bool = False
    """Whether moves to the right may fail and rewards at the end have noise."""


@dataclass(frozen=True)
class ChainConfig(EnvironmentConfig):
    """Chains of bsuite: the first action decides, rewards come later."""

    name: str = "umbrella-chain"
    """Which environment; an unknown name lists the known ones."""
    num_tasks: int = 5
    """M, the number of tasks."""
    horizon: int = 10
    """H, the number of stages."""


@dataclass(frozen=True)
class MountainCarConfig(EnvironmentConfig):
    """Mountain cars that pay 1 at the goal."""

    name: str = "mountain-car"
    """Which environment; an unknown name lists the known ones."""
    num_tasks: int = 3
    """M, the number of tasks, which differ in their gravity."""
    horizon: int = 30
    """H, the number of stages."""
    action_repeat: int = 6
    """Steps of an action."""


@register_environment(
    "combination-lock",
    label="Combination locks with fresh noise",
    description="The locks of HOMER and BRIEE: no observation is seen twice.",
    kind="episodic",
    config=CombinationLockConfig,
)
def combination_locks(config: CombinationLockConfig, seed: int) -> RichObservationMDPs:
    """The standard lock, with one emission for all tasks."""
    from gfucb.environments import combination_lock

    return combination_lock(
        config.horizon,
        config.num_actions,
        num_tasks=config.num_tasks,
        noise_scale=config.noise_scale,
        emission=config.emission,
        temperature=config.temperature,
        dense=config.dense,
        seed=seed,
    )


@register_environment(
    "deep-sea",
    label="Deep sea",
    description="Deep sea of bsuite; tasks differ in which action is right.",
    kind="episodic",
    config=DeepSeaConfig,
)
def deep_seas(config: DeepSeaConfig, seed: int) -> TabularMDPs:
    """Deep sea, with or without noise."""
    from gfucb.environments import deep_sea

    return deep_sea(
        config.size, num_tasks=config.num_tasks, stochastic=config.stochastic, seed=seed
    )


@register_environment(
    "umbrella-chain",
    label="Umbrella chain",
    description="Umbrella chain of bsuite: the first action decides the last reward.",
    kind="episodic",
    config=ChainConfig,
)
def umbrella_chains(config: ChainConfig, seed: int) -> TabularMDPs:
    """The umbrella chain."""
    from gfucb.environments import umbrella_chain

    return umbrella_chain(config.horizon, num_tasks=config.num_tasks, seed=seed)


@register_environment(
    "discounting-chain",
    label="Discounting chain",
    description="Discounting chain of bsuite: early rewards hide a larger late one.",
    kind="episodic",
    config=ChainConfig,
)
def discounting_chains(config: ChainConfig, seed: int) -> TabularMDPs:
    """The discounting chain."""
    from gfucb.environments import discounting_chain

    return discounting_chain(config.horizon, num_tasks=config.num_tasks, seed=seed)


@register_environment(
    "mountain-car",
    label="Mountain cars",
    description="Gymnasium's mountain car with a sparse reward; tasks differ in their gravity.",
    kind="episodic",
    config=MountainCarConfig,
)
def mountain_car(config: MountainCarConfig, seed: int) -> EpisodicEnvironment:
    """Mountain cars, which need Gymnasium."""
    from gfucb.environments.mountain_car import mountain_cars

    return mountain_cars(
        config.horizon,
        num_tasks=config.num_tasks,
        action_repeat=config.action_repeat,
        seed=seed,
    )

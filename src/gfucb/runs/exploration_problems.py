"""Exploration problems of the command line: locks with fresh noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gfucb.environments import RichObservationMDPs, combination_lock
from gfucb.runs.config import EnvironmentConfig
from gfucb.runs.registry import register_environment


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


@register_environment(
    "combination-lock",
    label="Combination locks with fresh noise",
    description="The locks of HOMER and BRIEE: no observation is seen twice.",
    kind="episodic",
    config=CombinationLockConfig,
)
def combination_locks(config: CombinationLockConfig, seed: int) -> RichObservationMDPs:
    """The standard lock, with one emission for all tasks."""
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

"""Gymnasium environments in `gfucb run` and `gfucb compare`: one's own, or installed ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import EpisodicEnvironment
from gfucb.runs.config import EnvironmentConfig
from gfucb.runs.registry import register_environment


@dataclass(frozen=True)
class GymnasiumConfig(EnvironmentConfig):
    """Gymnasium environments as tasks, with discrete actions."""

    name: str = "gymnasium"
    """Which environment; an unknown name lists the known ones."""
    num_tasks: int = 2
    """M, the number of tasks; each has an environment object of its own."""
    env: str = "FrozenLake-v1"
    """What gymnasium.make accepts: the id of a registered environment, or module:id. Your own is
    registered by a file for --plugin."""
    horizon: int = 20
    """H, the largest number of steps of an episode."""
    settings: str = "{}"
    """Arguments of gymnasium.make as JSON: an object for all tasks, or a list with one for each,
    such as '[{"is_slippery": false}, {"is_slippery": true}]'."""
    value_range: tuple[float, float] = (0.0, 1.0)
    """Smallest and largest sum of rewards of an episode."""


@register_environment(
    "gymnasium",
    label="Gymnasium environments",
    description="Environments of Gymnasium, installed ones or your own, as tasks.",
    kind="episodic",
    config=GymnasiumConfig,
)
def gymnasium_tasks(config: GymnasiumConfig, seed: int) -> EpisodicEnvironment:
    """One environment object for each task."""
    try:
        # Not at the top: Gymnasium is optional.
        import gymnasium

        from gfucb.environments.gymnasium import GymnasiumMDPs, register_environments
    except ModuleNotFoundError as error:
        raise InvalidInputError(
            "environment gymnasium needs Gymnasium: pip install 'gfucb[gymnasium]'"
        ) from error
    register_environments()
    try:
        made = [gymnasium.make(config.env, **own) for own in task_settings(config)]
    except (gymnasium.error.Error, TypeError, ModuleNotFoundError) as error:
        raise InvalidInputError(
            f"gymnasium.make cannot make {config.env!r}: {error}. Register an environment of your "
            "own by gymnasium.register in a file, and pass the file by --plugin"
        ) from error
    return GymnasiumMDPs(made, config.horizon, seed=seed, value_range=config.value_range)


def task_settings(config: GymnasiumConfig) -> list[dict[str, Any]]:
    """The arguments of each task."""
    try:
        given = json.loads(config.settings)
    except ValueError as error:
        raise InvalidInputError(
            f"--environment.settings must be JSON, got {config.settings!r}: {error}"
        ) from error
    found = given if isinstance(given, list) else [given] * config.num_tasks
    if len(found) != config.num_tasks or not all(isinstance(own, dict) for own in found):
        raise InvalidInputError(
            "--environment.settings must be an object, or a list of one object for each of the "
            f"{config.num_tasks} tasks, got {config.settings!r}"
        )
    return found

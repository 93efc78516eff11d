"""Where the agents and the environment of a comparison come from.

A source is a registered name, settings, or an object or function of the user. It builds
the component and states what config.json records about it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from gfucb.core.errors import InvalidInputError
from gfucb.runs.build_run import (
    make_agent,
    make_environment,
    modules_of_agent,
    modules_of_environment,
)
from gfucb.runs.config import AgentConfig, EnvironmentConfig
from gfucb.runs.loop import AnyAgent, AnyEnvironment, gymnasium_cure
from gfucb.runs.registry import AGENTS, default_agent_config, default_environment_config
from gfucb.runs.source_digest import source_digest
from gfucb.runs.stored_settings import default_settings

NEITHER = ", which has no method round or episode, see gfucb.core.protocols"
EnvironmentLike = str | EnvironmentConfig | AnyEnvironment | Callable[[int], AnyEnvironment]
AgentLike = str | AgentConfig | Callable[[Any, int], AnyAgent]
AgentsLike = Sequence[str | AgentConfig] | Mapping[str, AgentLike]


@dataclass(frozen=True)
class Source:
    """How an agent or an environment is made.

    Attributes:
        make: from (environment, seed) to an agent, or from the seed to an environment.
        settings: what config.json records.
        defaults: of settings that a run stored by an earlier version may not state.
        uses_true_features: whether the agent receives the true features.
        relative_cost: run time of the agent relative to others, roughly.
        modules: those that define it, if it is registered; plugins among them are versioned.
    """

    make: Callable[..., Any]
    settings: Mapping[str, Any]
    uses_true_features: bool = False
    relative_cost: float = 1.0
    defaults: Mapping[str, Any] = field(default_factory=dict)
    modules: Sequence[str] = ()


def is_environment(given: object) -> bool:
    """Whether this is a bandit or episodic environment, and not a class of them."""
    has_method = hasattr(given, "round") or hasattr(given, "episode")
    return has_method and not isinstance(given, type)


def environment_source(given: EnvironmentLike, data_dir: str | None) -> Source:
    """The source of an environment, see `compare`."""
    if isinstance(given, str):
        given = default_environment_config(given)
    if isinstance(given, EnvironmentConfig):
        make = partial(make_environment, given, data_dir=data_dir)
        return Source(
            make,
            dataclasses.asdict(given),
            defaults=default_settings(given),
            modules=modules_of_environment(given),
        )
    if is_environment(given):
        same = partial(_same, cast(AnyEnvironment, given))
        return Source(same, _own_settings(type(given).__name__, given))
    if callable(given):
        name = getattr(given, "__name__", type(given).__name__)
        return Source(given, _own_settings(str(name), given))
    raise InvalidInputError(
        "environment must be a name, settings, an environment or a function from the seed to "
        f"one, got {type(given).__name__}{gymnasium_cure(given) or NEITHER}"
    )


def agent_sources(given: AgentsLike) -> dict[str, Source]:
    """The sources of agents by name, see `compare`."""
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, Mapping):
        names = [agent if isinstance(agent, str) else _config_name(agent) for agent in given]
        if len(set(names)) < len(names):
            raise InvalidInputError(
                f"agents must have different names, got {names}; a mapping gives them names"
            )
        given = dict(zip(names, given, strict=True))
    if not given:
        raise InvalidInputError("agents must not be empty")
    return {_validated_name(name): _agent_source(name, agent) for name, agent in given.items()}


def _validated_name(name: object) -> str:
    """The name, if it can be that of a directory of runs."""
    if not isinstance(name, str) or name.strip(". ") == "" or set(name) & set("/\\\0"):
        raise InvalidInputError(
            "the name of an agent is also that of a directory: a text without / and \\, got "
            f"{name!r}"
        )
    return name


def _config_name(agent: object) -> str:
    if isinstance(agent, AgentConfig):
        return agent.name
    raise InvalidInputError(
        "a list of agents has names and settings; give functions of your own as a mapping, "
        f"{{'my agent': function}}, got {type(agent).__name__}"
    )


def _agent_source(name: str, given: AgentLike) -> Source:
    if isinstance(given, str):
        given = default_agent_config(given)
    if isinstance(given, AgentConfig):
        entry = AGENTS[given.name]
        settings = dataclasses.asdict(given) | {"name": name}
        if name != given.name:
            settings["registered_name"] = given.name
        make = partial(_registered_agent, given)
        return Source(
            make,
            settings,
            entry.uses_true_features,
            entry.relative_cost,
            default_settings(given),
            modules_of_agent(given),
        )
    if callable(given):
        return Source(given, _own_settings(name, given))
    raise InvalidInputError(
        f"agent {name!r} must be a name, settings or a function (environment, seed) -> agent, "
        f"got {type(given).__name__}"
    )


def _registered_agent(config: AgentConfig, environment: AnyEnvironment, seed: int) -> AnyAgent:
    return make_agent(config, environment, seed)


def _same(environment: AnyEnvironment, seed: int) -> AnyEnvironment:
    return environment


def _own_settings(name: str, definition: Any) -> dict[str, Any]:
    """The name and a digest of the code: a directory with results of other code is refused."""
    return {"name": name, "source_digest": source_digest(definition)}

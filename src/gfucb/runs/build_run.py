"""From the config of a run to its environment, its agent and its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from gfucb.core.data_directories import data_directory
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import (
    BanditAgent,
    BanditEnvironment,
    EpisodicAgent,
    EpisodicEnvironment,
)
from gfucb.runs.config import (
    AgentConfig,
    BanditAgentConfig,
    EnvironmentConfig,
    EpisodicAgentConfig,
    RunConfig,
)
from gfucb.runs.plugins import loaded_modules, plugin_versions
from gfucb.runs.registry import ACTION_SELECTORS, AGENTS, ENVIRONMENTS, FITS, Kind, Registry
from gfucb.runs.work import AgentRun

if TYPE_CHECKING:
    from gfucb.core.records import Row
    from gfucb.runs.loop import AnyAgent, AnyEnvironment

Config = TypeVar("Config", EnvironmentConfig, AgentConfig)


def make_environment(
    config: EnvironmentConfig, seed: int, data_dir: str | None = None
) -> AnyEnvironment:
    """Build the environment of a config; `data_dir` has the files of those that read data."""
    entry = ENVIRONMENTS[config.name]
    _require_type(config, entry.config, "environment")
    if entry.uses_data_dir:
        return entry.factory(config, seed, data_dir and str(data_directory(data_dir)))
    return entry.factory(config, seed)


@overload
def make_agent(
    config: BanditAgentConfig, environment: BanditEnvironment, seed: int
) -> BanditAgent: ...
@overload
def make_agent(
    config: EpisodicAgentConfig, environment: EpisodicEnvironment, seed: int
) -> EpisodicAgent: ...
@overload
def make_agent(config: AgentConfig, environment: AnyEnvironment, seed: int) -> AnyAgent: ...
def make_agent(config: AgentConfig, environment: AnyEnvironment, seed: int) -> AnyAgent:
    """Build the agent of a config for an environment."""
    entry = AGENTS[config.name]
    _require_type(config, entry.config, "agent")
    kind: Kind = "episodic" if hasattr(environment, "episode") else "bandit"
    _require_kind(config.name, kind, f"this {type(environment).__name__}")
    return entry.factory(config, environment, seed)


def prepare(config: RunConfig, data_dir: str | None = None) -> AgentRun:
    """The agent of a run in its environment."""
    require_same_kind(config.environment.name, config.agent.name)
    environment = make_environment(config.environment, config.seed, data_dir)
    agent = make_agent(config.agent, environment, config.seed)
    uses_true_features = AGENTS[config.agent.name].uses_true_features
    return agent_run(agent, environment, config.num_rounds, uses_true_features)


def agent_run(
    agent: AnyAgent, environment: AnyEnvironment, num_rounds: int, uses_true_features: bool
) -> AgentRun:
    """The run of an agent in an environment, see `play`."""
    from gfucb.runs.loop import play  # not at the top: it needs torch

    def rows(rounds_done: int, cumulative_regret: float) -> Iterator[Row]:
        return play(
            cast(Any, agent),  # `play` checks that agent and environment are of one kind
            cast(Any, environment),
            num_rounds=num_rounds,
            uses_true_features=uses_true_features,
            rounds_done=rounds_done,
            cumulative_regret=cumulative_regret,
        )

    return AgentRun(agent, rows)


def require_same_kind(environment: str, agent: str) -> None:
    """Refuse an agent that is not for the kind of a registered environment."""
    _require_kind(agent, ENVIRONMENTS[environment].kind, f"environment {environment!r}")


def _require_kind(agent: str, kind: Kind, environment: str) -> None:
    if AGENTS[agent].kind != kind:
        fitting = ", ".join(sorted(name for name in AGENTS if AGENTS[name].kind == kind))
        raise InvalidInputError(
            f"{environment} is {_ARTICLE[kind]} environment, agent {agent!r} is for "
            f"{AGENTS[agent].kind} environments; agents for {kind} environments are: {fitting}"
        )


_ARTICLE: Mapping[Kind, str] = {"bandit": "a bandit", "episodic": "an episodic"}


def config_from(stored: Mapping[str, Any]) -> RunConfig:
    """The config of a run from the nested dictionaries in config.json.

    Raises:
        KeyError: if a component is not registered or a section is missing.
        TypeError: if a setting is not known.
    """
    environment, agent = dict(stored["environment"]), dict(stored["agent"])
    return RunConfig(
        ENVIRONMENTS[environment["name"]].config(**environment),
        AGENTS[agent["name"]].config(**agent),
        stored["num_rounds"],
        stored["seed"],
    )


def modules_of_environment(config: EnvironmentConfig) -> list[str]:
    """The modules that define an environment, plugins among them."""
    if config.name == "gymnasium":  # made by Gymnasium, in which any plugin may register it
        return loaded_modules()
    return [ENVIRONMENTS.module_of(config.name)]


def modules_of_agent(config: AgentConfig) -> list[str]:
    """The modules that define an agent, its fit and its action selector."""
    parts: tuple[tuple[Registry[Any], str], ...] = (
        (AGENTS, config.name),
        (FITS, getattr(config, "fit", "")),
        (ACTION_SELECTORS, getattr(config, "action_selector", "")),
    )
    return [registry.module_of(name) for registry, name in parts if name in registry]


def plugin_settings(modules: Iterable[str]) -> dict[str, Any]:
    """The versions of the plugins that define parts of a run, as config.json records them.

    A directory with runs of a plugin that was changed since is refused; runs that were stored
    without a version are taken for runs of this one.
    """
    versions = plugin_versions(modules)
    return {"plugins": versions} if versions else {}


def with_settings(name: str, settings: AgentConfig) -> AgentConfig:
    """The config of agent `name` with those of `settings` that it has."""
    config = AGENTS[name].config
    shared = {field.name for field in fields(config)} & {field.name for field in fields(settings)}
    values = {field: getattr(settings, field) for field in shared}
    return config(**(values | {"name": name}))


def _require_type(config: Config, expected: type[Config], noun: str) -> None:
    # Exactly this type: `config_from` cannot restore the fields of a subclass.
    if type(config) is not expected:
        raise InvalidInputError(
            f"{noun} {config.name!r} needs settings of type {expected.__name__}, "
            f"got {type(config).__name__}"
        )

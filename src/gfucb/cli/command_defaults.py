"""Defaults of `run` and `compare`: some words on the command line decide those of the others.

The preset decides the environment, agents, seeds and number of rounds. The name of the
environment and the names of the agents decide which settings there are. Plugins add names. These
words are read first; then tyro parses the whole line with the defaults that follow from them.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, cast

import tyro

from gfucb.runs.build_run import with_settings
from gfucb.runs.config import AgentConfig, EnvironmentConfig
from gfucb.runs.plugins import load_plugins
from gfucb.runs.presets import PRESETS, Preset
from gfucb.runs.registry import AGENTS, ENVIRONMENTS, default_agent_config

# The preset of a command line that names none, for each kind of environment.
DEFAULT_PRESETS = {"bandit": "digits", "episodic": "linear-mdp"}


@dataclass(frozen=True)
class Choices:
    """The words that decide the defaults of others; None where they are absent."""

    preset: str | None
    environment: str | None
    agent: str | None
    agents: tuple[str, ...] | None

    @classmethod
    def read(cls, words: Sequence[str]) -> Choices:
        """Read them, and load the plugins that the line names."""
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
        parser.add_argument("--plugin", nargs="*", default=[])
        parser.add_argument("--preset", nargs="?")
        parser.add_argument("--environment.name", dest="environment", nargs="?")
        parser.add_argument("--agent.name", dest="agent", nargs="?")
        parser.add_argument("--agents", nargs="*")
        found, _ = parser.parse_known_args(list(words))
        load_plugins(Path(path) for path in found.plugin)
        agents = tuple(found.agents) if found.agents else None
        return cls(found.preset, found.environment, found.agent, agents)

    def preset_name(self) -> str:
        """The preset named, or the one for the kind of environment."""
        if self.preset is not None:
            return self.preset
        kind = "bandit" if self.environment is None else ENVIRONMENTS[self.environment].kind
        return DEFAULT_PRESETS[kind]

    def defaults(self) -> dict[str, Any]:
        """Defaults that `run` and `compare` share."""
        preset = PRESETS[self.preset_name()]
        return {
            "preset": self.preset_name(),
            "environment": self._environment(preset),
            "num_rounds": preset.num_rounds,
        }

    def run_defaults(self) -> dict[str, Any]:
        """Defaults of `run`."""
        preset = PRESETS[self.preset_name()]
        name = self.agent or preset.agent.name
        return self.defaults() | {"agent": with_settings(name, _values(preset, [name]))}

    def compare_defaults(self) -> dict[str, Any]:
        """Defaults of `compare`."""
        preset = PRESETS[self.preset_name()]
        agents = self.agents or preset.agents
        values = _values(preset, agents)
        settings = shared_settings([AGENTS[name].config for name in agents], values)
        return self.defaults() | {"agents": agents, "agent": settings, "seeds": preset.seeds}

    def _environment(self, preset: Preset) -> EnvironmentConfig:
        if self.environment is None or self.environment == preset.environment.name:
            return preset.environment
        config = ENVIRONMENTS[self.environment].config
        if self.preset is None:
            return config(name=self.environment)
        # A preset that is named explicitly gives the settings that both environments have.
        names = {field.name for field in fields(config)}
        own = {f.name for f in fields(preset.environment)} & names - {"name"}
        values = {name: getattr(preset.environment, name) for name in own}
        return config(**(values | {"name": self.environment}))


def _values(preset: Preset, agents: Sequence[str]) -> AgentConfig:
    """The values of the preset for agents of its kind; settings of other agents mean other things.

    An agent of another kind cannot be run, which the command says after the settings are read.
    """
    kinds = {AGENTS[name].kind for name in agents}
    is_fitting = AGENTS[preset.agent.name].kind in kinds
    return preset.agent if is_fitting else default_agent_config(agents[0])


def shared_settings(configs: Sequence[type[AgentConfig]], values: AgentConfig) -> AgentConfig:
    """One object with the settings of several agents; its name cannot be set.

    It has every field of every config class, with the value in `values` where there is one.
    """
    # Subclasses before their bases, as Python requires.
    bases = tuple(sorted(dict.fromkeys(configs), key=lambda config: -len(config.__mro__)))
    fixed_name = ("name", Annotated[str, tyro.conf.Fixed, tyro.conf.Suppress], "")
    settings: Any = dataclasses.make_dataclass(
        "AgentSettings", [fixed_name], bases=bases, frozen=True
    )
    shared = {field.name for field in fields(settings)} & {field.name for field in fields(values)}
    own = {name: getattr(values, name) for name in shared - {"name"}}
    return cast(AgentConfig, settings(**own))

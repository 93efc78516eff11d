"""The registry: name, label, colour, description, settings and factory of each component.

An agent, an environment, a fit or an action selector is added by one decorator:

    @register_agent("my-agent", description="What it does.")
    def my_agent(config, environment, seed):
        return MyAgent(environment.num_tasks, seed=seed)

Built-in components use the same decorators. Their factories import what they build: the settings of
the command line are known without torch. `gfucb.runs.plugins` imports users' files.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from gfucb.core.errors import InvalidInputError, lookup
from gfucb.core.protocols import ActionSelector, LeastSquares
from gfucb.runs.config import (
    AgentConfig,
    BanditAgentConfig,
    EnvironmentConfig,
    EpisodicAgentConfig,
)

if TYPE_CHECKING:
    from gfucb.runs.loop import AnyAgent, AnyEnvironment

Kind = Literal["bandit", "episodic"]
# The config and the environment are those of the entry: their types are not known here.
AgentFactory = Callable[[Any, Any, int], "AnyAgent"]
EnvironmentFactory = Callable[..., "AnyEnvironment"]
FitFactory = Callable[[Any], LeastSquares]
SelectorFactory = Callable[[Any], ActionSelector]
Factory = TypeVar("Factory", bound=Callable[..., Any])
Entry = TypeVar("Entry")

# For agents without a colour of their own; different from the colours of built-in agents.
PALETTE = ("#7f3c8d", "#80ba5a", "#8c564b", "#3969ac", "#e73f74", "#11a579", "#a5aa99", "#f2b701")
KIND_CONFIGS: Mapping[Kind, type[AgentConfig]] = {
    "bandit": BanditAgentConfig,
    "episodic": EpisodicAgentConfig,
}


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by name, in the order of registration. An unknown name lists the known ones."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._entries: dict[str, Entry] = {}
        self._origins: dict[str, tuple[str, str]] = {}

    def register(self, name: str, entry: Entry, origin: object) -> None:
        """Add an entry; `origin` is the function or class that defines it.

        The same definition may be registered again, for example by a notebook cell that runs
        twice. A second definition of one name is refused.
        """
        module = str(getattr(origin, "__module__", type(origin).__module__))
        source = (module, str(getattr(origin, "__qualname__", type(origin).__qualname__)))
        known = self._origins.get(name, source)
        if known != source:
            raise InvalidInputError(
                f"{self.noun} {name!r} is registered already, by {known[0]}; choose another name"
            )
        self._entries[name] = entry
        self._origins[name] = source

    def module_of(self, name: str) -> str:
        """The module that defines an entry."""
        return self._origins[name][0]

    def __getitem__(self, name: str) -> Entry:
        return lookup(self._entries, name, self.noun)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(frozen=True)
class AgentEntry:
    """An agent of the command line.

    Attributes:
        name: what `--agents` and `--agent.name` accept.
        factory: from (config, environment, seed) to the agent.
        kind: bandit or episodic.
        config: the dataclass of its settings.
        label: its name in figures and tables.
        description: one sentence for `gfucb presets` and the report.
        colour: its colour in figures; None for one that no other agent of the figure has.
        relative_cost: run time relative to LinUCB, roughly. Long runs start first, and the time
            left is estimated with it.
        uses_true_features: whether the candidates it receives are the true features of the
            environment instead of the inputs. True for oracles only.
    """

    name: str
    factory: AgentFactory
    kind: Kind
    config: type[AgentConfig]
    label: str
    description: str
    colour: str | None = None
    relative_cost: int = 1
    uses_true_features: bool = False


@dataclass(frozen=True)
class EnvironmentEntry:
    """An environment of the command line.

    Attributes:
        name: what `--environment.name` accepts.
        factory: from (config, seed) to the environment.
        kind: bandit or episodic.
        config: the dataclass of its settings.
        label: its name in the title of the report.
        description: one sentence for `gfucb presets`.
        uses_data_dir: whether the factory takes the directory of data files as a third argument.
    """

    name: str
    factory: EnvironmentFactory
    kind: Kind
    config: type[EnvironmentConfig]
    label: str
    description: str
    uses_data_dir: bool = False


@dataclass(frozen=True)
class FitEntry:
    """A fit of `--agent.fit`; the factory takes the config of the agent."""

    name: str
    factory: FitFactory
    description: str


@dataclass(frozen=True)
class SelectorEntry:
    """An action selector of `--agent.action-selector`; the factory takes the agent's config."""

    name: str
    factory: SelectorFactory
    description: str


AGENTS: Registry[AgentEntry] = Registry("agent")
ENVIRONMENTS: Registry[EnvironmentEntry] = Registry("environment")
FITS: Registry[FitEntry] = Registry("fit")
ACTION_SELECTORS: Registry[SelectorEntry] = Registry("action selector")


def register_agent(
    name: str,
    *,
    description: str = "",
    label: str | None = None,
    kind: Kind = "bandit",
    config: type[AgentConfig] | None = None,
    colour: str | None = None,
    relative_cost: int = 1,
    uses_true_features: bool = False,
) -> Callable[[Factory], Factory]:
    """Register the decorated factory (config, environment, seed) -> agent under `name`.

    `config` is a subclass of `AgentConfig` whose fields have defaults; by default
    `BanditAgentConfig` or `EpisodicAgentConfig`. See `AgentEntry` for the other arguments.
    """

    def register(factory: Factory) -> Factory:
        entry = AgentEntry(
            name=name,
            factory=factory,
            kind=kind,
            config=config or KIND_CONFIGS[kind],
            label=label or name,
            description=description,
            colour=colour,
            relative_cost=relative_cost,
            uses_true_features=uses_true_features,
        )
        AGENTS.register(name, entry, factory)
        return factory

    return register


def register_environment(
    name: str,
    *,
    description: str = "",
    label: str | None = None,
    kind: Kind = "bandit",
    config: type[EnvironmentConfig] = EnvironmentConfig,
    uses_data_dir: bool = False,
) -> Callable[[Factory], Factory]:
    """Register the decorated factory (config, seed) -> environment under `name`.

    `config` is a subclass of `EnvironmentConfig` whose fields have defaults. See
    `EnvironmentEntry` for the other arguments.
    """

    def register(factory: Factory) -> Factory:
        entry = EnvironmentEntry(
            name=name,
            factory=factory,
            kind=kind,
            config=config,
            label=label or name,
            description=description,
            uses_data_dir=uses_data_dir,
        )
        ENVIRONMENTS.register(name, entry, factory)
        return factory

    return register


def register_fit(name: str, *, description: str = "") -> Callable[[Factory], Factory]:
    """Register the decorated factory config -> fit under `name`."""

    def register(factory: Factory) -> Factory:
        FITS.register(name, FitEntry(name, factory, description), factory)
        return factory

    return register


def register_action_selector(name: str, *, description: str = "") -> Callable[[Factory], Factory]:
    """Register the decorated factory config -> action selector under `name`."""

    def register(factory: Factory) -> Factory:
        ACTION_SELECTORS.register(name, SelectorEntry(name, factory, description), factory)
        return factory

    return register


def agent_label(name: str) -> str:
    """The label of an agent; its name if it is not registered."""
    return AGENTS[name].label if name in AGENTS else name


def agent_colours(names: Iterable[str]) -> dict[str, str]:
    """The colour of each agent in a figure of these agents.

    Agents with a registered colour have it in every figure. The others share the palette.
    """
    known = {name: AGENTS[name].colour if name in AGENTS else None for name in sorted(names)}
    palette = itertools.cycle(PALETTE)
    return {name: colour or next(palette) for name, colour in known.items()}


def default_environment_config(name: str) -> EnvironmentConfig:
    """The settings of an environment, all at their defaults."""
    return ENVIRONMENTS[name].config(name=name)


def default_agent_config(name: str) -> AgentConfig:
    """The settings of an agent, all at their defaults."""
    return AGENTS[name].config(name=name)

"""Agents made of other agents: their states under prefixed names, their settings, their means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Agent
from gfucb.core.records import Row
from gfucb.core.setting_descriptions import INITIAL_WEIGHTS
from gfucb.core.validation.states import validate_state


def mean_diagnostics(agents: Sequence[Agent]) -> Row:
    """Each diagnostic as the mean over the agents that report it."""
    values: dict[str, list[float]] = {}
    for agent in agents:
        for name, value in agent.diagnostics().items():
            values.setdefault(name, []).append(float(value))
    return {name: sum(own) / len(own) for name, own in values.items()}


def with_prefix(prefix: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state with `prefix` before every name."""
    return {f"{prefix}{name}": tensor for name, tensor in state.items()}


def below(prefix: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names start with `prefix`, under the rest of their names."""
    return {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}


def numbered_states(agents: Sequence[Agent]) -> dict[str, Tensor]:
    """The states of all agents in one, each name after the number of its agent: "3/heads"."""
    states = [with_prefix(prefix, agent.state()) for prefix, agent in numbered(agents).items()]
    return {name: tensor for state in states for name, tensor in state.items()}


def load_numbered_states(agents: Sequence[Agent], state: Mapping[str, Tensor]) -> None:
    """Load what `numbered_states` returned; if one agent refuses its part, none changes."""
    validate_state(state)
    numbers = {str(number) for number in range(len(agents))}
    for name in state:
        if name.partition("/")[0] not in numbers or "/" not in name:
            raise InvalidInputError(
                f"the state has an unexpected tensor {name!r}; names start with the number of an "
                f"agent, 0/ to {len(agents) - 1}/"
            )
    load_all_or_none((agent, below(prefix, state)) for prefix, agent in numbered(agents).items())


def load_all_or_none(parts: Iterable[tuple[Agent, dict[str, Tensor]]]) -> None:
    """Load a state into each agent; if one refuses, those before it get their old state back."""
    loaded: list[tuple[Agent, dict[str, Tensor]]] = []
    try:
        for agent, state in parts:
            loaded.append((agent, agent.state()))
            agent.load_state(state)
    except BaseException:
        for agent, before in loaded:
            agent.load_state(before)
        raise


def nested_settings(agents: Mapping[str, Agent]) -> dict[str, str]:
    """The settings of agents, given by the prefix of their names in the state.

    They are stated under "inner agent" (the type) and "inner agent.<name>". A setting that all
    agents share is stated once, any other one for each agent. Initial weights have the prefix of
    the state of their agent, because they count only where that state holds no weights.
    """
    own, initial_weights = [], {}
    for prefix, agent in agents.items():
        settings = {"inner agent": type(agent).__name__}
        for name, value in agent.settings().items():
            if name.endswith(INITIAL_WEIGHTS):
                initial_weights[f"{prefix}{name}"] = value
            else:
                settings[f"inner agent.{name}"] = value
        own.append(settings)
    names = dict.fromkeys(name for settings in own for name in settings)
    merged = {name: _merged([s.get(name, "not stated") for s in own]) for name in names}
    return merged | initial_weights


def numbered(agents: Sequence[Agent]) -> dict[str, Agent]:
    """The agents by the prefix of their names in `numbered_states`."""
    return {f"{number}/": agent for number, agent in enumerate(agents)}


def _merged(values: list[str]) -> str:
    if len(set(values)) == 1:
        return values[0]
    return "; ".join(f"{number}: {value}" for number, value in enumerate(values))

"""Agents made of other agents: their states under prefixed names, their settings, their means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Agent
from gfucb.core.records import Row
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
    states = [with_prefix(f"{number}/", agent.state()) for number, agent in enumerate(agents)]
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
    load_all_or_none((agent, below(f"{number}/", state)) for number, agent in enumerate(agents))


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


def nested_settings(agents: Sequence[Agent]) -> dict[str, str]:
    """The settings of all agents under "inner agent" (the type) and "inner agent.<name>".

    A setting that all agents share is stated once, any other one for each agent.
    """
    own = [
        {"inner agent": type(agent).__name__}
        | {f"inner agent.{name}": value for name, value in agent.settings().items()}
        for agent in agents
    ]
    names = dict.fromkeys(name for settings in own for name in settings)
    return {name: _merged([s.get(name, "not stated") for s in own]) for name in names}


def _merged(values: list[str]) -> str:
    if len(set(values)) == 1:
        return values[0]
    return "; ".join(f"{number}: {value}" for number, value in enumerate(values))

"""Computations that give rows and can be continued from a saved state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from gfucb.core.errors import SavedStateError
from gfucb.core.protocols import Agent

if TYPE_CHECKING:
    from torch import Tensor

    from gfucb.core.records import Row

RowsFrom = Callable[[int, float], Iterator["Row"]]
T = TypeVar("T", int, float)


@dataclass(frozen=True)
class WorkState:
    """What a computation needs to continue: tensors and numbers as text, by name."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)


class Work(Protocol):
    """A computation that gives rows one after another."""

    def rows(self) -> Iterator[Row]:
        """The rows that follow the loaded state, or all."""

    def state(self) -> WorkState | None:
        """What is needed to continue after the last row; None if the work starts over instead."""

    def load_state(self, state: WorkState) -> None:
        """Continue from the state of equal work."""


@dataclass(frozen=True)
class ComputedRows:
    """Rows that a function returns all at once."""

    function: Callable[[], Sequence[Row]]

    def rows(self) -> Iterator[Row]:
        """Call the function."""
        yield from self.function()

    def state(self) -> None:
        """Nothing: interrupted work starts over."""

    def load_state(self, state: WorkState) -> None:
        """Refuse: this work has no state."""
        raise SavedStateError("these rows are computed at once and have no saved state")


class AgentRun:
    """An agent that plays in an environment.

    Args:
        agent: the agent, whose state is saved.
        rows_from: from the number of rounds done and the cumulative regret to the rows that
            follow, see `gfucb.runs.loop.play`.
    """

    def __init__(self, agent: Agent, rows_from: RowsFrom) -> None:
        self.agent, self._rows_from = agent, rows_from
        self.rounds_done, self.cumulative_regret = 0, 0.0

    def rows(self) -> Iterator[Row]:
        """Play the remaining rounds."""
        for row in self._rows_from(self.rounds_done, self.cumulative_regret):
            self.rounds_done = int(row["round"])
            self.cumulative_regret = float(row.get("cumulative_regret", 0.0))
            yield row

    def state(self) -> WorkState:
        """The agent, the number of rounds and the regret."""
        facts = {"round": str(self.rounds_done), "regret": repr(self.cumulative_regret)}
        return WorkState(self.agent.state(), facts)

    def load_state(self, state: WorkState) -> None:
        """Continue after the rounds of `state`."""
        rounds_done = number(state.facts, "round", int)
        regret = number(state.facts, "regret", float)
        self.agent.load_state(state.tensors)
        self.rounds_done, self.cumulative_regret = rounds_done, regret


def number(facts: Mapping[str, str], name: str, kind: Callable[[str], T]) -> T:
    """A number of a saved state."""
    try:
        return kind(facts[name])
    except (KeyError, ValueError):
        raise SavedStateError(
            f"the checkpoint has no valid {name!r}; remove it to start the run over"
        ) from None

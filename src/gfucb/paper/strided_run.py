"""A long run of an agent that gives a row every few rounds and can be continued."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from gfucb.core.protocols import BanditAgent, BanditEnvironment
from gfucb.core.records import Row
from gfucb.runs.loop import play
from gfucb.runs.work import AgentRun, WorkState, number


class StridedRun:
    """An agent in an environment, as `Work`: a row every `stride` rounds.

    Args:
        agent: the agent, not yet trained.
        environment: where it plays.
        num_rounds: T.
        stride: the number of rounds between two rows.
        row: from the round, the cumulative regret and the wall seconds so far to a row.
    """

    def __init__(
        self,
        agent: BanditAgent,
        environment: BanditEnvironment,
        *,
        num_rounds: int,
        stride: int,
        row: Callable[[int, float, float], Row],
    ) -> None:
        self._run = AgentRun(agent, partial(_rounds, agent, environment, num_rounds))
        self._stride, self._row, self._seconds = stride, row, 0.0

    def rows(self) -> Iterator[Row]:
        """Play the remaining rounds."""
        # The time at which a run without interruption would have started.
        started = time.perf_counter() - self._seconds
        for _ in self._run.rows():
            if self._run.rounds_done % self._stride == 0:
                self._seconds = time.perf_counter() - started
                yield self._row(self._run.rounds_done, self._run.cumulative_regret, self._seconds)

    def state(self) -> WorkState:
        """The state of the run, and the seconds."""
        state = self._run.state()
        return WorkState(state.tensors, state.facts | {"seconds": repr(self._seconds)})

    def load_state(self, state: WorkState) -> None:
        """Continue after the rounds of `state`."""
        seconds = number(state.facts, "seconds", float)
        self._run.load_state(state)
        self._seconds = seconds


def _rounds(
    agent: BanditAgent,
    environment: BanditEnvironment,
    num_rounds: int,
    rounds_done: int,
    cumulative_regret: float,
) -> Iterator[Row]:
    return play(
        agent,
        environment,
        num_rounds=num_rounds,
        rounds_done=rounds_done,
        cumulative_regret=cumulative_regret,
    )

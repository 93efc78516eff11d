"""A change of an agent: stored in the log and applied to the model together, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gfucb.bandits import GFUCB
from gfucb.core.errors import DecisionLogError
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.log_records import LogEvent, RowChange
from gfucb.serving.live_model import LiveModel
from gfucb.serving.log_replay import operation_of
from gfucb.serving.operations import Operation
from gfucb.serving.roster import Roster
from gfucb.serving.task_numbers import TaskNumbers


class Change:
    """The events of one transaction; their operations are applied at once."""

    def __init__(self, log: DecisionStore, agent: GFUCB, numbers: TaskNumbers) -> None:
        self._log = log
        self._agent = agent
        # A `NUMBERS` event of this change is not in them yet; they give the same numbers.
        self._numbers = numbers
        self.events: list[LogEvent] = []
        self.operations: list[Operation] = []
        self._num_ended = self._num_kept = 0

    def add(
        self, kind: str, detail: Mapping[str, Any], changes: Sequence[RowChange] = ()
    ) -> LogEvent:
        """Store an event and apply its operation."""
        event = self._log.add_event(kind, detail, changes)
        operation = operation_of(event, self._log, self._numbers)
        if operation is not None:
            operation.apply(self._agent)
            self.operations.append(operation)
        self.events.append(event)
        return event

    def end(self, model: LiveModel, roster: Roster) -> None:
        """The log has the events: so have the roster, and a fit that is under way, each once."""
        for event in self.events[self._num_ended :]:
            roster.apply(event)
            self._num_ended += 1
        for operation in self.operations[self._num_kept :]:
            model.keep(operation)
            self._num_kept += 1


@contextmanager
def changing(log: DecisionStore, model: LiveModel, roster: Roster) -> Iterator[Change]:
    """One transaction of the log. If it fails, the model and the roster are those of before."""
    before = model.agent.snapshot()
    change = Change(log, model.agent, roster.numbers)
    try:
        with log.transaction():
            yield change
        change.end(model, roster)
    except BaseException:
        if is_stored(log, change.events):  # an interrupt that came after the log was written
            change.end(model, roster)
        else:
            model.agent = before
        raise


def is_stored(log: DecisionStore, events: Sequence[LogEvent]) -> bool:
    """Whether a log has these events, after the transaction that wrote them has raised an error."""
    try:
        return bool(events) and log.last_event()[0] >= events[-1].number
    except DecisionLogError:
        return False  # the log is closed, and with it the agent

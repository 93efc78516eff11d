"""From the events of a log to the agent that they describe."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cache

import torch

import gfucb.serving.roster as kinds
from gfucb.core.errors import DecisionLogError, InvalidInputError
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.log_records import LogEvent, LoggedDecision, LoggedRow, RowStatus
from gfucb.core.logs import log as log_line
from gfucb.core.threads import torch_threads
from gfucb.serving.live_model import LiveModel
from gfucb.serving.names import decode_name
from gfucb.serving.operations import GrowTo, LearnSamples, ObserveRows, Operation
from gfucb.serving.roster import Roster
from gfucb.serving.task_numbers import TaskNumbers

# The kinds of events that change the model. `CLOSE_ROWS` changes rows without a reward.
OBSERVE, LEARN, FIT, CLOSE_ROWS, GROW = "observe", "learn", "fit", "close rows", "grow"
GROWING = (GROW, kinds.TASKS, kinds.NUMBERS)
# In the detail of a session: how many threads of torch all of its calls and fits had.
THREADS = "threads"
LOGGER = logging.getLogger(__name__)
REWARDED = (RowStatus.REWARDED, RowStatus.DEFAULT)


def operation_of(event: LogEvent, log: DecisionStore, numbers: TaskNumbers) -> Operation | None:
    """The change of the model by an event, with these numbers of tasks; None if there is none."""
    detail = event.detail
    if event.kind in GROWING:
        return GrowTo(detail["num_tasks"]) if "num_tasks" in detail else None
    if event.kind == LEARN:
        tasks = torch.tensor(numbers.of(log.tensor(detail["tasks"]).tolist()))
        return LearnSamples(tasks, log.tensor(detail["inputs"]), log.tensor(detail["rewards"]))
    if event.kind == OBSERVE:
        rows = _rewarded(event, log)
        own = numbers.of([row.task for _, row in rows])
        rows = [(d, replace(row, task=task)) for (d, row), task in zip(rows, own, strict=True)]
        rewards = [change.reward for change in event.changes if change.reward is not None]
        defers_first = bool(detail.get("defers_first_fit", False))  # logs of earlier versions: no
        return ObserveRows(rows, rewards, bool(detail["defers_fits"]), defers_first)
    return None


def is_learned(detail: Mapping[str, str], log: DecisionStore) -> bool:
    """Whether samples of this source were learned before; other samples of it are refused."""
    for event in log.events(0, [LEARN]):
        if event.detail.get("source") == detail["source"]:
            if event.detail != detail:
                raise InvalidInputError(
                    f"the source {decode_name(detail['source'])!r} was learned before, with other "
                    "samples; pass the new ones only, with another name"
                )
            return True
    return False


def _rewarded(event: LogEvent, log: DecisionStore) -> list[tuple[LoggedDecision, LoggedRow]]:
    """The rows that got rewards in an event, each with its decision."""
    rows, decision_of = [], cache(log.decision)
    for change in event.changes:
        decision = decision_of(change.decision)
        if decision is None or change.reward is None or change.status not in REWARDED:
            raise DecisionLogError(f"event {event.number} of {log.name} is damaged")
        rows.append((decision, decision.rows[change.row]))
    return rows


def replay(log: DecisionStore, model: LiveModel, roster: Roster, after: int = 0) -> None:
    """Apply all events after number `after` to a model that has applied all before.

    A fit is made from the state in which it was begun, and the operations until it was ready are
    then applied to it again, as they were by the agent that wrote the log.
    """
    with ExitStack() as threads:
        _replay(log, model, roster, after, threads)


def _replay(
    log: DecisionStore, model: LiveModel, roster: Roster, after: int, threads: ExitStack
) -> None:
    for event in log.events(0, kinds.KINDS):
        if event.number <= after:
            _use_threads(event, threads)
            roster.apply(event)
    starts = {event.detail["start"] for event in log.events(after, [FIT])}
    refit = model.begin_fit() if after in starts else None
    num_events = 0
    for event in log.events(after):
        num_events += 1
        _use_threads(event, threads)
        if event.kind == FIT:
            if refit is None:
                raise DecisionLogError(
                    f"event {event.number} of {log.name} is a fit that no event has begun"
                )
            refit.run(only_due=bool(event.detail.get("only_due", False)))  # earlier logs: no
            model.end_fit(refit)
        else:
            roster.apply(event)
            operation = operation_of(event, log, roster.numbers)
            if operation is not None:
                operation.apply(model.agent)
                model.keep(operation)
        if event.number in starts:
            refit = model.begin_fit()
    if num_events:
        log_line(
            LOGGER,
            logging.INFO,
            "replayed %(num_events)d events of %(log_name)s after event %(after)d",
            num_events=num_events,
            log_name=log.name,
            after=after,
        )


def _use_threads(event: LogEvent, threads: ExitStack) -> None:
    """From the begin of a session on, its number of threads; without one that of the caller."""
    if event.kind == kinds.OPEN:
        threads.close()
        if THREADS in event.detail:
            threads.enter_context(torch_threads(event.detail[THREADS]))

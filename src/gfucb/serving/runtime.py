"""The parts of a running agent: lock, log, model, names, session, and the worker that fits."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

from gfucb.bandits import GFUCB
from gfucb.core.errors import DecisionLogError
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.log_records import RowChange
from gfucb.core.processes import OwnerProcess
from gfucb.core.threads import torch_threads
from gfucb.serving.changes import Change, changing
from gfucb.serving.checkpoints import checkpoint_path
from gfucb.serving.log_replay import CLOSE_ROWS, OBSERVE, THREADS
from gfucb.serving.logged_schema import require_same_encoding, schema_text
from gfucb.serving.opening import open_session, rebuild
from gfucb.serving.refits import BACKGROUND_THREADS, Refits, RefitWorker
from gfucb.serving.rewards import LogRow
from gfucb.serving.roster import NUMBERS, Roster
from gfucb.serving.time_limits import TimeLimit
from gfucb.tables import Schema

INLINE, MANUAL, BACKGROUND = "inline", "manual", "background"
REFITS = (INLINE, MANUAL, BACKGROUND)
# A call of `decide` or `observe` closes at most so many rows that are past their time limit.
EXPIRED_PER_CALL = 64
# Rows that `expire` closes in one transaction.
EXPIRED_PER_TRANSACTION = 1000


# The runtime that writes to a log object; a lock file protects the file from other processes.
_RUNNING: weakref.WeakKeyDictionary[DecisionStore, weakref.ref[Runtime]]
_RUNNING = weakref.WeakKeyDictionary()


def require_unused(log: DecisionStore) -> None:
    """Refuse a log object to which another agent writes."""
    reference = _RUNNING.get(log)
    other = None if reference is None else reference()
    if other is not None and not other.is_closed:
        raise DecisionLogError(f"{log.name} is in use by another agent; close that one first")


class Runtime:
    """What the methods of an `Agent` work with, one call at a time.

    Args:
        log: of the agent; what it holds is replayed.
        agent: the model before any event.
        refit: who fits: `observe`, the user, or a worker.
        time_limit: of rewards.
        facts: stored with the session.
    """

    def __init__(
        self, log: DecisionStore, agent: GFUCB, refit: str, time_limit: TimeLimit, **facts: Any
    ) -> None:
        require_unused(log)
        self.log, self.refit, self._time_limit = log, refit, time_limit
        settings = {"num_tasks": str(agent.num_tasks), **agent.settings()}
        self.model, self.roster = rebuild(log, agent)
        if refit == BACKGROUND:
            facts[THREADS] = BACKGROUND_THREADS
        self.session = open_session(log, self.roster, settings=settings, refit=refit, **facts)
        self._lock, self._owner = threading.RLock(), OwnerProcess()
        self._refits = Refits(log, self.model, self._lock, checkpoint_path(log))
        self._worker: RefitWorker | None = None
        # Of the last schema that was compared with the logged one, which may be large.
        self._compared: tuple[object, object] | None = None
        self._is_closed = False
        _RUNNING[log] = weakref.ref(self)
        if refit == BACKGROUND:
            model = self.model  # not self: an agent that nobody uses ends its worker
            fit = partial(self._refits.fit, only_due=True)
            self._worker = RefitWorker(fit, lambda: model.agent.learner.is_fit_due)
            weakref.finalize(self, self._worker.stop)
            self._worker.wake()

    @contextmanager
    def call(self) -> Iterator[Roster]:
        """Hold the lock during a call that changes the agent.

        A closed agent refuses the call. An error of the worker is raised before the call.
        """
        self._owner.require("this agent")
        with self._lock, self._threads():
            if self._is_closed:
                raise DecisionLogError(f"this agent is closed; build it again from {self.log.name}")
            if self._worker is not None:
                self._worker.raise_error()
            yield self.roster

    def _threads(self) -> AbstractContextManager[None]:
        """The threads of torch during a call."""
        if self.refit == BACKGROUND:
            return torch_threads(BACKGROUND_THREADS)
        return nullcontext()

    @property
    def is_closed(self) -> bool:
        """Whether calls are refused."""
        return self._is_closed

    @contextmanager
    def reading(self) -> Iterator[GFUCB]:
        """Hold the lock during a call that only reads, also of a closed agent."""
        self._owner.require("this agent")
        with self._lock:
            yield self.model.agent

    def changing(self) -> AbstractContextManager[Change]:
        """One transaction: events are stored and applied together, or not at all."""
        return changing(self.log, self.model, self.roster)

    def new_schema(self, schema: Schema) -> str | None:
        """The schema for the log, if it has none; another one than that of the log is refused."""
        if self.roster.schema is None:
            return schema_text(schema)
        encoders = (schema.context, schema.actions)
        if self._compared is None or any(
            own is not known for own, known in zip(encoders, self._compared, strict=True)
        ):
            require_same_encoding(schema, self.roster.schema, self.log.name)
            self._compared = encoders
        return None

    def change_rows(self, changes: Sequence[RowChange]) -> int:
        """Store changes of rows, and learn from those with a reward: all have one, or none."""
        if not changes:
            return 0
        num_fits = self.model.agent.learner.num_fits
        with self.changing() as change:
            if changes[0].reward is None:
                change.add(CLOSE_ROWS, {}, changes)
            else:
                defers = {
                    "defers_fits": self.refit != INLINE,
                    "defers_first_fit": self.refit == BACKGROUND,
                }
                self.give_numbers(change, self._tasks_of(changes))
                change.add(OBSERVE, defers, changes)
        learner = self.model.agent.learner
        if self.refit == INLINE and learner.num_fits > num_fits:
            self._refits.checkpoint_if_due()
        if self._worker is not None and learner.is_fit_due:
            self._worker.wake()
        return len(changes)

    def give_numbers(self, change: Change, tasks: Sequence[int]) -> None:
        """Give numbers of the model to tasks whose first rewards follow in this change."""
        detail = self.roster.numbers_detail(tasks)
        if detail is not None:
            change.add(NUMBERS, detail)

    def _tasks_of(self, changes: Sequence[RowChange]) -> list[int]:
        """The tasks of rows, by their number among all names."""
        found, decision_of = [], cache(self.log.decision)
        for change in changes:
            decision = decision_of(change.decision)
            assert decision is not None  # its rows were looked up before
            found.append(decision.rows[change.row].task)
        return found

    def expire_some(self, rows: Sequence[LogRow] = ()) -> None:
        """Close those of the rows that are past their time limit, and some others."""
        overdue = self._time_limit.overdue_among(rows, self.log)
        self.change_rows(self._time_limit.changes(overdue))
        self._expire(EXPIRED_PER_CALL)

    def expire_all(self) -> int:
        """Close all rows that are past their time limit; return how many."""
        total = 0
        while count := self._expire(EXPIRED_PER_TRANSACTION):
            total += count
        return total

    def _expire(self, most: int) -> int:
        rows = self._time_limit.first_overdue(self.log, most)
        return self.change_rows(self._time_limit.changes(rows))

    def fit(self) -> None:
        """Fit all data; the lock is not held meanwhile."""
        with self.call():
            pass
        with self._threads():
            self._refits.fit()

    def checkpoint(self) -> Path | None:
        """Write the state of now; return the path, or None for a log in memory."""
        with self.call():
            pass
        return self._refits.checkpoint()

    def close(self, *, closes_log: bool) -> None:
        """End the worker after the fit that is under way, and write a checkpoint if possible."""
        if not self._owner.is_this:
            return  # all of it belongs to the process of which this one is a fork
        with self._lock:
            was_closed, self._is_closed = self._is_closed, True
        if was_closed:
            return
        try:
            if self._worker is not None:
                self._worker.stop()
            self._refits.checkpoint_if_possible()
        finally:
            if closes_log:
                self.log.close()

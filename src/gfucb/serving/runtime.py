"""The parts of a running agent: lock, log, model, names, session, and the worker that fits."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from gfucb.bandits import GFUCB
from gfucb.core.errors import DecisionLogError
from gfucb.core.log_protocol import DecisionStore
from gfucb.serving.changes import Change, changing
from gfucb.serving.checkpoints import checkpoint_path
from gfucb.serving.opening import open_session, rebuild
from gfucb.serving.refits import Refits, RefitWorker
from gfucb.serving.roster import Roster

INLINE, MANUAL, BACKGROUND = "inline", "manual", "background"
REFITS = (INLINE, MANUAL, BACKGROUND)


class Runtime:
    """What the methods of an `Agent` work with, one call at a time.

    Args:
        log: of the agent; what it holds is replayed.
        agent: the model before any event.
        refit: who fits: `observe`, the user, or a worker.
        facts: stored with the session.
    """

    def __init__(self, log: DecisionStore, agent: GFUCB, refit: str, **facts: Any) -> None:
        self.log, self.refit = log, refit
        settings = {"num_tasks": str(agent.num_tasks), **agent.settings()}
        self.model, self.roster = rebuild(log, agent)
        self.session = open_session(log, self.roster, settings=settings, refit=refit, **facts)
        self._lock = threading.RLock()
        self._refits = Refits(log, self.model, self._lock, checkpoint_path(log))
        self._worker: RefitWorker | None = None
        self._is_closed = False
        if refit == BACKGROUND:
            model = self.model  # not self: an agent that nobody uses ends its worker
            self._worker = RefitWorker(self._refits.fit, lambda: model.agent.learner.is_fit_due)
            weakref.finalize(self, self._worker.stop)
            self._worker.wake()

    @contextmanager
    def call(self) -> Iterator[Roster]:
        """Hold the lock during a call that changes the agent.

        A closed agent refuses the call. An error of the worker is raised before the call.
        """
        with self._lock:
            if self._is_closed:
                raise DecisionLogError(f"this agent is closed; build it again from {self.log.name}")
            if self._worker is not None:
                self._worker.raise_error()
            yield self.roster

    @contextmanager
    def reading(self) -> Iterator[GFUCB]:
        """Hold the lock during a call that only reads, also of a closed agent."""
        with self._lock:
            yield self.model.agent

    def changing(self) -> AbstractContextManager[Change]:
        """One transaction: events are stored and applied together, or not at all."""
        return changing(self.log, self.model, self.roster)

    @property
    def defers_fits(self) -> bool:
        """Whether rewards update heads only."""
        return self.refit != INLINE

    def rewarded(self, num_fits_before: int) -> None:
        """After rewards: start a fit that is due, and write a checkpoint that is due."""
        learner = self.model.agent.learner
        if not self.defers_fits and learner.num_fits > num_fits_before:
            self._refits.checkpoint_if_due()
        if self._worker is not None and learner.is_fit_due:
            self._worker.wake()

    def fit(self) -> None:
        """Fit all data; the lock is not held meanwhile."""
        with self.call():
            pass
        self._refits.fit()

    def checkpoint(self) -> Path | None:
        """Write the state of now; return the path, or None for a log in memory."""
        with self.call():
            pass
        return self._refits.checkpoint()

    def close(self, *, closes_log: bool) -> None:
        """End the worker after the fit that is under way, and write a checkpoint."""
        with self._lock:
            was_closed, self._is_closed = self._is_closed, True
        if was_closed:
            return
        try:
            if self._worker is not None:
                self._worker.stop()
            self._refits.checkpoint()
        finally:
            if closes_log:
                self.log.close()

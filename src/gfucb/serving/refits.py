"""Fits of a model that other threads use meanwhile, and the worker that makes them."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gfucb.core.errors import GFUCBError, RefitError
from gfucb.core.files import remove_leftovers
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.log_records import LogEvent
from gfucb.core.logs import log
from gfucb.core.threads import limit_this_thread
from gfucb.serving.changes import is_stored
from gfucb.serving.checkpoints import write_checkpoint
from gfucb.serving.live_model import LiveModel, Refit
from gfucb.serving.log_replay import FIT

# A checkpoint is written after a fit, if there are so many times the samples of the last one.
CHECKPOINT_GROWTH = 1.5
# With fewer samples a log is replayed quickly.
FEWEST_SAMPLES = 500
# The thread that fits is by so much nicer than others, in the unit of POSIX.
NICENESS = 5
# Threads of one operation of torch, in calls and in fits beside them. More wait for each other and
# keep cores busy meanwhile: on two cores that other programs used too, two threads in calls made 3
# decisions per second, and one made 60.
BACKGROUND_THREADS = 1
LOGGER = logging.getLogger(__name__)


class Refits:
    """Fits a copy of a model and puts it into use; writes checkpoints between fits.

    Args:
        log: stores when a fit was begun and when it was put into use.
        model: of the serving agent.
        lock: of the serving agent; it is not held during a fit.
        path: of the checkpoint; None writes none.
    """

    def __init__(
        self, log: DecisionStore, model: LiveModel, lock: threading.RLock, path: Path | None
    ) -> None:
        self._log, self._model, self._lock, self._path = log, model, lock, path
        self._one_at_a_time = threading.RLock()
        self._samples_at_checkpoint = model.agent.learner.num_samples
        if path is not None:
            remove_leftovers(path)

    def fit(self, *, only_due: bool = False) -> None:
        """Fit all data; rewards that arrive meanwhile are applied to the fit before it is used.

        With `only_due` those parts of the model are fitted whose fit is due: a shorter fit is used
        earlier.
        """
        with self._one_at_a_time:
            begin = time.perf_counter()
            with self._lock:
                start = self._log.last_event()[0]
                refit = self._model.begin_fit()
            try:
                refit.run(only_due=only_due)
                with self._lock:
                    self._use(refit, {"start": start, "only_due": only_due})
                log(
                    LOGGER,
                    logging.INFO,
                    "fit of %(num_samples)d samples in use after %(seconds).3f s",
                    num_samples=self._model.agent.learner.num_samples,
                    seconds=time.perf_counter() - begin,
                )
            finally:
                with self._lock:
                    self._model.abandon_fit()
            self.checkpoint_if_due()

    def _use(self, refit: Refit, facts: Mapping[str, Any]) -> None:
        """Put a fit into use, and say so in the log: both, or neither."""
        refit.catch_up()
        events: list[LogEvent] = []
        try:
            with self._log.transaction():
                events.append(self._log.add_event(FIT, facts))
        except BaseException:
            if is_stored(self._log, events):  # an interrupt that came after the log was written
                self._model.end_fit(refit)
            raise
        self._model.end_fit(refit)

    def checkpoint_if_due(self) -> None:
        """Write a checkpoint if the data has grown enough since the last one, and if it can be.

        While another thread fits, none is written: it may wait for a lock that the caller holds.
        """
        samples = self._model.agent.learner.num_samples
        if samples < max(FEWEST_SAMPLES, CHECKPOINT_GROWTH * self._samples_at_checkpoint):
            return
        if self._one_at_a_time.acquire(blocking=False):
            try:
                self.checkpoint_if_possible()
            finally:
                self._one_at_a_time.release()

    def checkpoint_if_possible(self) -> None:
        """Write a checkpoint, or a warning: the log has all of it, and the caller is done."""
        try:
            self.checkpoint()
        except (GFUCBError, OSError) as error:
            log(
                LOGGER,
                logging.WARNING,
                "no checkpoint is written: %(error)s; a restart replays more of the log",
                error=str(error),
            )

    def checkpoint(self) -> Path | None:
        """Write the state of now, from which a restart continues; return the path."""
        if self._path is None:
            return None
        # Not during a fit: its start would be before the checkpoint, and its end after it.
        with self._one_at_a_time:
            with self._lock:
                agent, (event, checksum) = self._model.agent.snapshot(), self._log.last_event()
            write_checkpoint(self._path, agent, event, checksum)
            self._samples_at_checkpoint = agent.learner.num_samples
        log(
            LOGGER,
            logging.INFO,
            "checkpoint of event %(event)d in %(path)s",
            event=event,
            path=str(self._path),
        )
        return self._path


class RefitWorker:
    """A thread that fits when a fit is due.

    Args:
        fit: makes one fit.
        is_due: whether one is due.
    """

    def __init__(self, fit: Callable[[], None], is_due: Callable[[], bool]) -> None:
        self._fit, self._is_due = fit, is_due
        self._wake, self._is_stopping = threading.Event(), False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="gfucb-refits", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Fit soon, if a fit is due."""
        self._wake.set()

    def raise_error(self) -> None:
        """Raise the error with which the last fit has failed, once."""
        error, self._error = self._error, None
        if error is not None:
            raise RefitError(
                f"the last fit in the background has failed: {error}; the agent still has the fit "
                "before. The next reward starts another one"
            ) from error

    def stop(self) -> None:
        """End the thread, after the fit that is under way. In a fork it has ended already."""
        if not self._thread.is_alive():
            return
        self._is_stopping = True
        self._wake.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        _lower_priority()
        limit_this_thread(BACKGROUND_THREADS)
        while True:
            self._wake.wait()
            self._wake.clear()
            try:
                while not self._is_stopping and self._is_due():
                    self._fit()
            except BaseException as error:  # also SystemExit: nobody else would see it
                self._error = error
                LOGGER.warning("a fit in the background has failed", exc_info=True)
            if self._is_stopping:
                return


def _lower_priority() -> None:
    """Let threads that decide and observe go first, where a thread has a priority of its own.

    With 500 tasks, on two cores that other programs used too, this halved the 99th percentile of
    latency. A much nicer thread gets too little time to fit on a busy machine.
    """
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with suppress(OSError):  # a system may forbid it
            niceness = os.getpriority(os.PRIO_PROCESS, thread)
            os.setpriority(os.PRIO_PROCESS, thread, min(19, niceness + NICENESS))

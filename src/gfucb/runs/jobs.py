"""Jobs: computations that are each stored in a run directory of their own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

from gfucb.core.errors import FailedJobsError, InvalidInputError, RunDirectoryError
from gfucb.core.logs import log
from gfucb.core.records import Row
from gfucb.runs.pool import POLL_SECONDS, one_thread, run_in_processes
from gfucb.runs.store import RunDirectory, RunLockedError, read_rows
from gfucb.runs.work import ComputedRows, Work

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """A computation that does not depend on others.

    With several processes, `compute` is sent to one of them: it must be a function of a module or
    a `functools.partial` of one.

    Attributes:
        name: the run directory, relative to that of all jobs.
        compute: a function that returns the rows; with `resumable`, one that returns `Work`.
        resumable: whether an interrupted job continues from its last checkpoint.
        settings: what config.json records; a directory with other settings is refused.
        relative_cost: jobs with a large cost are started first.
        defaults: of settings that a run stored by an earlier version may not state.
        kind: jobs of one kind differ in their seeds alone, so all can be started or none; "" if
            this is not known.
    """

    name: str
    compute: Callable[[], Any]
    resumable: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    relative_cost: float = 1.0
    defaults: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""

    def work(self) -> Work:
        """The computation, not yet started."""
        if self.resumable:
            work: Work = self.compute()
            return work
        return ComputedRows(self.compute)

    def directory(self, parent: Path) -> RunDirectory:
        """Where the job is stored."""
        return RunDirectory(parent / self.name, self.settings, self.defaults)


@dataclass(frozen=True)
class Progress:
    """Functions that are called while jobs run."""

    job_ended: Callable[[Job], None] = lambda job: None
    """Called when a job is finished."""
    rows_written: Callable[[], None] = lambda: None
    """Called a few times a second."""
    problem: Callable[[Job, str], None] = lambda job, text: None
    """Called when a job has failed, or continues because its worker has died."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended; `error` says why it failed."""

    status: Literal["finished", "locked", "failed"]
    error: str = ""


class Engine(Protocol):
    """Where jobs are computed; `gfucb.runs.engines` has the engines by name."""

    def outcomes(
        self, jobs: Sequence[Job], parent: Path, device: str, progress: Progress
    ) -> Generator[tuple[Job, Outcome]]:
        """Compute the jobs below `parent`, in their order; yield each when it ends.

        A job that another process is computing is `locked`. A job that fails is `failed`, and the
        others go on; an engine may also raise the error. If the caller stops, all jobs stop,
        their locks are released, and what they have computed can be resumed.

        Args:
            jobs: the jobs, none of them finished.
            parent: the parent of all run directories.
            device: where networks are: cpu, or cuda.
            progress: the engine calls `rows_written`, and `problem` if a worker has died.
        """


@dataclass(frozen=True)
class LocalEngine:
    """Processes of this machine, one thread each; one process is that of the caller."""

    processes: int = 1

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise InvalidInputError(f"processes must be at least 1, got {self.processes}")

    def outcomes(
        self, jobs: Sequence[Job], parent: Path, device: str, progress: Progress
    ) -> Generator[tuple[Job, Outcome]]:
        """Compute the jobs; an error of a job is raised when those under way have ended."""
        require_startable(jobs)
        for job, is_finished in self._results(jobs, parent, device, progress):
            yield job, Outcome("finished" if is_finished else "locked")

    def _results(
        self, jobs: Sequence[Job], parent: Path, device: str, progress: Progress
    ) -> Iterator[tuple[Job, bool]]:
        if self.processes == 1:
            poll = rarely(progress.rows_written)
            for job in jobs:
                with one_thread():
                    is_finished = run_job(job, parent, device, lambda row: poll())
                yield job, is_finished
        elif jobs:
            compute = partial(run_job, parent=parent, device=device)
            processes = min(self.processes, len(jobs))
            yield from run_in_processes(compute, jobs, processes, poll=progress.rows_written)


def run_jobs(
    jobs: Sequence[Job],
    parent: Path,
    *,
    processes: int = 1,
    engine: Engine | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> list[Job]:
    """Compute the jobs that are not finished below `parent`; finished ones are left as they are.

    Interrupted jobs continue. With one process the jobs run in the caller's, one after another;
    with more, in worker processes of one thread each; with an `engine`, where it runs them. The
    rows are the same. Returns the jobs that another process is computing.

    Raises:
        FailedJobsError: some jobs failed on the engine; the others are finished.
    """
    engine = LocalEngine(processes) if engine is None else engine
    progress = progress or Progress()
    if parent.exists() and not parent.is_dir():
        raise RunDirectoryError(f"{parent} is no directory; name one for the runs")
    # Also refuses foreign directories before anything is computed.
    missing = [job for job in jobs if not job.directory(parent).is_finished()]
    missing.sort(key=lambda job: -job.relative_cost)
    locked: list[Job] = []
    failed: dict[str, str] = {}
    # Closed at once if a callback raises: workers and locks do not wait for a collector.
    with closing(engine.outcomes(missing, parent, device, progress)) as outcomes:
        for job, outcome in outcomes:
            text = "job %(job_name)s: %(status)s"
            log(LOGGER, logging.INFO, text, job_name=job.name, status=outcome.status)
            if outcome.status == "finished":
                progress.job_ended(job)
            elif outcome.status == "locked":
                locked.append(job)
            else:
                failed[job.name] = outcome.error
                progress.problem(job, f"failed: {outcome.error}")
    if failed:
        name, error = next(iter(failed.items()))
        raise FailedJobsError(
            f"{len(failed)} of {len(missing)} jobs failed, for example {name}: {error}. The others "
            "are stored; repeat the command to compute those that failed"
        )
    return locked


def run_all(
    jobs: Sequence[Job],
    parent: Path,
    *,
    processes: int = 1,
    engine: Engine | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> dict[str, list[dict[str, str]]]:
    """Compute what is missing, see `run_jobs`; return the rows of each job by its name.

    Raises:
        RunDirectoryError: another process is computing one of the jobs.
        FailedJobsError: some jobs failed on the engine; the others are finished.
    """
    locked = run_jobs(
        jobs, parent, processes=processes, engine=engine, device=device, progress=progress
    )
    if locked:
        raise RunDirectoryError(
            f"another process is writing {len(locked)} of the runs in {parent}, for example "
            f"{locked[0].name}; when it has ended, repeat this command"
        )
    return {job.name: read_rows(parent / job.name) for job in jobs}


def run_job(
    job: Job, parent: Path, device: str = "cpu", on_row: Callable[[Row], None] = lambda row: None
) -> bool:
    """Compute what is missing of a job; False if another process is computing it."""
    try:
        for row in job.directory(parent).write(job.work(), device=device):
            on_row(row)
    except RunLockedError:
        return False
    return True


def require_startable(jobs: Sequence[Job]) -> None:
    """Build a job of each kind, so that wrong settings of one leave no runs of the others."""
    first = {job.kind: job for job in reversed(jobs) if job.kind}
    if len(first) > 1:  # of a single kind the first job fails before anything is written
        for job in first.values():
            job.work()


def rarely(function: Callable[[], None]) -> Callable[[], None]:
    """The same function, called at most once in `POLL_SECONDS`."""
    last = time.monotonic()

    def call() -> None:
        nonlocal last
        if time.monotonic() - last >= POLL_SECONDS:
            last = time.monotonic()
            function()

    return call

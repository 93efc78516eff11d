"""Jobs: computations that are each stored in a run directory of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gfucb.core.errors import InvalidInputError, RunDirectoryError
from gfucb.core.records import Row
from gfucb.runs.pool import POLL_SECONDS, one_thread, run_in_processes
from gfucb.runs.store import RunDirectory, RunLockedError, read_rows
from gfucb.runs.work import ComputedRows, Work


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
        defaults: of settings that a run stored by an earlier version may not state.
        relative_cost: jobs with a large cost are started first.
    """

    name: str
    compute: Callable[[], Any]
    resumable: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    relative_cost: float = 1.0
    defaults: Mapping[str, Any] = field(default_factory=dict)

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


def run_jobs(
    jobs: Sequence[Job],
    parent: Path,
    *,
    processes: int = 1,
    device: str = "cpu",
    progress: Progress | None = None,
) -> list[Job]:
    """Compute the jobs that are not finished below `parent`; finished ones are left as they are.

    Interrupted jobs continue. With one process the jobs run in the caller's, one after another;
    with more, in worker processes of one thread each. The rows are the same. Returns the jobs
    that another process is computing.
    """
    if processes < 1:
        raise InvalidInputError(f"processes must be at least 1, got {processes}")
    progress = progress or Progress()
    # Also refuses foreign directories before anything is computed.
    missing = [job for job in jobs if not job.directory(parent).is_finished()]
    missing.sort(key=lambda job: -job.relative_cost)
    locked: list[Job] = []
    for job, is_finished in _results(missing, parent, processes, device, progress):
        if is_finished:
            progress.job_ended(job)
        else:
            locked.append(job)
    return locked


def run_all(
    jobs: Sequence[Job],
    parent: Path,
    *,
    processes: int = 1,
    device: str = "cpu",
    progress: Progress | None = None,
) -> dict[str, list[dict[str, str]]]:
    """Compute what is missing, see `run_jobs`; return the rows of each job by its name.

    Raises:
        RunDirectoryError: another process is computing one of the jobs.
    """
    locked = run_jobs(jobs, parent, processes=processes, device=device, progress=progress)
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


def _results(
    jobs: Sequence[Job], parent: Path, processes: int, device: str, progress: Progress
) -> Iterator[tuple[Job, bool]]:
    if processes == 1:
        poll = _rarely(progress.rows_written)
        for job in jobs:
            with one_thread():
                is_finished = run_job(job, parent, device, lambda row: poll())
            yield job, is_finished
    elif jobs:
        compute = partial(run_job, parent=parent, device=device)
        yield from run_in_processes(
            compute, jobs, min(processes, len(jobs)), poll=progress.rows_written
        )


def _rarely(function: Callable[[], None]) -> Callable[[], None]:
    """The same function, called at most once in `POLL_SECONDS`."""
    last = time.monotonic()

    def call() -> None:
        nonlocal last
        if time.monotonic() - last >= POLL_SECONDS:
            last = time.monotonic()
            function()

    return call

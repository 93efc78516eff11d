"""Jobs computed by a process that does not see the run directories.

That process yields messages: rows as values, checkpoints as the bytes of their file. The process
that holds the run directories writes them with the writer of all runs. So workers need no common
disk, and a run directory does not depend on where its rows were computed.

    messages(job, saved)        in the worker
    RunReceiver.receive(m)      where the run directories are
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gfucb.core.errors import GFUCBError
from gfucb.core.files import atomic_write
from gfucb.core.records import Row
from gfucb.runs.jobs import Job
from gfucb.runs.row_writer import RowWriter
from gfucb.runs.run_checkpoint import FILE_NAME, CheckpointSchedule, RunCheckpoint
from gfucb.runs.work import Work


@dataclass(frozen=True)
class Started:
    """The first message: which code and machine compute what follows."""

    provenance: Mapping[str, Any]


@dataclass(frozen=True)
class Computed:
    """The rows since the last message; `checkpoint` covers all rows so far, if there is one."""

    rows: tuple[Row, ...]
    checkpoint: bytes | None = None


@dataclass(frozen=True)
class Finished:
    """The last message of a job that succeeded."""

    cpu_seconds: float


@dataclass(frozen=True)
class Failed:
    """The last message of a job that raised an error."""

    error: str


Message = Started | Computed | Finished | Failed


def messages(
    job: Job, saved: bytes | None, provenance: Mapping[str, Any], every: float
) -> Iterator[Message]:
    """Compute a job after the checkpoint `saved`, or all of it.

    Rows are collected for `every` seconds, or until the next one is there. An error of the job is
    a message, so that it arrives whatever its class.
    """
    yield Started(provenance)
    try:
        checkpoint = None if saved is None else RunCheckpoint.parse(saved)
        work = job.work()
        if checkpoint is not None:
            work.load_state(checkpoint.state)
        yield from _computed(work, checkpoint or RunCheckpoint(), every)
    except Exception as error:
        yield Failed(described(error))


def _computed(work: Work, saved: RunCheckpoint, every: float) -> Iterator[Message]:
    cpu_start = time.process_time() - saved.cpu_seconds
    schedule, last = CheckpointSchedule(), time.perf_counter()
    rows: list[Row] = []
    for num_computed, row in enumerate(work.rows(), start=saved.num_rows + 1):
        rows.append(row)
        if time.perf_counter() - last < every:
            continue
        content = None
        if schedule.is_due():
            with schedule.measured():
                state = work.state()
                if state is not None:
                    seconds = time.process_time() - cpu_start
                    content = RunCheckpoint(num_computed, seconds, state).content()
        yield Computed(tuple(rows), content)
        rows, last = [], time.perf_counter()
    yield Computed(tuple(rows))
    yield Finished(time.process_time() - cpu_start)


def described(error: Exception) -> str:
    """The error in one line; where it was not raised on purpose, with the line of code."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, GFUCBError):
        return text
    line = traceback.extract_tb(error.__traceback__)[-1]
    return f"{text} (line {line.lineno} of {line.filename})"


class RunReceiver:
    """Writes the run directory of a job from the messages of the process that computes it.

    The directory is locked until `close`.

    Raises:
        RunLockedError: another process is writing it.
    """

    def __init__(self, job: Job, parent: Path) -> None:
        self.job = job
        self._directory = job.directory(parent)
        self._saved: RunCheckpoint | None = None
        self._writer: RowWriter | None = None
        self._open = ExitStack()
        self._open.enter_context(self._directory.locked())

    def is_finished(self) -> bool:
        """Whether the run was finished already, or is now."""
        return self._directory.is_finished()

    def checkpoint(self) -> bytes | None:
        """What `messages` needs to continue; rows that follow the checkpoint are dropped."""
        self._close_rows()
        path = self._directory.path / FILE_NAME
        content = path.read_bytes() if path.exists() else None
        self._saved = None if content is None else RunCheckpoint.parse(content)
        return content

    @property
    def num_saved_rows(self) -> int:
        """How many rows the last checkpoint covers."""
        return self._saved.num_rows if self._saved else 0

    def receive(self, message: Message) -> None:
        """Write what a message holds; `Failed` changes nothing."""
        if isinstance(message, Started):
            self._writer = self._directory.rows_after(self._saved, message.provenance)
        elif isinstance(message, Computed):
            self._write(message)
        elif isinstance(message, Finished):
            self._close_rows()
            self._directory.finish(message.cpu_seconds)

    def close(self) -> None:
        """Release the lock; an unfinished run can be resumed."""
        self._close_rows()
        self._open.close()

    def _write(self, message: Computed) -> None:
        assert self._writer is not None, "the first message is `Started`"
        for row in message.rows:
            self._writer.write(row)
        if message.checkpoint is not None:
            content = message.checkpoint
            self._writer.sync()  # a checkpoint never covers rows that a crash can lose
            path = self._directory.path / FILE_NAME
            atomic_write(path, lambda temporary: temporary.write_bytes(content))

    def _close_rows(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

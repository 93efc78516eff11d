"""Run directories: the unit in which all results are stored.

    config.json                 the settings
    provenance.json             versions, commit, machine, timestamps, CPU seconds
    rows.csv                    the rows
    checkpoint.safetensors      while the run is unfinished: its state after some of the rows
    .lock                       held by the process that writes

A finished run is never overwritten. An interrupted run continues from its checkpoint, and its
rows are then byte for byte those of an uninterrupted run: rows hold no times of the clock, which
are in provenance.json.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gfucb.core.errors import RunDirectoryError, SavedStateError
from gfucb.core.files import is_temporary
from gfucb.core.records import Row
from gfucb.runs.provenance import current_provenance, timestamp
from gfucb.runs.row_writer import RowWriter
from gfucb.runs.run_checkpoint import FILE_NAME as CHECKPOINT
from gfucb.runs.run_checkpoint import CheckpointSchedule, RunCheckpoint
from gfucb.runs.stored_settings import first_difference
from gfucb.runs.text_files import as_json, read_csv, read_json, write_json
from gfucb.runs.work import Work

LOCK = ".lock"
# The fields of provenance.json that do not describe code and machine.
OF_ONE_RUN = ("started", "finished", "cpu_seconds", "resumed")


class RunLockedError(RunDirectoryError):
    """Another process is writing the run."""


def read_rows(directory: Path) -> list[dict[str, str]]:
    """The rows of a run, values as text."""
    return read_csv(directory / "rows.csv")


def read_config(directory: Path) -> dict[str, Any]:
    """The settings of a run, as nested dictionaries."""
    return read_json(directory / "config.json")


def read_provenance(directory: Path) -> dict[str, Any]:
    """Which code and machine computed a run, and when."""
    return read_json(directory / "provenance.json")


def distinct_provenance(directories: Iterable[Path]) -> list[dict[str, Any]]:
    """Code and machine of several runs, each once, without their times."""
    found: list[dict[str, Any]] = []
    for directory in directories:
        record = {k: v for k, v in read_provenance(directory).items() if k not in OF_ONE_RUN}
        if record not in found:
            found.append(record)
    return found


def is_finished(directory: Path) -> bool:
    """Whether `directory` holds a finished run."""
    started = (directory / "config.json").exists()
    return started and bool(read_provenance(directory).get("finished"))


def saved_rows(directory: Path) -> list[dict[str, str]]:
    """All rows of a finished run; of an unfinished one, those that its checkpoint covers."""
    if is_finished(directory):
        return read_rows(directory)
    try:
        saved = RunCheckpoint.read(directory)
    except SavedStateError:
        if not is_finished(directory):
            raise
        return read_rows(directory)  # another process has finished the run meanwhile
    return read_rows(directory)[: saved.num_rows] if saved else []


@dataclass(frozen=True)
class RunDirectory:
    """A directory and the settings of the run that it holds, or will hold.

    Attributes:
        path: the directory.
        settings: of the run.
        defaults: the values of settings that a run stored before they existed does not state.
    """

    path: Path
    settings: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def is_finished(self) -> bool:
        """Whether the run is finished; an error if the directory holds another one."""
        self.require_same_settings()
        return is_finished(self.path)

    def require_same_settings(self) -> None:
        """Refuse a directory that holds a run with other settings, or something else."""
        if (self.path / "config.json").exists():
            stored, own = read_config(self.path), as_json(self.settings)
            difference = first_difference(stored, own, as_json(self.defaults))
            if difference:
                raise RunDirectoryError(
                    f"{self.path} holds a run with {difference}; choose another directory"
                )
        elif self.path.exists() and not all(map(_may_precede_config, self.path.iterdir())):
            raise RunDirectoryError(
                f"{self.path} is not empty and is not a run directory (it has no config.json); "
                "choose another directory"
            )

    def write(self, work: Work, *, device: str = "cpu") -> Iterator[Row]:
        """Compute the missing rows; write and yield each. A finished run has none missing.

        Raises:
            RunLockedError: another process is writing this run.
        """
        with self.locked():
            if self.is_finished():
                return
            saved = RunCheckpoint.read(self.path)
            with self.rows_after(saved, current_provenance(device)) as writer:
                if saved is not None:
                    work.load_state(saved.state)
                # A time at which a run without interruption would have started.
                cpu_start = time.process_time() - (saved.cpu_seconds if saved else 0.0)
                yield from self._write_rows(work, saved, cpu_start, writer)
            self.finish(time.process_time() - cpu_start)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing this run; the directory is created.

        Raises:
            RunLockedError: another process is writing it.
        """
        self.require_same_settings()
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            # The rows may be consumed by another thread than the one that started them.
            with FileLock(self.path / LOCK, blocking=False, thread_local=False):
                yield
        except Timeout:
            raise RunLockedError(
                f"another process is writing the run in {self.path}; wait until it has ended, or "
                "choose another directory"
            ) from None

    def rows_after(self, saved: RunCheckpoint | None, provenance: Mapping[str, Any]) -> RowWriter:
        """Start or resume a locked run: keep the rows that `saved` covers, append to them.

        Args:
            saved: the checkpoint from which the run continues; None if it starts over.
            provenance: which code and machine compute the rows that follow.
        """
        if saved is None:
            times = {"started": timestamp(), "finished": None, "cpu_seconds": 0.0}
            write_json(self.path / "provenance.json", {**provenance, **times})
            if not (self.path / "config.json").exists():
                # Last: a directory with a config is a run that can continue.
                write_json(self.path / "config.json", as_json(self.settings))
            (self.path / "rows.csv").unlink(missing_ok=True)
        else:
            RowWriter.truncate(self.path / "rows.csv", saved.num_rows)
            record = read_provenance(self.path)
            continued = {**provenance, "at": timestamp(), "after_rows": saved.num_rows}
            record.setdefault("resumed", []).append(continued)
            write_json(self.path / "provenance.json", record)
        return RowWriter(self.path / "rows.csv")

    def finish(self, cpu_seconds: float) -> None:
        """Mark a locked run as finished."""
        finished = {"finished": timestamp(), "cpu_seconds": cpu_seconds}
        write_json(self.path / "provenance.json", read_provenance(self.path) | finished)
        (self.path / CHECKPOINT).unlink(missing_ok=True)

    def _write_rows(
        self, work: Work, saved: RunCheckpoint | None, cpu_start: float, writer: RowWriter
    ) -> Iterator[Row]:
        """Write each row as it comes, and a checkpoint after it when that is cheap enough."""
        schedule = CheckpointSchedule()
        first = (saved.num_rows if saved else 0) + 1
        for num_written, row in enumerate(work.rows(), start=first):
            writer.write(row)
            if schedule.is_due():
                with schedule.measured():
                    state = work.state()
                    if state is not None:
                        writer.sync()  # a checkpoint never covers rows that a crash can lose
                        seconds = time.process_time() - cpu_start
                        RunCheckpoint(num_written, seconds, state).write(self.path)
            yield row


def _may_precede_config(path: Path) -> bool:
    """Whether a process that was killed while it created the directory may have left this."""
    return path.name in ("provenance.json", LOCK) or is_temporary(path)

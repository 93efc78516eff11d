"""The results directory of a reproduction: its jobs, their rows in one table, and provenance.

    jobs/NAME/          the run directory of a job
    rows.csv            the rows of all jobs, one job after another
    provenance.json     the settings; which code and machine computed which jobs; how many rows
                        of rows.csv belong to which job
    .lock               held while the two files above are written

rows.csv and provenance.json are derived from jobs/. They hold all finished jobs, so a results
directory can be committed without jobs/ and continued later: the jobs are then restored from
rows.csv.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock

from gfucb.core.errors import RunDirectoryError
from gfucb.core.files import is_temporary
from gfucb.runs.jobs import Job
from gfucb.runs.provenance import timestamp
from gfucb.runs.store import (
    LOCK,
    OF_ONE_RUN,
    is_finished,
    read_provenance,
    read_rows,
    saved_rows,
)
from gfucb.runs.stored_settings import default_settings, first_difference, plain_settings
from gfucb.runs.text_files import as_json, csv_text, parse_csv, write_json, write_text

# Paths and devices are no part of the settings: jobs computed on several machines add up, and
# provenance.json says which machine computed which.
LOCAL_OPTIONS = ("data_dir", "device")
NEW_RECORD: Mapping[str, Any] = {"settings": {}, "provenance": [], "rows": {}, "under_way": {}}


@dataclass(frozen=True)
class Gathered:
    """The rows of finished jobs, then of jobs under way, and how many each has."""

    text: str
    finished: dict[str, int]
    under_way: dict[str, int]

    def table(self) -> pd.DataFrame:
        """The rows, as they are read from rows.csv."""
        return pd.read_csv(io.StringIO(self.text))


@dataclass(frozen=True)
class ResultsDirectory:
    """Where a reproduction stores its jobs and what is derived from them.

    Attributes:
        path: the directory.
        settings: of the reproduction.
        defaults: the values of settings that results stored before they existed do not state.
    """

    path: Path
    settings: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def open(
        cls, path: Path, settings: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> ResultsDirectory:
        """Refuse a directory with something else; restore jobs from rows.csv if they are absent.

        Args:
            path: the directory.
            settings: of the reproduction; they may contain dataclasses.
            defaults: of settings, besides those of the fields of these dataclasses.
        """
        plain = as_json(plain_settings(settings))
        shared = {k: v for k, v in plain.items() if k not in LOCAL_OPTIONS}
        known = {**(defaults or {}), **default_settings(settings)}
        directory = cls(path, shared, as_json(known))
        directory._require_same_settings()
        path.mkdir(parents=True, exist_ok=True)
        with directory._locked():
            record = directory._read()
            if record is None:
                record = {**NEW_RECORD, "settings": shared}
                directory._write(record)
            if not directory.jobs.exists():
                directory._restore_jobs(record)
        return directory

    @property
    def jobs(self) -> Path:
        """The parent of the run directories of all jobs."""
        return self.path / "jobs"

    def job_settings(self, name: str) -> dict[str, Any]:
        """What the config.json of a job records."""
        return {**self.settings, "job": name}

    def job_here(self, job: Job) -> Job:
        """The job as it is stored in this directory."""
        return replace(job, settings=self.job_settings(job.name), defaults=self.defaults)

    def finished(self, names: Sequence[str]) -> list[str]:
        """Those of the jobs that are finished."""
        return [name for name in names if is_finished(self.jobs / name)]

    def gather(self, names: Sequence[str]) -> Gathered:
        """The rows of the jobs with these names, as far as they are computed."""
        finished, under_way = {}, {}
        for name in names:
            if is_finished(self.jobs / name):
                finished[name] = read_rows(self.jobs / name)
            elif rows_so_far := saved_rows(self.jobs / name):
                under_way[name] = rows_so_far
        rows = [row for table in (*finished.values(), *under_way.values()) for row in table]
        return Gathered(csv_text(rows), _lengths(finished), _lengths(under_way))

    def save(self, gathered: Gathered) -> None:
        """Write rows.csv and provenance.json."""
        with self._locked():
            record = self._read() or {**NEW_RECORD, "settings": self.settings}
            write_text(self.path / "rows.csv", gathered.text)
            changes = {"rows": gathered.finished, "under_way": gathered.under_way}
            provenance = self._provenance(record["provenance"], list(gathered.finished))
            self._write({**record, "provenance": provenance, **changes})

    def _provenance(
        self, earlier: Sequence[dict[str, Any]], names: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Code and machine of each job: one record for all jobs that share both.

        The records of restored jobs are taken from `earlier`.
        """
        by_job = {name: read_provenance(self.jobs / name) for name in names}
        restored = {name for name, record in by_job.items() if record.get("restored")}
        records = list(_restricted(earlier, restored))
        groups: dict[str, dict[str, Any]] = {}
        for name in names:
            if name not in restored:
                shared = {k: v for k, v in by_job[name].items() if k not in OF_ONE_RUN}
                group = groups.setdefault(
                    json.dumps(shared), {**shared, "jobs": [], "cpu_seconds": 0.0}
                )
                group["jobs"].append(name)
                group["cpu_seconds"] += by_job[name]["cpu_seconds"]
        return records + [g | {"cpu_seconds": round(g["cpu_seconds"], 1)} for g in groups.values()]

    def _restore_jobs(self, record: Mapping[str, Any]) -> None:
        """Create the run directories of finished jobs from rows.csv, all at once."""
        rows = self._rows_of(record) if record["rows"] else []
        origins = {name: own for own in record["provenance"] for name in own["jobs"]}
        incomplete = self.path / "jobs.incomplete"
        shutil.rmtree(incomplete, ignore_errors=True)
        incomplete.mkdir()
        for name, count in record["rows"].items():
            own, rows = rows[:count], rows[count:]
            if name in origins:
                directory, origin = incomplete / name, origins[name]
                directory.mkdir()
                write_text(directory / "rows.csv", csv_text(own))
                shared = {k: v for k, v in origin.items() if k not in ("jobs", "cpu_seconds")}
                times = {"started": None, "finished": timestamp(), "cpu_seconds": None}
                write_json(directory / "provenance.json", shared | times | {"restored": True})
                write_json(directory / "config.json", self.job_settings(name))
        incomplete.rename(self.jobs)

    def _rows_of(self, record: Mapping[str, Any]) -> list[dict[str, str]]:
        path = self.path / "rows.csv"
        try:
            rows = parse_csv(path.read_text())
        except OSError as error:
            raise RunDirectoryError(f"cannot read {path}: {error}") from error
        expected = sum(record["rows"].values()) + sum(record["under_way"].values())
        if len(rows) != expected:
            raise RunDirectoryError(
                f"{path} has {len(rows)} rows but provenance.json records {expected}; restore "
                "both files, or choose another directory"
            )
        return rows

    def _require_same_settings(self) -> None:
        record = self._read()
        if record is None:
            if self.path.exists() and not all(map(_may_precede_record, self.path.iterdir())):
                raise RunDirectoryError(
                    f"{self.path} is not empty and holds no reproduction; choose another directory"
                )
            return
        stored = {k: v for k, v in record["settings"].items() if k not in LOCAL_OPTIONS}
        if difference := first_difference(stored, self.settings, self.defaults):
            raise RunDirectoryError(
                f"{self.path} holds a reproduction with other options: {difference}; choose "
                "another directory"
            )

    def _locked(self) -> FileLock:
        # The files below the lock are small: another process holds it for a moment only.
        return FileLock(self.path / LOCK, thread_local=False)

    @property
    def _provenance_path(self) -> Path:
        return self.path / "provenance.json"

    def _read(self) -> dict[str, Any] | None:
        path = self._provenance_path
        if not path.exists():
            return None
        try:
            record = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise RunDirectoryError(f"cannot read {path}: {error}") from error
        if not _is_record(record):
            raise RunDirectoryError(
                f"{path} is not the record of a reproduction of this version; choose another "
                "directory, or convert an earlier record with scripts/migrate_results.py"
            )
        return dict(record)

    def _write(self, record: Mapping[str, Any]) -> None:
        write_json(self._provenance_path, record)


def _is_record(value: Any) -> bool:
    """Whether this is what `ResultsDirectory` writes."""
    return (
        isinstance(value, dict)
        and value.keys() == NEW_RECORD.keys()
        and all(isinstance(value[key], dict) for key in ("settings", "rows", "under_way"))
        and isinstance(value["provenance"], list)
        and all(
            isinstance(own, dict) and isinstance(own.get("jobs"), list)
            for own in value["provenance"]
        )
    )


def _restricted(records: Sequence[dict[str, Any]], jobs: set[str]) -> Iterator[dict[str, Any]]:
    """Records with only these jobs; those that lose all their jobs are left out."""
    for record in records:
        left = [name for name in record["jobs"] if name in jobs]
        if left or not record["jobs"]:
            yield record | {"jobs": left}


def _may_precede_record(path: Path) -> bool:
    """Whether a process that was killed while it created the directory may have left this."""
    return path.name == LOCK or is_temporary(path)


def _lengths(tables: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    return {name: len(table) for name, table in tables.items()}

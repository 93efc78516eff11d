"""The directory of a reproduction: its jobs, their rows in one table, and who made them.

    jobs/NAME.csv            a finished job
    jobs/NAME.safetensors    how far a job that takes hours has come
    rows.csv                   the rows of all jobs, one below the other
    provenance.json            what was asked; which code and machine finished which jobs; how
                               many rows of rows.csv are whose

rows.csv holds the rows of jobs/, so a directory can be kept without jobs/ and go on from there.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from gfucb.core.errors import RunDirectoryError
from gfucb.core.records import Row

# Where data and networks lie is no part of the question: jobs add up from wherever there is a
# machine, and provenance says from where.
PLACES = ("data_dir", "device")
NEW_RECORD: Mapping[str, Any] = {"asked": {}, "made": [], "rows": {}, "under_way": {}}


@dataclass(frozen=True)
class Gathered:
    """A text for rows.csv, and how many of its rows are whose, in their order."""

    text: str
    finished: dict[str, int]
    under_way: dict[str, int]

    def table(self) -> pd.DataFrame:
        """What is read where rows.csv is read."""
        return pd.read_csv(io.StringIO(self.text))


@dataclass(frozen=True)
class ResultsDirectory:
    """Where everything of a reproduction stands, written all at once or not at all."""

    path: Path

    @classmethod
    def open(cls, path: Path, asked: Mapping[str, Any]) -> ResultsDirectory:
        """Refuse a directory that holds something else; note what was asked for."""
        directory = cls(path)
        asked = {key: value for key, value in _as_json(asked).items() if key not in PLACES}
        if directory._provenance.exists():
            there = directory._read()["asked"]
            there = {key: value for key, value in there.items() if key not in PLACES}
            if there != asked:
                raise RunDirectoryError(
                    f"{path} holds a reproduction made with other options: {there}, not {asked}; "
                    "choose another directory"
                )
            if not (path / "jobs").exists():
                directory._restore_pieces()
        elif path.exists() and any(path.iterdir()):
            raise RunDirectoryError(
                f"{path} is not empty and holds no reproduction; choose another directory"
            )
        (path / "jobs").mkdir(parents=True, exist_ok=True)
        directory._note(asked=asked)
        return directory

    def job(self, name: str) -> Path:
        """Where a finished job stands."""
        return self.path / "jobs" / f"{name}.csv"

    def progress(self, name: str) -> Path:
        """Where a job keeps how far it has come."""
        return self.path / "jobs" / f"{name}.safetensors"

    @property
    def made(self) -> list[dict[str, Any]]:
        """Which code and machine finished which `jobs`."""
        return list(self._read()["made"])

    @property
    def finished(self) -> set[str]:
        """Pieces that are there and of which it is known who made them."""
        signed = {name for maker in self.made for name in maker["jobs"]}
        return {name for name in signed if self.job(name).exists()}

    def sign(self, earlier: Iterable[dict[str, Any]], maker: dict[str, Any]) -> None:
        """Say who made the jobs of `maker`; makers of `earlier` no longer have them."""
        self._note(made=[*_less(earlier, maker["jobs"]), maker])

    def gather(self, finished: Sequence[str], begun: Mapping[str, Sequence[Row]]) -> Gathered:
        """The rows of finished jobs, then of those under way."""
        done = {name: _rows_of(self.job(name).read_text()) for name in finished}
        rows = [row for table in (*done.values(), *begun.values()) for row in table]
        return Gathered(csv_of(rows), _lengths(done), _lengths(begun))

    def keep(self, gathered: Gathered) -> None:
        """Write rows.csv, and whose its rows are."""
        self.write("rows.csv", gathered.text)
        self._note(rows=gathered.finished, under_way=gathered.under_way)

    def write(self, name: str, text: str) -> None:
        """Replace a file of the directory."""
        write(self.path / name, text)

    def _restore_pieces(self) -> None:
        """Take the jobs that were finished from rows.csv, of a directory kept without them."""
        record, path = self._read(), self.path / "rows.csv"
        if not record["rows"]:
            return
        try:
            rows = _rows_of(path.read_text())
        except OSError as error:
            raise RunDirectoryError(f"cannot read {path}: {error}") from error
        expected = sum(record["rows"].values()) + sum(record["under_way"].values())
        if len(rows) != expected:
            raise RunDirectoryError(
                f"{path} has {len(rows)} rows where provenance.json tells of {expected}; restore "
                "both, or choose another directory"
            )
        (self.path / "jobs.partial").mkdir(exist_ok=True)
        for name, count in record["rows"].items():
            own, rows = rows[:count], rows[count:]
            write(self.path / "jobs.partial" / f"{name}.csv", csv_of(own))
        (self.path / "jobs.partial").rename(self.path / "jobs")

    @property
    def _provenance(self) -> Path:
        return self.path / "provenance.json"

    def _read(self) -> dict[str, Any]:
        try:
            record = json.loads(self._provenance.read_text())
        except (OSError, ValueError) as error:
            raise RunDirectoryError(f"cannot read {self._provenance}: {error}") from error
        if not _is_record(record):
            raise RunDirectoryError(
                f"{self._provenance} is not the record of a reproduction, or one of an earlier "
                "version; choose another directory"
            )
        return dict(record)

    def _note(self, **news: Any) -> None:
        there = self._read() if self._provenance.exists() else NEW_RECORD
        write(self._provenance, json_of({**there, **news}))


def _is_record(value: Any) -> bool:
    """Whether this is what `ResultsDirectory` writes."""
    return (
        isinstance(value, dict)
        and value.keys() == NEW_RECORD.keys()
        and all(isinstance(value[key], dict) for key in ("asked", "rows", "under_way"))
        and isinstance(value["made"], list)
        and all(
            isinstance(maker, dict) and isinstance(maker.get("jobs"), list)
            for maker in value["made"]
        )
    )


def _lengths(tables: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    return {name: len(table) for name, table in tables.items()}


def _less(made: Iterable[dict[str, Any]], anew: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Who made what, without the jobs that are made anew and those who made only these."""
    for entry in made:
        left = [name for name in entry["jobs"] if name not in anew]
        if left or not entry["jobs"]:
            yield entry | {"jobs": left}


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as text; what some do not have is left empty."""
    text = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _rows_of(text: str) -> list[dict[str, str]]:
    """The rows of a text as they are written there."""
    return list(csv.DictReader(io.StringIO(text)))


def json_of(value: Any) -> str:
    """A value for a file that people read."""
    return json.dumps(value, indent=2) + "\n"


def _as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """What is read back when a value has been written."""
    return dict(json.loads(json.dumps(value)))


def write(path: Path, text: str) -> None:
    """Replace a file, all at once."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    os.replace(partial, path)

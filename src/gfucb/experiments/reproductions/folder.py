"""The folder of a reproduction: its pieces, their rows in one table, and who made them.

    pieces/NAME.csv            a finished piece
    pieces/NAME.safetensors    how far a piece that takes hours has come
    rows.csv                   the rows of all pieces, one below the other
    provenance.json            what was asked; which code and machine finished which pieces; how
                               many rows of rows.csv are whose

rows.csv holds the rows of pieces/, so a folder can be kept without pieces/ and go on from there.
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

from gfucb.contracts import Row
from gfucb.errors import RunFolderError

# Where data and networks lie is no part of the question: pieces add up from wherever there is a
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
class Folder:
    """Where everything of a reproduction stands, written all at once or not at all."""

    path: Path

    @classmethod
    def open(cls, path: Path, asked: Mapping[str, Any]) -> Folder:
        """Refuse a folder that holds something else; note what was asked for."""
        folder = cls(path)
        asked = {key: value for key, value in _as_json(asked).items() if key not in PLACES}
        if folder._provenance.exists():
            there = folder._read()["asked"]
            there = {key: value for key, value in there.items() if key not in PLACES}
            if there != asked:
                raise RunFolderError(
                    f"{path} holds a reproduction made with other options: {there}, not {asked}; "
                    "choose another folder"
                )
            if not (path / "pieces").exists():
                folder._restore_pieces()
        elif path.exists() and any(path.iterdir()):
            raise RunFolderError(
                f"{path} is not empty and holds no reproduction; choose another folder"
            )
        (path / "pieces").mkdir(parents=True, exist_ok=True)
        folder._note(asked=asked)
        return folder

    def piece(self, name: str) -> Path:
        """Where a finished piece stands."""
        return self.path / "pieces" / f"{name}.csv"

    def progress(self, name: str) -> Path:
        """Where a piece keeps how far it has come."""
        return self.path / "pieces" / f"{name}.safetensors"

    @property
    def made(self) -> list[dict[str, Any]]:
        """Which code and machine finished which `pieces`."""
        return list(self._read()["made"])

    @property
    def finished(self) -> set[str]:
        """Pieces that are there and of which it is known who made them."""
        signed = {name for maker in self.made for name in maker["pieces"]}
        return {name for name in signed if self.piece(name).exists()}

    def sign(self, earlier: Iterable[dict[str, Any]], maker: dict[str, Any]) -> None:
        """Say who made the pieces of `maker`; makers of `earlier` no longer have them."""
        self._note(made=[*_less(earlier, maker["pieces"]), maker])

    def gather(self, finished: Sequence[str], begun: Mapping[str, Sequence[Row]]) -> Gathered:
        """The rows of finished pieces, then of those under way."""
        done = {name: _rows_of(self.piece(name).read_text()) for name in finished}
        rows = [row for table in (*done.values(), *begun.values()) for row in table]
        return Gathered(csv_of(rows), _lengths(done), _lengths(begun))

    def keep(self, gathered: Gathered) -> None:
        """Write rows.csv, and whose its rows are."""
        self.write("rows.csv", gathered.text)
        self._note(rows=gathered.finished, under_way=gathered.under_way)

    def write(self, name: str, text: str) -> None:
        """Replace a file of the folder."""
        write(self.path / name, text)

    def _restore_pieces(self) -> None:
        """Take the pieces that were finished from rows.csv, of a folder kept without them."""
        record, path = self._read(), self.path / "rows.csv"
        if not record["rows"]:
            return
        try:
            rows = _rows_of(path.read_text())
        except OSError as error:
            raise RunFolderError(f"cannot read {path}: {error}") from error
        expected = sum(record["rows"].values()) + sum(record["under_way"].values())
        if len(rows) != expected:
            raise RunFolderError(
                f"{path} has {len(rows)} rows where provenance.json tells of {expected}; restore "
                "both, or choose another folder"
            )
        (self.path / "pieces.partial").mkdir(exist_ok=True)
        for name, count in record["rows"].items():
            own, rows = rows[:count], rows[count:]
            write(self.path / "pieces.partial" / f"{name}.csv", csv_of(own))
        (self.path / "pieces.partial").rename(self.path / "pieces")

    @property
    def _provenance(self) -> Path:
        return self.path / "provenance.json"

    def _read(self) -> dict[str, Any]:
        try:
            record = json.loads(self._provenance.read_text())
        except (OSError, ValueError) as error:
            raise RunFolderError(f"cannot read {self._provenance}: {error}") from error
        if not _is_record(record):
            raise RunFolderError(
                f"{self._provenance} is not the record of a reproduction, or one of an earlier "
                "version; choose another folder"
            )
        return dict(record)

    def _note(self, **news: Any) -> None:
        there = self._read() if self._provenance.exists() else NEW_RECORD
        write(self._provenance, json_of({**there, **news}))


def _is_record(value: Any) -> bool:
    """Whether this is what `Folder` writes."""
    return (
        isinstance(value, dict)
        and value.keys() == NEW_RECORD.keys()
        and all(isinstance(value[key], dict) for key in ("asked", "rows", "under_way"))
        and isinstance(value["made"], list)
        and all(
            isinstance(maker, dict) and isinstance(maker.get("pieces"), list)
            for maker in value["made"]
        )
    )


def _lengths(tables: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    return {name: len(table) for name, table in tables.items()}


def _less(made: Iterable[dict[str, Any]], anew: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Who made what, without the pieces that are made anew and those who made only these."""
    for entry in made:
        left = [name for name in entry["pieces"] if name not in anew]
        if left or not entry["pieces"]:
            yield entry | {"pieces": left}


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

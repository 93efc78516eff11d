"""The folder of a reproduction: its pieces, their rows in one table, and who made them.

    pieces/NAME.csv            a finished piece
    pieces/NAME.safetensors    how far a piece that takes hours has come
    rows.csv                   the rows of all pieces, one below the other
    provenance.json            what was asked; which code and machine made which pieces; how many
                               rows of rows.csv are whose

rows.csv holds what pieces/ holds, so a folder can be kept without pieces/ and continued from there.
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
            there = folder._read().get("asked", {})
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
        """Which code and machine made which `pieces`."""
        return list(self._read().get("made", []))

    def sign(self, earlier: Iterable[dict[str, Any]], maker: dict[str, Any]) -> None:
        """Say who made the pieces of `maker`; makers of `earlier` no longer have them."""
        self._note(made=[*_less(earlier, maker["pieces"]), maker])

    def gather(self, finished: Sequence[str], begun: Mapping[str, Sequence[Row]]) -> pd.DataFrame:
        """Write rows.csv of finished pieces and of those under way, and read it."""
        tables: dict[str, Sequence[Mapping[str, Any]]] = {
            name: _rows_of(self.piece(name).read_text()) for name in finished
        }
        tables |= begun
        self.write("rows.csv", csv_of([row for table in tables.values() for row in table]))
        self._note(rows={name: len(table) for name, table in tables.items()})
        return pd.read_csv(self.path / "rows.csv")

    def write(self, name: str, text: str) -> None:
        """Replace a file of the folder."""
        write(self.path / name, text)

    def _restore_pieces(self) -> None:
        """Take the pieces that were finished from rows.csv, of a folder kept without them."""
        record, path = self._read(), self.path / "rows.csv"
        counts: dict[str, int] = record.get("rows", {})
        if not counts:
            return
        try:
            rows = _rows_of(path.read_text())
        except OSError as error:
            raise RunFolderError(f"cannot read {path}: {error}") from error
        if len(rows) != sum(counts.values()):
            raise RunFolderError(
                f"{path} has {len(rows)} rows where provenance.json tells of "
                f"{sum(counts.values())}; restore both, or choose another folder"
            )
        finished = {name for maker in record["made"] for name in maker["pieces"]}
        (self.path / "pieces.partial").mkdir(exist_ok=True)
        for name, count in counts.items():
            own, rows = rows[:count], rows[count:]
            if name in finished:
                columns = [key for key in own[0] if any(row[key] for row in own)]
                text = csv_of([{key: row[key] for key in columns} for row in own])
                write(self.path / "pieces.partial" / f"{name}.csv", text)
        (self.path / "pieces.partial").rename(self.path / "pieces")

    @property
    def _provenance(self) -> Path:
        return self.path / "provenance.json"

    def _read(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._provenance.read_text()))
        except (OSError, ValueError) as error:
            raise RunFolderError(f"cannot read {self._provenance}: {error}") from error

    def _note(self, **news: Any) -> None:
        there = self._read() if self._provenance.exists() else {"asked": {}, "made": [], "rows": {}}
        write(self._provenance, json_of(there | news))


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

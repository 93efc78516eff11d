"""Run folders: config.json, provenance.json, rows.csv, and a checkpoint while a run goes on.

A folder is never overwritten. A run that was killed is taken up at its last checkpoint, and
its rows are then, byte for byte, those of a run that was never interrupted: rows hold nothing
that depends on the clock (seconds stand in the provenance).
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.metadata
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import gfucb
from gfucb.agents.saving import read_state, write_state
from gfucb.contracts import Row
from gfucb.errors import RunFolderError, SavedStateError
from gfucb.experiments.config import AgentConfig, RunConfig, WorldConfig
from gfucb.experiments.playing import AnyAgent, AnyRunConfig, prepare

try:
    import fcntl
except ModuleNotFoundError:  # where there are no such locks, two runs must not share a folder
    fcntl = None  # type: ignore[assignment]

# A checkpoint follows a round unless writing them would take more than this share of the time.
CHECKPOINT_SHARE = 0.1
# What a run killed while it was opening its folder may have left.
OPENING = ("provenance.json", "provenance.json.partial", "config.json.partial")
VERSIONED = ("torch", "numpy", "scipy", "scikit-learn", "safetensors")


def run(config: AnyRunConfig, folder: Path, *, data_dir: str | None = None) -> Iterator[Row]:
    """Run `config` into `folder`, yielding rows as they are written; resume what was begun."""
    # World and agent first: settings that cannot be run leave no folder behind.
    agent, rows_from = prepare(config, data_dir)
    _open_folder(folder, config)
    with _locked(folder):
        done = _restore(folder, agent)
        rows_before = _keep_rows(folder, done.rounds)
        _note_resumption(folder, done.rounds)
        regret = float(rows_before[-1]["cumulative_regret"]) if rows_before else 0.0
        rows = rows_from(done.rounds, regret)
        begin = time.process_time() - done.cpu_seconds
        yield from _written(rows, folder, agent, begin)
        _finish(folder, time.process_time() - begin)


def is_finished(folder: Path, config: AnyRunConfig) -> bool:
    """Whether `folder` holds the finished run of `config`; an error if it holds another one."""
    if not (folder / "config.json").exists():
        return False
    _require_same_config(folder, config)
    return bool(_read_json(folder / "provenance.json").get("finished"))


def read_rows(folder: Path) -> list[dict[str, str]]:
    """The rows of a run, values as text."""
    path = folder / "rows.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def read_config(folder: Path) -> dict[str, Any]:
    """The settings of a run, as nested dictionaries."""
    return _read_json(folder / "config.json")


def load_config(folder: Path) -> RunConfig:
    """The settings of a run, as they were given."""
    stored = read_config(folder)
    try:
        return RunConfig(
            WorldConfig(**stored["world"]),
            AgentConfig(**stored["agent"]),
            stored["num_rounds"],
            stored["seed"],
        )
    except (KeyError, TypeError) as error:
        raise RunFolderError(f"{folder} was written by another version: {error}") from error


def read_provenance(folder: Path) -> dict[str, Any]:
    """Where, when and by what a run was made."""
    return _read_json(folder / "provenance.json")


def provenance_now() -> dict[str, Any]:
    """Versions, commit and machine, as they are."""
    return {
        "gfucb": gfucb.__version__,
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted_changes": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": "cpu",
        "threads": torch.get_num_threads(),
        "versions": {name: importlib.metadata.version(name) for name in VERSIONED},
    }


def _open_folder(folder: Path, config: AnyRunConfig) -> None:
    if (folder / "config.json").exists():
        if is_finished(folder, config):
            raise RunFolderError(
                f"{folder} holds a finished run, and runs are never overwritten; "
                "choose another folder, or remove this one yourself"
            )
        return
    if folder.exists() and any(entry.name not in OPENING for entry in folder.iterdir()):
        raise RunFolderError(
            f"{folder} exists, is not empty and is no run folder (it has no config.json); "
            "choose another folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(
        folder / "provenance.json",
        provenance_now() | {"started": _now(), "cpu_seconds": 0.0, "finished": None},
    )
    # Written last: a folder with a config is a run that can be resumed.
    _write_json(folder / "config.json", dataclasses.asdict(config))


def _require_same_config(folder: Path, config: AnyRunConfig) -> None:
    there, mine = _flat(read_config(folder)), _flat(_as_json(dataclasses.asdict(config)))
    for name in sorted(there.keys() | mine.keys()):
        if there.get(name) != mine.get(name):
            raise RunFolderError(
                f"{folder} holds a run with {name} = {there.get(name)!r}, not {mine.get(name)!r}; "
                "choose another folder"
            )


@dataclass(frozen=True)
class _Done:
    """What a checkpoint has seen."""

    rounds: int = 0
    cpu_seconds: float = 0.0


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder for this process; another one gets an error instead of mixed rows."""
    with (folder / "config.json").open() as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RunFolderError(f"another process is writing the run in {folder}") from None
        yield


def _restore(folder: Path, agent: AnyAgent) -> _Done:
    """Load the last checkpoint, if there is one."""
    checkpoint = folder / "checkpoint.safetensors"
    if not checkpoint.exists():
        return _Done()
    state, facts = read_state(checkpoint)
    if not {"round", "cpu_seconds"} <= facts.keys():
        raise SavedStateError(f"{checkpoint} is no checkpoint of a run; remove it to start over")
    agent.load_state(state)
    return _Done(int(facts["round"]), float(facts["cpu_seconds"]))


def _keep_rows(folder: Path, rounds_done: int) -> list[dict[str, str]]:
    """Drop the rows of rounds the checkpoint has not seen; they are played again."""
    path = folder / "rows.csv"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    if rounds_done == 0:
        path.unlink(missing_ok=True)
        return []
    kept = lines[: rounds_done + 1]
    if len(kept) < rounds_done + 1 or not kept[-1].startswith(f"{rounds_done},"):
        raise RunFolderError(
            f"{path} has rows of {max(0, len(kept) - 1)} rounds but the checkpoint beside it has "
            f"seen {rounds_done}; remove the folder to start over"
        )
    partial = path.with_suffix(".partial")
    partial.write_text("".join(kept))
    os.replace(partial, path)
    return read_rows(folder)


def _note_resumption(folder: Path, rounds_done: int) -> None:
    """Rows made by another version must be told apart from those before them."""
    if rounds_done:
        provenance = read_provenance(folder)
        entry = provenance_now() | {"at": _now(), "after_round": rounds_done}
        provenance.setdefault("resumed", []).append(entry)
        _write_json(folder / "provenance.json", provenance)


def _finish(folder: Path, cpu_seconds: float) -> None:
    finished = {"cpu_seconds": cpu_seconds, "finished": _now()}
    _write_json(folder / "provenance.json", read_provenance(folder) | finished)
    (folder / "checkpoint.safetensors").unlink(missing_ok=True)


def _written(rows: Iterator[Row], folder: Path, agent: AnyAgent, cpu_begin: float) -> Iterator[Row]:
    """Write each row as it comes, and a checkpoint after it when that is cheap enough."""
    started, spent = time.perf_counter(), 0.0
    with (folder / "rows.csv").open("a", newline="") as file:
        writer: csv.DictWriter[str] | None = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                if file.tell() == 0:
                    writer.writeheader()
            writer.writerow(row)
            file.flush()
            begin = time.perf_counter()
            if spent <= CHECKPOINT_SHARE * (begin - started):
                seconds = time.process_time() - cpu_begin
                facts = {"round": str(row["round"]), "cpu_seconds": str(seconds)}
                write_state(folder / "checkpoint.safetensors", agent.state(), facts)
                spent += time.perf_counter() - begin
            yield row


def _git(*arguments: str) -> str:
    """What git says of the folder this package lies in; empty where there is no checkout."""
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _flat(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _as_json(value: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(value)))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"cannot read {path}: {error}") from error


def _write_json(path: Path, content: dict[str, Any]) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(content, indent=2) + "\n")
    os.replace(partial, path)

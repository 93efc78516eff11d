"""Run directories: config.json, provenance.json, rows.csv, and a checkpoint while a run goes on.

A directory is never overwritten. A run that was killed is taken up at its last checkpoint, and
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
from gfucb.core.checkpoint import read_state, write_state
from gfucb.core.errors import RunDirectoryError, SavedStateError
from gfucb.core.records import Row
from gfucb.runs.build_run import AnyAgent, AnyRunConfig, prepare
from gfucb.runs.config import AgentConfig, EnvironmentConfig, RunConfig

try:
    import fcntl
except ModuleNotFoundError:  # where there are no such locks, two runs must not share a directory
    fcntl = None  # type: ignore[assignment]

# A checkpoint follows a round unless writing them would take more than this share of the time.
CHECKPOINT_SHARE = 0.1
# What a run killed while it was opening its directory may have left.
OPENING = ("provenance.json", "provenance.json.partial", "config.json.partial")
VERSIONED = ("torch", "numpy", "scipy", "scikit-learn", "safetensors")


def run(config: AnyRunConfig, directory: Path, *, data_dir: str | None = None) -> Iterator[Row]:
    """Run `config` into `directory`, yielding rows as they are written; resume what was begun."""
    # Environment and agent first: settings that cannot be run leave no directory behind.
    agent, rows_from = prepare(config, data_dir)
    _open_directory(directory, config)
    with _locked(directory):
        done = _restore(directory, agent)
        rows_before = _keep_rows(directory, done.rounds)
        _note_resumption(directory, done.rounds)
        regret = float(rows_before[-1]["cumulative_regret"]) if rows_before else 0.0
        rows = rows_from(done.rounds, regret)
        begin = time.process_time() - done.cpu_seconds
        yield from _written(rows, directory, agent, begin)
        _finish(directory, time.process_time() - begin)


def is_finished(directory: Path, config: AnyRunConfig) -> bool:
    """Whether `directory` holds the finished run of `config`; an error if it holds another one."""
    if not (directory / "config.json").exists():
        return False
    _require_same_config(directory, config)
    return bool(_read_json(directory / "provenance.json").get("finished"))


def read_rows(directory: Path) -> list[dict[str, str]]:
    """The rows of a run, values as text."""
    path = directory / "rows.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def read_config(directory: Path) -> dict[str, Any]:
    """The settings of a run, as nested dictionaries."""
    return _read_json(directory / "config.json")


def load_config(directory: Path) -> RunConfig:
    """The settings of a run, as they were given."""
    stored = read_config(directory)
    try:
        return RunConfig(
            EnvironmentConfig(**stored["environment"]),
            AgentConfig(**stored["agent"]),
            stored["num_rounds"],
            stored["seed"],
        )
    except (KeyError, TypeError) as error:
        raise RunDirectoryError(f"{directory} was written by another version: {error}") from error


def read_provenance(directory: Path) -> dict[str, Any]:
    """Where, when and by what a run was made."""
    return _read_json(directory / "provenance.json")


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


def _open_directory(directory: Path, config: AnyRunConfig) -> None:
    if (directory / "config.json").exists():
        if is_finished(directory, config):
            raise RunDirectoryError(
                f"{directory} holds a finished run, and runs are never overwritten; "
                "choose another directory, or remove this one yourself"
            )
        return
    if directory.exists() and any(entry.name not in OPENING for entry in directory.iterdir()):
        raise RunDirectoryError(
            f"{directory} exists, is not empty and is no run directory (it has no config.json); "
            "choose another directory"
        )
    directory.mkdir(parents=True, exist_ok=True)
    _write_json(
        directory / "provenance.json",
        provenance_now() | {"started": _now(), "cpu_seconds": 0.0, "finished": None},
    )
    # Written last: a directory with a config is a run that can be resumed.
    _write_json(directory / "config.json", dataclasses.asdict(config))


def _require_same_config(directory: Path, config: AnyRunConfig) -> None:
    there, mine = _flat(read_config(directory)), _flat(_as_json(dataclasses.asdict(config)))
    for name in sorted(there.keys() | mine.keys()):
        if there.get(name) != mine.get(name):
            raise RunDirectoryError(
                f"{directory} holds a run with {name} = {there.get(name)!r}, not {mine.get(name)!r}; "
                "choose another directory"
            )


@dataclass(frozen=True)
class _Done:
    """What a checkpoint has seen."""

    rounds: int = 0
    cpu_seconds: float = 0.0


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the directory for this process; another one gets an error instead of mixed rows."""
    with (directory / "config.json").open() as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RunDirectoryError(
                    f"another process is writing the run in {directory}"
                ) from None
        yield


def _restore(directory: Path, agent: AnyAgent) -> _Done:
    """Load the last checkpoint, if there is one."""
    checkpoint = directory / "checkpoint.safetensors"
    if not checkpoint.exists():
        return _Done()
    state, facts = read_state(checkpoint)
    if not {"round", "cpu_seconds"} <= facts.keys():
        raise SavedStateError(f"{checkpoint} is no checkpoint of a run; remove it to start over")
    agent.load_state(state)
    return _Done(int(facts["round"]), float(facts["cpu_seconds"]))


def _keep_rows(directory: Path, rounds_done: int) -> list[dict[str, str]]:
    """Drop the rows of rounds the checkpoint has not seen; they are played again."""
    path = directory / "rows.csv"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    if rounds_done == 0:
        path.unlink(missing_ok=True)
        return []
    kept = lines[: rounds_done + 1]
    if len(kept) < rounds_done + 1 or not kept[-1].startswith(f"{rounds_done},"):
        raise RunDirectoryError(
            f"{path} has rows of {max(0, len(kept) - 1)} rounds but the checkpoint beside it has "
            f"seen {rounds_done}; remove the directory to start over"
        )
    partial = path.with_suffix(".partial")
    partial.write_text("".join(kept))
    os.replace(partial, path)
    return read_rows(directory)


def _note_resumption(directory: Path, rounds_done: int) -> None:
    """Rows made by another version must be told apart from those before them."""
    if rounds_done:
        provenance = read_provenance(directory)
        entry = provenance_now() | {"at": _now(), "after_round": rounds_done}
        provenance.setdefault("resumed", []).append(entry)
        _write_json(directory / "provenance.json", provenance)


def _finish(directory: Path, cpu_seconds: float) -> None:
    finished = {"cpu_seconds": cpu_seconds, "finished": _now()}
    _write_json(directory / "provenance.json", read_provenance(directory) | finished)
    (directory / "checkpoint.safetensors").unlink(missing_ok=True)


def _written(
    rows: Iterator[Row], directory: Path, agent: AnyAgent, cpu_begin: float
) -> Iterator[Row]:
    """Write each row as it comes, and a checkpoint after it when that is cheap enough."""
    started, spent = time.perf_counter(), 0.0
    with (directory / "rows.csv").open("a", newline="") as file:
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
                write_state(directory / "checkpoint.safetensors", agent.state(), facts)
                spent += time.perf_counter() - begin
            yield row


def _git(*arguments: str) -> str:
    """What git says of the directory this package lies in; empty where there is no checkout."""
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
        raise RunDirectoryError(f"cannot read {path}: {error}") from error


def _write_json(path: Path, content: dict[str, Any]) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(content, indent=2) + "\n")
    os.replace(partial, path)

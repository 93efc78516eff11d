"""Runs of the comparison: one process and one JSON file for each package, problem and seed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gfucb.core.errors import DataFileError
from gfucb.runs.provenance import current_provenance, timestamp

from .environments import python_of
from .plan import FIRST_TUNING_SEED, PEERS, TUNED_ON, Peer, Settings
from .problem_files import PROBLEMS, ProblemSpec, write_problem

HERE = Path(__file__).parent
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Comparison:
    """What to run.

    Attributes:
        out: the directory of problems and runs.
        environments: the directory of the virtual environments.
        data_dir: the directory of data files.
        problems: names.
        peers: names.
        num_seeds: report seeds, from 0.
    """

    out: Path
    environments: Path
    data_dir: str | None
    problems: tuple[str, ...] = tuple(PROBLEMS)
    peers: tuple[str, ...] = tuple(PEERS)
    num_seeds: int = 3

    def problem_file(self, spec: ProblemSpec, seed: int) -> Path:
        """The arrays of a problem."""
        return self.out / "problems" / f"{spec.name}-T={spec.num_rounds}-seed={seed}.npz"

    def run_file(self, spec: ProblemSpec, peer: Peer, settings: Settings, seed: int) -> Path:
        """The result of a run."""
        text = json.dumps(dict(settings), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        name = f"{peer.name}-{digest}-seed={seed}.json"
        return self.out / "runs" / f"{spec.name}-T={spec.num_rounds}" / name

    def grid(self, spec: ProblemSpec, peer: Peer) -> list[Settings]:
        """The settings to choose from."""
        with np.load(self.problem_file(spec, FIRST_TUNING_SEED)) as stored:
            kind, num_tasks = str(stored["kind"]), stored["noise"].shape[1]
        return list(peer.grid(kind, num_tasks))

    def chosen(self, spec: ProblemSpec, peer: Peer) -> Settings | None:
        """The settings with the smallest regret on the tuning seed; None if all have failed."""
        tuned = PROBLEMS[TUNED_ON.get(spec.name, spec.name)]
        grid = self.grid(tuned, peer)
        if len(grid) == 1:
            return grid[0]
        found = [
            (read(self.run_file(tuned, peer, settings, FIRST_TUNING_SEED)), settings)
            for settings in grid
        ]
        finished = [(run["regret"], settings) for run, settings in found if "regret" in run]
        return min(finished, key=lambda pair: pair[0])[1] if finished else None


def read(path: Path) -> dict[str, Any]:
    """A result; empty if it is missing."""
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def run(comparison: Comparison, say: Say) -> None:
    """Compute what is missing: first tuning, then one report seed after another."""
    specs = list(_with_problems(comparison, say))
    peers = [PEERS[name] for name in comparison.peers]
    for spec in specs:
        for peer in peers:
            grid = comparison.grid(spec, peer)
            if len(grid) > 1 and spec.name not in TUNED_ON:
                for settings in grid:
                    run_one(comparison, spec, peer, settings, FIRST_TUNING_SEED, say)
    for seed in range(comparison.num_seeds):
        for spec in specs:
            for peer in peers:
                chosen = comparison.chosen(spec, peer)
                if chosen is not None:
                    run_one(comparison, spec, peer, chosen, seed, say)


def _with_problems(comparison: Comparison, say: Say) -> Iterator[ProblemSpec]:
    """Write the problem files; problems without their data are named and left out."""
    for name in comparison.problems:
        spec = PROBLEMS[name]
        try:
            for seed in (FIRST_TUNING_SEED, *range(comparison.num_seeds)):
                path = comparison.problem_file(spec, seed)
                write_problem(spec, seed, comparison.data_dir, path)
        except DataFileError as error:
            say(f"{name} is left out: {error}")
        else:
            yield spec


def run_one(
    comparison: Comparison, spec: ProblemSpec, peer: Peer, settings: Settings, seed: int, say: Say
) -> None:
    """Play one problem in a process of its own, unless the result exists."""
    out = comparison.run_file(spec, peer, settings, seed)
    if out.is_file():
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    words = {
        "--player": peer.name,
        "--distribution": peer.distribution,
        "--problem": str(comparison.problem_file(spec, seed).resolve()),
        "--settings": json.dumps(dict(settings)),
        "--seed": str(seed),
        "--out": str(out.resolve()),
    }
    command = [str(python_of(peer, comparison.environments.resolve())), "-m", "players.play"]
    done = subprocess.run(
        [*command, *(word for pair in words.items() for word in pair)],
        cwd=HERE,
        env=_variables(peer),
        capture_output=True,
        text=True,
        check=False,
    )
    label = f"{spec.name}, {peer.name}, seed {seed}, {json.dumps(dict(settings))}"
    if done.returncode:
        say(f"{label}: FAILED: {' '.join(done.stderr.strip().splitlines()[-1:])}")
        return
    result = read(out) | {
        "problem": spec.name,
        "peer": peer.name,
        "settings": dict(settings),
        "seed": seed,
        "num_rounds": spec.num_rounds,
        "provenance": current_provenance() | {"finished": timestamp()},
        "load": os.getloadavg()[0],
    }
    out.write_text(json.dumps(result, indent=1) + "\n")
    spent = result["decide_seconds"] + result["learn_seconds"]
    say(f"{label}: regret {result['regret']:.4g}, {spent:.1f} CPU seconds")


def _variables(peer: Peer) -> dict[str, str]:
    """One thread; packages other than ours do not see the paths of this environment."""
    found = dict(os.environ) | dict.fromkeys(ONE_THREAD, "1")
    if not peer.is_own:
        found.pop("PYTHONPATH", None)
    return found

"""Play one problem with one package, and write regret, CPU seconds and memory as JSON.

    python -m players.play --player mabwiser --problem digits.npz --settings '{}' --out run.json

The process needs numpy and the package; it does not import the library of this repository, unless
that is the player.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import resource
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .problem import Player, Problem


def play(problem: Problem, player: Player) -> dict[str, Any]:
    """All rounds; only the calls of the package count as CPU time."""
    regret, deciding, learning = 0.0, 0.0, 0.0
    for index in range(problem.num_rounds):
        offer = problem.offer(index)
        start = time.process_time()
        actions = np.asarray(player.choose(offer), dtype=np.int64)
        middle = time.process_time()
        rewards, regrets = problem.play(index, offer, actions)
        restart = time.process_time()
        player.learn(offer, actions, rewards)
        learning += time.process_time() - restart
        deciding += middle - start
        regret += float(regrets.mean())
    return {
        "regret": regret,
        "decisions": problem.num_rounds * problem.num_tasks,
        "decide_seconds": deciding,
        "learn_seconds": learning,
    }


def peak_memory() -> float:
    """Largest resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # Of this program only: the other count includes the parent before the program was started.
        line = next(own for own in status.read_text().splitlines() if own.startswith("VmHWM"))
        return float(line.split()[1]) / 1e3
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if platform.system() == "Darwin" else 1e3)


def main() -> None:
    """Read the command line, play, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--player", required=True, help="a module of this package")
    parser.add_argument("--distribution", default="", help="name of the installed package")
    parser.add_argument("--problem", type=Path, required=True)
    parser.add_argument("--settings", default="{}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    module = importlib.import_module(f".{given.player}_player", __package__)
    problem = Problem(given.problem)
    player: Player = module.make(problem, json.loads(given.settings), given.seed)
    before = peak_memory()
    result = play(problem, player)
    result |= {
        "memory_before": before,
        "peak_memory": peak_memory(),
        "version": version(given.distribution) if given.distribution else "",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    partial = given.out.with_suffix(".part")
    partial.write_text(json.dumps(result, indent=1) + "\n")
    partial.replace(given.out)


if __name__ == "__main__":
    main()

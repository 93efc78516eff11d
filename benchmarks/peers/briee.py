"""BRIEE's own code beside ours on the combination lock: episodes and seconds in one table.

    git clone https://github.com/yudasong/briee PATH
    python -m benchmarks.peers.briee --clone PATH --seeds 1 12 --json benchmarks/peers/briee.json

BRIEE (Zhang et al., 2022) is run as it is, from a clone of your own; `briee_launcher.py` stands in
for gym and wandb, so no other packages are needed. Both solve a lock when five evaluations in a row
have 20 of 20 perfect episodes. BRIEE evaluates after every 50 H episodes and has one task; ours
evaluates after every 10. Each run is stored below `runs/briee`; a repeated command computes the
missing ones. Without `--clone` only ours is run. `--workers` must divide the horizon. A run of
BRIEE that is not solved after `--max-seconds` is stopped and counts as not solved.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.episodic.solving import Budget, solve
from benchmarks.episodic.table import mean_and_interval

from gfucb.core.records import Row
from gfucb.environments import combination_lock
from gfucb.episodic import EpisodicGFUCB
from gfucb.runs.jobs import Job, run_all
from gfucb.runs.store import distinct_provenance
from gfucb.runs.text_files import json_text, with_numbers, write_json

OUT = Path("runs") / "briee"
LAUNCHER = Path(__file__).with_name("briee_launcher.py")
# Settings of BRIEE's main.py; its replay buffers are as large as the number of episodes.
EPISODES_AT_ONCE, IN_A_ROW = 50, 5


def run_briee(
    clone: Path,
    horizon: int,
    seed: int,
    workers: int,
    max_episodes: int,
    max_seconds: float | None = None,
) -> list[Row]:
    """Run BRIEE's main.py until it stops or must; one row for each of its evaluations."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log.jsonl"
        log.touch()
        words = {
            "--horizon": horizon,
            "--num_threads": workers,
            "--seed": seed,
            "--num_episodes": max_episodes,
            "--temp_path": directory,
        }
        command = [sys.executable, LAUNCHER, clone, log, *itertools.chain(*words.items())]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        run_at_most(max_seconds, [*map(str, command)], environment)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
    if not lines:
        raise SystemExit(f"BRIEE made no evaluation in {max_seconds} seconds; give --max-seconds")
    return evaluations(lines, horizon)


def run_at_most(
    seconds: float | None, command: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Run a program to its end, or end it and its workers after so many seconds."""
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        returned = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if returned:
        raise subprocess.CalledProcessError(returned, command)


def evaluations(lines: Sequence[Mapping[str, float]], horizon: int) -> list[Row]:
    """Rows of BRIEE's log up to the evaluation that solves the lock, with our columns.

    It plays 50 episodes for each stage between evaluations; the 50 further episodes that end
    after their first step are not counted.
    """
    rows: list[Row] = []
    perfect = 0
    for number, line in enumerate(lines, start=1):
        perfect = perfect + 1 if line["eval"] == 1 else 0
        rows.append(
            {
                "episodes": number * EPISODES_AT_ONCE * horizon,
                "greedy_return": line["eval"],
                "solved_tasks": int(perfect >= IN_A_ROW),
                "mean_solved_after": number * EPISODES_AT_ONCE * horizon,
                "cpu_seconds": line["cpu_seconds"],
                "seconds": line["seconds"],
            }
        )
        if perfect >= IN_A_ROW:
            break
    return rows


def run_ours(horizon: int, seed: int, num_tasks: int, max_episodes: int) -> list[Row]:
    """The default agent on the same kind of lock."""
    environment = combination_lock(horizon, num_tasks=num_tasks, seed=seed)
    agent = EpisodicGFUCB(num_tasks, horizon, seed=seed)
    return solve(agent, environment, Budget(max_episodes))


def jobs(given: argparse.Namespace) -> list[Job]:
    """One job for each method and seed."""
    found = []
    for seed in given.seeds:
        common = {"horizon": given.horizon, "seed": seed, "max_episodes": given.max_episodes}
        for num_tasks in given.tasks:
            ours = partial(run_ours, given.horizon, seed, num_tasks, given.max_episodes)
            found.append(
                Job(
                    f"horizon={given.horizon}/gfucb/tasks={num_tasks}/seed={seed}",
                    ours,
                    settings=common | {"method": "EpisodicGFUCB, default", "num_tasks": num_tasks},
                )
            )
        if given.clone is not None:
            found.append(
                Job(
                    f"horizon={given.horizon}/briee/seed={seed}",
                    partial(
                        run_briee,
                        given.clone.resolve(),
                        given.horizon,
                        seed,
                        given.workers,
                        given.max_episodes,
                        given.max_seconds,
                    ),
                    settings=common
                    | {
                        "method": "BRIEE, its own code",
                        "num_tasks": 1,
                        "commit": commit(given.clone),
                        "max_seconds": given.max_seconds,
                    },
                    relative_cost=10,
                )
            )
    return found


def commit(clone: Path) -> str:
    """The commit of the clone."""
    command = ["git", "-C", str(clone), "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def summary(
    computed: Mapping[str, Iterable[Mapping[str, str]]], done: Sequence[Job]
) -> list[dict[str, Any]]:
    """A line for each method: solved seeds, episodes of a task, seconds."""
    groups: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for one in done:
        last = with_numbers(list(computed[one.name])[-1])
        key = (one.settings["method"], one.settings["num_tasks"])
        groups.setdefault(key, []).append(last)
    lines = []
    for (method, num_tasks), rows in groups.items():
        line: dict[str, Any] = {"method": method, "num_tasks": num_tasks, "seeds": len(rows)}
        line["solved"] = sum(int(row["solved_tasks"]) == num_tasks for row in rows)
        for name in ("mean_solved_after", "cpu_seconds", "seconds"):
            line[name] = mean_and_interval([float(row[name]) for row in rows])
        lines.append(line)
    return lines


def markdown(lines: Sequence[Mapping[str, Any]]) -> str:
    """The table as text."""
    header = "| agent | M | solved | episodes a task | CPU seconds |\n|---|---|---|---|---|\n"
    rows = [
        f"| {line['method']} | {line['num_tasks']} | {line['solved']} of {line['seeds']} | "
        f"{line['mean_solved_after']['mean']:,.0f} | {line['cpu_seconds']['mean']:,.0f} |"
        for line in lines
    ]
    return header + "\n".join(rows) + "\n"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.briee", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--clone", type=Path, help="your clone of github.com/yudasong/briee")
    parser.add_argument("--horizon", type=int, default=6)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--tasks", type=int, nargs="+", default=[1, 5], help="M of our agents")
    parser.add_argument("--workers", type=int, default=1, help="processes of BRIEE's fits")
    parser.add_argument("--max-episodes", type=int, default=30_000)
    parser.add_argument("--max-seconds", type=float, help="of a run of BRIEE; default no limit")
    parser.add_argument("--processes", type=int, default=1, help="runs at a time")
    parser.add_argument("--out", type=Path, default=OUT, help="directory of the runs")
    parser.add_argument("--json", type=Path)
    return parser


def main(words: Sequence[str] | None = None) -> None:
    """Run both and write the table."""
    given = parser().parse_args(words)
    if given.horizon % given.workers:
        raise SystemExit(f"--workers must divide the horizon {given.horizon}, got {given.workers}")
    done = jobs(given)
    computed = run_all(done, given.out, processes=given.processes)
    lines = summary(computed, done)
    content = {
        "problem": {"horizon": given.horizon, "num_actions": 10, "seeds": given.seeds},
        "results": lines,
        "provenance": distinct_provenance(given.out / name for name in computed),
    }
    print(markdown(lines) if given.json else json_text(content), end="")
    if given.json:
        write_json(given.json, content)


if __name__ == "__main__":
    main()

"""How a decision log grows, and how long an agent takes to start again from it.

    python -m benchmarks.log_growth --json benchmarks/log_growth.json

50 tasks, three actions with four columns each, one row for each decision, rewards at once, and no
fits after the first (`refit="manual"`): what is measured is the log, not the fits. Times are CPU
seconds of one thread.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from benchmarks.paired import write_table

from gfucb import Agent
from gfucb.core.random import random_stream
from gfucb.runs.provenance import current_provenance
from gfucb.runs.text_files import write_json

TASKS, ACTIONS, COLUMNS = 50, 3, 4
SIZES = (2_000, 8_000, 32_000)


@dataclass(frozen=True)
class Growth:
    """After so many decisions.

    Attributes:
        decisions: with one row and one reward each.
        log_bytes: of the file.
        call_seconds: of a decision and its reward, on average since the size before.
        replay_seconds: to rebuild the agent from the log alone.
        restart_seconds: to start from the log and its checkpoint.
    """

    decisions: int
    log_bytes: int
    call_seconds: float
    replay_seconds: float
    restart_seconds: float


def measure(sizes: list[int], directory: Path) -> list[Growth]:
    """Serve decisions; copy the log at each of these sizes, and start again from the copy."""
    draws = random_stream(0, "log growth")
    weights = torch.randn(COLUMNS, generator=draws)
    found: list[Growth] = []
    path, count = directory / "log", 0
    with Agent(log=path, refit="manual", seed=0) as agent:
        for size in sorted(sizes):
            before, first = time.process_time(), count
            for count in range(first + 1, size + 1):
                candidates = torch.rand(1, ACTIONS, COLUMNS, generator=draws)
                decision = agent.decide(candidates, tasks=[count % TASKS])
                agent.observe(decision, decision.inputs @ weights)
            seconds = (time.process_time() - before) / (size - first)
            copy = directory / f"copy of {size}"
            for suffix in ("", "-wal"):
                if Path(f"{path}{suffix}").exists():
                    shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
            replay, restart = start_again(copy), start_again(copy)
            found.append(Growth(size, copy.stat().st_size, seconds, replay, restart))
            print(found[-1], flush=True)
    return found


def start_again(path: Path) -> float:
    """CPU seconds until an agent has the state of the log; it then writes a checkpoint."""
    before = time.process_time()
    agent = Agent(log=path, refit="manual", seed=0)
    seconds = time.process_time() - before
    agent.close()
    return seconds


def cells(rows: list[Growth]) -> list[list[str]]:
    """The table: titles first."""
    titles = ["decisions", "size of the log", "a decision and its reward", "replay", "restart"]
    return [
        titles,
        *(
            [
                f"{row.decisions:,}",
                f"{row.log_bytes / 1e6:.1f} MB",
                f"{1e3 * row.call_seconds:.1f} ms",
                f"{row.replay_seconds:.1f} s",
                f"{row.restart_seconds:.2f} s",
            ]
            for row in rows
        ),
    ]


def main() -> None:
    """Measure, unless the file has the numbers; write the table into a page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--page", type=Path, help="document with the table")
    choices = parser.parse_args()
    torch.set_num_threads(1)
    if not choices.json.exists():
        with tempfile.TemporaryDirectory() as directory:
            rows = measure(choices.sizes, Path(directory))
        made = current_provenance()
        write_json(choices.json, {"provenance": made, "rows": [asdict(row) for row in rows]})
    rows = [Growth(**row) for row in json.loads(choices.json.read_text())["rows"]]
    if choices.page is not None:
        write_table(choices.page, "log growth", cells(rows))


if __name__ == "__main__":
    main()

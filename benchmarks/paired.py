"""Runs of benchmarks on the same seeds: in processes, resumable, and compared in pairs.

A run is one line of a file: its job, its result, and where it was computed. This module needs only
torch and numpy, so that runs can be made on a machine that has no more.
"""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from gfucb.runs.pool import worker_context

Job = Mapping[str, Any]
RESAMPLES = 10_000


def make_runs(
    function: Callable[[Job], Mapping[str, Any]],
    jobs: Sequence[Job],
    path: Path,
    processes: int = 1,
) -> list[dict[str, Any]]:
    """The lines of all jobs; those that are not in the file are computed and added to it."""
    made = machine()
    known = {_key(line["job"]): line for line in stored_runs(path)}
    missing = [job for job in jobs if _key(job) not in known]
    path.parent.mkdir(parents=True, exist_ok=True)
    context = worker_context()
    with ProcessPoolExecutor(processes, context, _one_thread) as pool, path.open("a") as file:
        futures: dict[Future[Mapping[str, Any]], Job] = {
            pool.submit(function, job): job for job in missing
        }
        for count, future in enumerate(as_completed(futures), 1):
            job = dict(futures[future])
            line = {"job": job, "result": dict(future.result()), "made": made}
            file.write(json.dumps(line) + "\n")
            file.flush()
            print(f"{count}/{len(missing)}", json.dumps(line["job"]), line["result"], flush=True)
            known[_key(job)] = line
    return [known[_key(job)] for job in jobs]


def stored_runs(path: Path) -> list[dict[str, Any]]:
    """The lines of a file; none if it does not exist."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def by_seed(lines: Sequence[Mapping[str, Any]], **job: Any) -> dict[int, Mapping[str, Any]]:
    """The results of runs whose jobs have these values, by seed."""
    return {
        line["job"]["seed"]: line["result"]
        for line in lines
        if all(line["job"].get(name) == value for name, value in job.items())
    }


def numbers(name: str, *results: Mapping[int, Mapping[str, Any]]) -> list[list[float]]:
    """The numbers of this name on the seeds that all of the results have, in the same order."""
    seeds = sorted(set.intersection(*(set(found) for found in results)))
    return [[float(found[seed][name]) for seed in seeds] for found in results]


def ratio(first: ArrayLike, second: ArrayLike) -> dict[str, float | int]:
    """mean(first) / mean(second) over paired seeds, with a 95% bootstrap interval over seeds."""
    top, bottom = np.asarray(first, float), np.asarray(second, float)
    draws = np.random.default_rng(0).integers(len(top), size=(RESAMPLES, len(top)))
    ratios = top[draws].mean(1) / bottom[draws].mean(1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    value = float(top.mean() / bottom.mean())
    return {"ratio": value, "low": float(low), "high": float(high), "seeds": len(top)}


def interval(row: Mapping[str, Any]) -> str:
    """A ratio with its interval, for a page."""
    if row["seeds"] == 1:
        return f"{row['ratio']:.2f}"
    return f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def write_table(page: Path, name: str, rows: Sequence[Sequence[str]]) -> None:
    """Replace the table between the marks of `name` in a Markdown page."""
    first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    text = page.read_text()
    before, rest = text.split(first)
    _, after = rest.split(last)
    page.write_text(before + first + table_text(rows) + last + after)


def table_text(rows: Sequence[Sequence[str]]) -> str:
    """Rows, the first of which is the head, as Markdown."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


@cache
def machine() -> dict[str, str]:
    """Where runs are made: commit, version of torch, platform.

    Read once, before the first run: the code was imported then, whatever is committed later.
    """
    try:
        command = ["git", "describe", "--always", "--abbrev=40", "--dirty=+"]
        found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE)
        commit = found.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    return {"commit": commit, "torch": torch.__version__, "platform": platform.platform()}


def _key(job: Job) -> str:
    return json.dumps(job, sort_keys=True)


def _one_thread() -> None:
    torch.set_num_threads(1)


HERE = Path(__file__).parent

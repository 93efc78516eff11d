"""Regret with self-supervision on MNIST, against the runs of Figure 1 without it, on their seeds.

    python -m benchmarks.self_supervision run --data DATA --device cuda --out DIRECTORY
    python -m benchmarks.self_supervision table --out DIRECTORY

`run` makes the jobs that are missing, or those whose names are given with --jobs; several
processes may make different jobs at once. `table` writes all rows, their provenance and a
table beside this file. The runs without self-supervision are those of `gfucb reproduce fig1`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from gfucb.core.records import Row
from gfucb.paper.common import Options
from gfucb.paper.fig1.sweep import Curve, Sizes, curve_rows
from gfucb.runs.provenance import current_provenance
from gfucb.runs.text_files import csv_text, read_csv, read_json, write_json, write_text

HERE = Path(__file__).parent
WITHOUT = HERE.parent / "results" / "fig1" / "rows.csv"
FIRST_SEED = 200


@dataclass(frozen=True)
class Job:
    """The runs of one agent on some seeds."""

    name: str
    curve: Curve
    num_seeds: int = 20

    def rows(self, options: Options) -> list[Row]:
        """Run it."""
        seeds = range(FIRST_SEED, FIRST_SEED + self.num_seeds)
        return curve_rows(self.curve, seeds, Sizes(), options, self_supervision="auto")


JOBS = (
    Job("M=10", Curve("gfucb")),
    Job("M=10, greedy", Curve("greedy")),
    Job("M=100", Curve("gfucb", 100, num_tasks=100), num_seeds=5),
    Job("K=5", Curve("gfucb", num_actions=5)),
    Job("K=5, greedy", Curve("greedy", num_actions=5)),
    Job("K=2", Curve("gfucb", num_actions=2)),
    Job("K=2, greedy", Curve("greedy", num_actions=2)),
    Job("M=1", Curve("gfucb", 1), num_seeds=5),
)
BY_NAME = {job.name: job for job in JOBS}


def main(words: Sequence[str] | None = None) -> None:
    """Run jobs, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("--jobs", nargs="+", choices=list(BY_NAME), default=list(BY_NAME))
    parser.add_argument("--data", help="directory with the files of MNIST")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True, help="directory of the finished jobs")
    given = parser.parse_args(words)
    if given.command == "run":
        options = Options(data_dir=given.data, device=given.device)
        for name in given.jobs:
            run(BY_NAME[name], options, given.out)
    else:
        write_table(given.out)


def run(job: Job, options: Options, out: Path) -> None:
    """Make the rows of a job, unless they are there."""
    rows_path, provenance_path = out / f"{job.name}.csv", out / f"{job.name}.json"
    if provenance_path.exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    rows = job.rows(options)
    write_text(rows_path, csv_text(rows, list(rows[0])))
    write_json(provenance_path, current_provenance())  # says that the rows are complete
    last = [float(row["regret"]) for row in rows if row["round"] == rows[-1]["round"]]
    print(f"{job.name}: {sum(last) / len(last):.2f} on {len(last)} seeds", flush=True)


def write_table(out: Path) -> None:
    """Write rows, provenance and table of all finished jobs beside this file."""
    finished = [job for job in JOBS if (out / f"{job.name}.json").exists()]
    rows = [
        {"job": job.name, **row} for job in finished for row in read_csv(out / f"{job.name}.csv")
    ]
    write_text(HERE / "self_supervision.csv", csv_text(rows, list(rows[0])))
    provenance = {job.name: read_json(out / f"{job.name}.json") for job in finished}
    write_json(HERE / "self_supervision.json", provenance)
    text = table(pd.DataFrame(rows).astype({"seed": int, "round": int, "regret": float}))
    write_text(HERE / "self_supervision.md", text)
    print(text)


def table(rows: pd.DataFrame) -> str:
    """Final regret with and without self-supervision, and ratios on paired seeds, as markdown."""
    from gfucb.paper.intervals import paired_ratio

    without = pd.read_csv(WITHOUT)
    oracle = final(without, Curve("oracle-ucb", 1))
    lines = [
        "| runs | seeds | without | with | with / without | with / UCB on the true digits |",
        "|---|---|---|---|---|---|",
    ]
    for job in JOBS:
        own = rows[rows["job"] == job.name]
        if own.empty:
            continue
        regrets = final(own, job.curve)
        before = final(without, job.curve).reindex(regrets.index)
        is_ten = job.curve.num_actions == Curve("").num_actions
        to_oracle = paired_ratio(regrets, oracle.reindex(regrets.index)) if is_ten else ""
        ratio = paired_ratio(regrets, before)
        lines.append(
            f"| {job.name} | {len(regrets)} | {before.mean():.2f} | {regrets.mean():.2f} | {ratio}"
            f" | {to_oracle} |"
        )
    lines += ["", "| GFUCB / multitask greedy, both with self-supervision | ratio |", "|---|---|"]
    for name in ("M=10", "K=5", "K=2"):
        own, greedy = (rows[rows["job"] == job] for job in (name, f"{name}, greedy"))
        if not own.empty and not greedy.empty:
            pair = final(own, BY_NAME[name].curve), final(greedy, BY_NAME[f"{name}, greedy"].curve)
            lines.append(f"| {name} | {paired_ratio(*pair)} |")
    return "\n".join(["# Self-supervision on MNIST, T = 600", "", *lines, ""])


def final(rows: pd.DataFrame, curve: Curve) -> pd.Series:
    """Regret of each seed after the last round of a curve, by seed."""
    own = rows[
        (rows["agent"] == curve.agent)
        & (rows["group_size"].astype(int) == curve.group_size)
        & (rows["num_actions"].astype(int) == curve.num_actions)
        & (rows["epsilon"].astype(float) == curve.epsilon)
    ]
    return own[own["round"] == own["round"].max()].set_index("seed")["regret"].sort_index()


if __name__ == "__main__":
    main()

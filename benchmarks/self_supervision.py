"""Regret with and without self-supervision on MNIST, digits, and images whose views are wrong.

    python -m benchmarks.self_supervision run --data DATA --device cuda --out DIRECTORY
    python -m benchmarks.self_supervision table --out DIRECTORY

`run` makes the jobs that are missing, or those whose names are given with --jobs; several
processes may make different jobs at once. `table` writes all rows, their provenance and a
table beside this file. On MNIST the runs with self-supervision are those of `gfucb reproduce fig1`;
on digits those without it are of an earlier `benchmarks/regret.py`. Seeds are the same. No setting
was tuned on them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import pandas as pd

from gfucb.core.records import Row
from gfucb.environments import (
    ImageBandit,
    LabelledImages,
    load_digits,
    load_mnist,
    transformed_images,
)
from gfucb.paper.common import Options
from gfucb.paper.fig1.sweep import Curve, Sizes, curve_rows
from gfucb.paper.intervals import paired_ratio
from gfucb.runs.provenance import current_provenance
from gfucb.runs.text_files import csv_text, read_csv, read_json, write_json, write_text

HERE = Path(__file__).parent
FIGURE = HERE.parent / "results" / "fig1" / "rows.csv"
WITHOUT_DIGITS = HERE / "regret_without_self_supervision.csv"
FIRST_SEED, FIRST_SEED_OF_DIGITS = 200, 300
WITHOUT = ", without"

Images = Literal["mnist", "digits", "mnist rotation", "digits rotation"]


@dataclass(frozen=True)
class Job:
    """The runs of one agent on some seeds, as in Figure 1 unless `images` are given.

    Attributes:
        name: of the job and its files.
        curve: agent, tasks and actions.
        num_seeds: how many, from `first_seed` on.
        images: of an environment with the settings of `gfucb run`; None for that of Figure 1.
        num_rounds: the length of the runs.
        is_used: whether the agents use self-supervision.
    """

    name: str
    curve: Curve
    num_seeds: int = 20
    images: Images | None = None
    num_rounds: int = 600
    is_used: bool = True

    @property
    def first_seed(self) -> int:
        """The runs without self-supervision have these seeds too."""
        return FIRST_SEED if self.images is None else FIRST_SEED_OF_DIGITS

    def rows(self, options: Options) -> list[Row]:
        """Run it."""

        def environment(seed: int) -> ImageBandit:
            return self.environment(options, seed)

        seeds = range(self.first_seed, self.first_seed + self.num_seeds)
        return curve_rows(
            self.curve,
            seeds,
            Sizes(num_rounds=self.num_rounds),
            options,
            self_supervision="auto" if self.is_used else None,
            environment=None if self.images is None else environment,
        )

    def environment(self, options: Options, seed: int) -> ImageBandit:
        """That of a seed, with the settings of `gfucb run`."""
        assert self.images is not None
        return ImageBandit(
            labelled_images(self.images, options.data_dir),
            num_tasks=self.curve.num_tasks,
            num_actions=self.curve.num_actions,
            reward_map="uniform",
            noise_scale=0.1,
            seed=seed,
        )


@lru_cache(maxsize=1)
def labelled_images(name: Images, data_dir: str | None) -> LabelledImages:
    """Images and their classes."""
    data = load_mnist(data_dir) if name.startswith("mnist") else load_digits()
    return transformed_images(data, "rotation") if name.endswith("rotation") else data


def tasks(count: int) -> Curve:
    """GFUCB on so many tasks that share a representation."""
    return Curve("gfucb", count, num_tasks=count)


FIGURE_CURVES = {
    "M=10": Curve("gfucb"),
    "M=10, greedy": Curve("greedy"),
    "M=100": tasks(100),
    "M=1": Curve("gfucb", 1),
    "K=5": Curve("gfucb", num_actions=5),
    "K=5, greedy": Curve("greedy", num_actions=5),
    "K=2": Curve("gfucb", num_actions=2),
    "K=2, greedy": Curve("greedy", num_actions=2),
}
FIGURE_JOBS = tuple(
    Job(f"{name}{WITHOUT}", curve, is_used=False) for name, curve in FIGURE_CURVES.items()
)
DIGITS_JOBS = (
    Job("digits, M=10", tasks(10), images="digits", num_rounds=200),
    Job("digits, M=30", tasks(30), images="digits", num_rounds=400),
    Job("digits, M=100", tasks(100), images="digits", num_rounds=200),
)
WRONG_VIEWS_JOBS = tuple(
    Job(f"{images}{end}", tasks(10), images=images, num_rounds=100, is_used=not end)
    for images in ("mnist rotation", "digits rotation")
    for end in ("", WITHOUT)
)
JOBS = FIGURE_JOBS + DIGITS_JOBS + WRONG_VIEWS_JOBS
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
    found = {str(name): final(own, BY_NAME[str(name)].curve) for name, own in rows.groupby("job")}
    parts = [figure_lines(found), greedy_lines(), digits_lines(found), wrong_lines(found)]
    filled = [part for part in parts if not part[-1].startswith("|---")]
    lines = [line for part in filled for line in part]
    return "\n".join(["# Self-supervision on images", *lines, ""])


def figure_lines(found: dict[str, pd.Series]) -> list[str]:
    """MNIST: the runs of Figure 1 against those without self-supervision."""
    rows = pd.read_csv(FIGURE)
    oracle = final(rows, Curve("oracle-ucb", 1))
    lines = [
        "",
        "## MNIST, T = 600",
        "",
        "| runs | seeds | without | with | with / without | with / UCB on the true digits |",
        "|---|---|---|---|---|---|",
    ]
    for name, curve in FIGURE_CURVES.items():
        if (job := f"{name}{WITHOUT}") in found:
            before = found[job]
            regrets = final(rows, curve).reindex(before.index)
            is_ten = curve.num_actions == Curve("").num_actions
            to_oracle = paired_ratio(regrets, oracle.reindex(regrets.index)) if is_ten else ""
            lines.append(f"| {name} {compared(regrets, before)} {to_oracle} |")
    return lines


def greedy_lines() -> list[str]:
    """GFUCB against multitask greedy, on all seeds that both have in Figure 1."""
    rows = pd.read_csv(FIGURE)
    lines = [
        "",
        "| GFUCB / multitask greedy, both with self-supervision | seeds | ratio |",
        "|---|---|---|",
    ]
    for name in ("M=10", "K=5", "K=2"):
        own, greedy = (final(rows, FIGURE_CURVES[name + end]) for end in ("", ", greedy"))
        lines.append(f"| {name} | {len(own)} | {paired_ratio(own, greedy)} |")
    return lines


def digits_lines(found: dict[str, pd.Series]) -> list[str]:
    """Digits, against the runs of `benchmarks/regret.py`."""
    rows = pd.read_csv(WITHOUT_DIGITS)
    lines = [
        "",
        "## Digits",
        "",
        "| runs | seeds | without | with | with / without | with / LinUCB |",
        "|---|---|---|---|---|---|",
    ]
    for job in (job for job in DIGITS_JOBS if job.name in found):
        regrets = found[job.name]
        before, linear = (
            rows[(rows["agent"] == agent) & (rows["tasks"] == job.curve.num_tasks)]
            .set_index("seed")["regret"]
            .reindex(regrets.index)
            for agent in ("gfucb", "linucb")
        )
        to_linear = paired_ratio(regrets, linear)
        name = f"{job.name}, T={job.num_rounds}"
        lines.append(f"| {name} {compared(regrets, before)} {to_linear} |")
    return lines


def wrong_lines(found: dict[str, pd.Series]) -> list[str]:
    """Rewards that depend on what the views change, with and without self-supervision."""
    lines = [
        "",
        "## Images whose class is their angle: the views are wrong (M = 10, T = 100)",
        "",
        "| images | seeds | without | with | with / without |",
        "|---|---|---|---|---|",
    ]
    for job in (job for job in WRONG_VIEWS_JOBS if job.is_used and job.name in found):
        if (other := f"{job.name}{WITHOUT}") in found:
            lines.append(f"| {job.name} {compared(found[job.name], found[other])}")
    return lines


def compared(regrets: pd.Series, before: pd.Series) -> str:
    """Cells: seeds, regret without and with, and their ratio."""
    before = before.reindex(regrets.index)
    ratio = paired_ratio(regrets, before)
    return f"| {len(regrets)} | {before.mean():.2f} | {regrets.mean():.2f} | {ratio} |"


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

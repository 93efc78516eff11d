"""What every reproduction has: a claim, jobs that can be resumed, a figure and verdicts.

A directory gets rows.csv, figure.png, figure.svg, verdict.md, verdict.json and provenance.json. A
finished job is not made again, and provenance says which code and machine finished it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from gfucb.core.checkpoint import read_state, write_state
from gfucb.core.errors import InvalidInputError, RunDirectoryError
from gfucb.core.records import Row
from gfucb.paper.results_directory import ResultsDirectory, csv_of, json_of, write
from gfucb.runs.benchmark_results import device_name
from gfucb.runs.plots import save
from gfucb.runs.store import provenance_now


@dataclass(frozen=True)
class Options:
    """What can be asked of a reproduction.

    Attributes:
        seeds: which seeds; None for those of the claim.
        quick: a small version, under a minute: it shows that everything runs, and claims nothing.
        data_dir: where data files lie, for those that need some.
        device: where networks live.
    """

    seeds: tuple[int, ...] | None = None
    quick: bool = False
    data_dir: str | None = None
    device: str = "cpu"


@dataclass(frozen=True)
class Verdict:
    """One sentence of the claim, and what was measured."""

    claim: str
    measured: str
    holds: bool
    margin: str = ""


@dataclass(frozen=True)
class Job:
    """A part that can be made alone: a name, and a pure function that gives its rows.

    Where several processes make jobs, the function is sent to one: a `functools.partial` of a
    function of a module.

    Attributes:
        resumes: a job that takes hours: its function is given the path of a `Progress` that it
            keeps and from which it goes on.
    """

    name: str
    make: Callable[..., Sequence[Row]]
    resumes: bool = False


@dataclass(frozen=True)
class Progress:
    """How far a job has come: the rows it has, and what it needs to go on."""

    rows: Sequence[Row]
    state: dict[str, Tensor]
    facts: dict[str, str]

    def write(self, path: Path) -> None:
        """Replace what is kept at `path`, all at once."""
        write_state(path, self.state, {**self.facts, "rows": json.dumps(self.rows)})

    @classmethod
    def read(cls, path: Path) -> Progress:
        """What is kept at `path`."""
        state, facts = read_state(path)
        if "rows" not in facts:
            raise RunDirectoryError(f"{path} is not the progress of a job; remove it to start over")
        return cls(json.loads(facts.pop("rows")), state, facts)


@dataclass(frozen=True)
class Reproduction:
    """A claim and how it is checked.

    Attributes:
        claim: the claim in a sentence.
        jobs: from the options to the jobs.
        figure: from all rows to the picture.
        verdicts: from all rows to what holds.
        config: settings worth recording, from the options.
        choices: what was chosen where the claim leaves something open, in Markdown, no numbers
            that are measured.
        table: from all rows to more numbers for the page, in Markdown.
    """

    claim: str
    jobs: Callable[[Options], Sequence[Job]]
    figure: Callable[[pd.DataFrame], Figure]
    verdicts: Callable[[pd.DataFrame], Sequence[Verdict]]
    config: Callable[[Options], dict[str, Any]] = field(default=lambda options: {})
    choices: str = ""
    table: Callable[[pd.DataFrame], str] = field(default=lambda rows: "")


def reproduce(
    name: str,
    reproduction: Reproduction,
    out: Path,
    options: Options,
    *,
    advance: Callable[[int], None] = lambda done: None,
    processes: int = 1,
    only: str = "*",
    only_what_is_there: bool = False,
) -> list[Verdict]:
    """Make what is missing in `out`, then rows, figure and verdicts; `advance` counts jobs.

    Pieces are made by so many `processes` at a time, of one thread each; results are the same for
    any number. Made are those whose names match the pattern `only`; while others are missing
    there is no verdict. With `only_what_is_there` nothing is made, the page says of how many
    jobs it speaks, and those under way count as far as they have come.
    """
    if processes < 1:
        raise InvalidInputError(f"processes must be at least 1, got {processes}")
    jobs = reproduction.jobs(options)
    wanted = [job for job in jobs if fnmatchcase(job.name, only)]
    if not wanted:
        raise InvalidInputError(
            f"no job of {name} matches {only!r}; there are {len(jobs)}, from "
            f"{jobs[0].name} to {jobs[-1].name}"
        )
    torch.set_num_threads(1)
    asked = {"name": name, **asdict(options), "config": reproduction.config(options)}
    directory = ResultsDirectory.open(out, asked)
    already = sum(job.name in directory.finished for job in jobs)
    advance(already)
    if not only_what_is_there:
        for count in _make_and_sign(directory, wanted, options, processes):
            advance(already + count)
        if not directory.finished.issuperset(job.name for job in jobs):
            return []
    return _told(name, reproduction, directory, options, [job.name for job in jobs])


def _make_and_sign(
    directory: ResultsDirectory, wanted: Sequence[Job], options: Options, processes: int
) -> Iterator[int]:
    """Make what is missing of the jobs and say who did; yield how many there are by then."""
    begin, earlier, made = _cpu_seconds(), directory.made, list[str]()
    finished = directory.finished
    missing = [job for job in wanted if job.name not in finished]
    if not missing:
        return
    maker = _maker(options)

    def sign() -> None:
        seconds = round(_cpu_seconds() - begin, 1)
        directory.sign(earlier, maker | {"jobs": made, "cpu_seconds": seconds})

    for job in _make_all(directory, missing, processes):
        made.append(job.name)
        sign()
        yield len(made)
    sign()  # the seconds of other processes are known when these have ended


def _told(
    name: str,
    reproduction: Reproduction,
    directory: ResultsDirectory,
    options: Options,
    names: Sequence[str],
) -> list[Verdict]:
    """Rows, figure and verdicts of what is there of the jobs with these names."""
    finished = directory.finished
    there = [job for job in names if job in finished]
    if not there:
        raise RunDirectoryError(f"there is no finished job in {directory.path}")
    kept = {job: directory.progress(job) for job in names if job not in finished}
    begun = {job: Progress.read(path).rows for job, path in kept.items() if path.exists()}
    gathered = directory.gather(there, begun)
    rows, note = gathered.table(), _note(len(there), len(begun), len(names))
    try:
        figure, verdicts = reproduction.figure(rows), list(reproduction.verdicts(rows))
        save(figure, directory.path / "figure")
    except (KeyError, IndexError, ValueError) as error:
        if not note:
            raise
        raise RunDirectoryError(
            f"{directory.path} has too few jobs for a figure: {note}"
        ) from error
    directory.keep(gathered)
    directory.write("verdict.json", json_of([asdict(verdict) for verdict in verdicts]))
    directory.write("verdict.md", verdict_page(name, reproduction.claim, verdicts, options, note))
    return verdicts


def _maker(options: Options) -> dict[str, Any]:
    """Code, versions and machine of this call."""
    device = {} if options.device == "cpu" else {"device": device_name(options.device)}
    return provenance_now() | device


def _make_all(directory: ResultsDirectory, jobs: Sequence[Job], processes: int) -> Iterator[Job]:
    """Make jobs, each written as soon as it is there; yield each then."""
    if processes == 1:
        for job in jobs:
            make(directory, job)
            yield job
        return
    # Forked processes would inherit torch's threads in whatever state they are.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, torch.set_num_threads, (1,)) as pool:
        futures = {pool.submit(make, directory, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                future.result()
                yield futures[future]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def make(directory: ResultsDirectory, job: Job) -> None:
    """Make a job and write it to its directory, all at once."""
    kept = directory.progress(job.name)
    write(directory.job(job.name), csv_of(job.make(kept) if job.resumes else job.make()))
    kept.unlink(missing_ok=True)


def _note(finished: int, begun: int, jobs: int) -> str:
    if finished == jobs:
        return ""
    under_way = f"; {begun} more are under way and count as far as they have come" if begun else ""
    return f"*Made of {finished} of {jobs} jobs{under_way}.*"


def _cpu_seconds() -> float:
    """Of this process and of those it has started and seen end."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def verdict_page(
    name: str, claim: str, verdicts: Iterable[Verdict], options: Options, note: str = ""
) -> str:
    """The verdicts as a page of text."""
    lines = [f"# {name}", "", claim, ""]
    if note:
        lines += [note, ""]
    if options.quick:
        lines += ["*A quick run: it shows that everything works, and claims nothing.*", ""]
    lines += ["| claim | measured | holds | margin |", "|---|---|---|---|"]
    for verdict in verdicts:
        answer = "yes" if verdict.holds else "**no**"
        lines.append(f"| {verdict.claim} | {verdict.measured} | {answer} | {verdict.margin} |")
    flags = " --quick" if options.quick else ""
    lines += ["", f"Made by `gfucb reproduce {name}{flags} --out FOLDER`.", ""]
    return "\n".join(lines)

"""Reproduce a claim: compute its jobs, then write rows, figure and verdicts.

The results directory gets rows.csv, figure.png, figure.svg, verdict.md, verdict.json and
provenance.json. Finished jobs are not computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

from gfucb.core.errors import InvalidInputError, RunDirectoryError
from gfucb.paper.common import Options, Reproduction, Verdict
from gfucb.paper.results_directory import Gathered, ResultsDirectory
from gfucb.runs.jobs import Engine, Job, LocalEngine, Progress, run_jobs
from gfucb.runs.plots import save
from gfucb.runs.stored_settings import default_settings
from gfucb.runs.text_files import write_json, write_text


def reproduce(
    name: str,
    reproduction: Reproduction,
    out: Path,
    options: Options,
    *,
    advance: Callable[[int], None] = lambda done: None,
    problem: Callable[[Job, str], None] = lambda job, text: None,
    processes: int = 1,
    engine: Engine | None = None,
    only: str = "*",
    only_what_is_there: bool = False,
    only_jobs: bool = False,
) -> list[Verdict]:
    """Compute the missing jobs in `out`, then write rows, figure and verdicts.

    Args:
        name: the name of the claim.
        reproduction: the claim.
        out: the results directory. Two calls may share it: each job is computed by one of them.
        options: how the claim is reproduced.
        advance: called with the number of finished jobs.
        problem: called when a job fails, or is repeated because its worker has died.
        processes: how many jobs are computed at a time, one thread each. The rows do not depend
            on it.
        engine: where jobs are computed; by default in `processes` processes of this machine.
        only: compute only jobs whose names match this pattern.
        only_what_is_there: compute nothing; draw the jobs that are finished. Jobs under way count
            as far as they are computed, and the page says how many there are.
        only_jobs: compute jobs and draw nothing, on a machine without the packages of figures; a
            later call draws them.

    Returns:
        The verdicts; none while jobs are missing, or with `only_jobs`.
    """
    jobs = reproduction.jobs(options)
    wanted = [job for job in jobs if fnmatchcase(job.name, only)]
    engine = LocalEngine(processes) if engine is None else engine
    if not wanted:
        raise InvalidInputError(
            f"no job of {name} matches {only!r}; there are {len(jobs)}, from "
            f"{jobs[0].name} to {jobs[-1].name}"
        )
    settings = {"name": name, **asdict(options), "config": reproduction.config(options)}
    directory = ResultsDirectory.open(out, settings, default_settings(options))
    names = [job.name for job in jobs]
    advance(len(directory.finished(names)))
    if not only_what_is_there:
        stored = [directory.job_here(job) for job in wanted]
        progress = Progress(lambda job: advance(len(directory.finished(names))), problem=problem)
        run_jobs(stored, directory.jobs, engine=engine, device=options.device, progress=progress)
        if only_jobs or len(directory.finished(names)) < len(names):
            return []
    return _summarise(name, reproduction, directory, options, names)


def _summarise(
    name: str,
    reproduction: Reproduction,
    directory: ResultsDirectory,
    options: Options,
    names: Sequence[str],
) -> list[Verdict]:
    """Rows, figure and verdicts of the jobs with these names, as far as they are computed."""
    gathered = directory.gather(names)
    if not gathered.finished:
        raise RunDirectoryError(
            f"there is no finished job in {directory.path}; compute some without "
            "--only-what-is-there"
        )
    rows, note = gathered.table(), _note(gathered, len(names))
    try:
        figure, verdicts = reproduction.figure(rows), list(reproduction.verdicts(rows))
        save(figure, directory.path / "figure")
    except (KeyError, IndexError, ValueError) as error:
        if not note:
            raise
        raise RunDirectoryError(
            f"{directory.path} has too few jobs for a figure: {note}"
        ) from error
    directory.save(gathered)
    write_json(directory.path / "verdict.json", [asdict(verdict) for verdict in verdicts])
    page = verdict_page(name, reproduction.claim, verdicts, options, note)
    write_text(directory.path / "verdict.md", page)
    return verdicts


def _note(gathered: Gathered, num_jobs: int) -> str:
    """How many jobs the figure shows, unless it shows all."""
    if len(gathered.finished) == num_jobs:
        return ""
    num_unfinished = len(gathered.under_way)
    under_way = f"; {num_unfinished} more are under way and count as far as they are computed"
    return (
        f"*From {len(gathered.finished)} of {num_jobs} jobs{under_way if num_unfinished else ''}.*"
    )


def verdict_page(
    name: str, claim: str, verdicts: Iterable[Verdict], options: Options, note: str = ""
) -> str:
    """The verdicts in Markdown."""
    lines = [f"# {name}", "", claim, ""]
    if note:
        lines += [note, ""]
    if options.quick:
        lines += ["*A quick run: it shows that everything works, and is no evidence.*", ""]
    lines += ["| claim | measured | holds | margin |", "|---|---|---|---|"]
    for verdict in verdicts:
        answer = "yes" if verdict.holds else "**no**"
        lines.append(f"| {verdict.claim} | {verdict.measured} | {answer} | {verdict.margin} |")
    flags = " --quick" if options.quick else ""
    lines += ["", f"Computed by `gfucb reproduce {name}{flags} --out DIRECTORY`.", ""]
    return "\n".join(lines)

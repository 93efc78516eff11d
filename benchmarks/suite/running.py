"""Runs of the suite: one directory for each family, contender, setting and seed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gfucb.core.errors import DataFileError, GFUCBError
from gfucb.runs.jobs import Job, run_job
from gfucb.runs.pool import one_thread, run_in_processes
from gfucb.runs.store import is_finished, read_provenance, read_rows
from gfucb.runs.text_files import read_json

from .contenders import CONTENDERS, Settings
from .families import FAMILIES, Family
from .playing import TIMING_FILE, ProblemRun

FIRST_TUNING_SEED, FIRST_REPORT_SEED = 2000, 100
# The quick version tries this many settings of a grid, evenly spaced.
QUICK_SETTINGS = 3


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        out: the directory of all runs.
        data_dir: the directory of data files; None if there is none.
        families: names of families.
        contenders: names; of each family, those that it has.
        tuning_seeds: how many, from 2000 on.
        report_seeds: how many, from 100 on.
        num_rounds: T of all families; None for their own.
        is_quick: whether runs have the lengths of the quick version.
        label: of the agents that learn a network. Their code changes, and runs of each version are
            stored under a label of their own; runs of linear agents are shared.
    """

    out: Path
    data_dir: str | None
    families: tuple[str, ...]
    contenders: tuple[str, ...] = tuple(CONTENDERS)
    tuning_seeds: int = 3
    report_seeds: int = 10
    num_rounds: int | None = None
    is_quick: bool = False
    label: str = "default"

    def rounds(self, family: Family) -> int:
        """T."""
        if self.num_rounds is not None:
            return self.num_rounds
        return family.quick_rounds if self.is_quick else family.num_rounds

    def contenders_of(self, family: Family) -> list[str]:
        """The contenders of a family that are wanted."""
        return [name for name in family.contenders if name in self.contenders]

    def grid_of(self, contender: str) -> Sequence[Settings]:
        """The settings to try."""
        grid = CONTENDERS[contender].grid
        if not self.is_quick or len(grid) <= QUICK_SETTINGS:
            return grid
        return [
            grid[(2 * i + 1) * len(grid) // (2 * QUICK_SETTINGS)] for i in range(QUICK_SETTINGS)
        ]

    @property
    def seeds_for_tuning(self) -> range:
        """The seeds on which settings are chosen."""
        return range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + self.tuning_seeds)

    @property
    def seeds_for_report(self) -> range:
        """The seeds of the table."""
        return range(FIRST_REPORT_SEED, FIRST_REPORT_SEED + self.report_seeds)


@dataclass(frozen=True)
class Trial:
    """A contender with one choice of its settings, in a family."""

    family: str
    contender: str
    settings: Settings
    num_rounds: int
    label: str

    @property
    def name(self) -> str:
        """Its directory, relative to that of all runs."""
        values = ",".join(f"{name}={value}" for name, value in self.settings.items())
        label = self.label if CONTENDERS[self.contender].uses_network else "all"
        return f"{self.family}/T={self.num_rounds}/{self.contender}/{values or label}"

    def job(self, seed: int, out: Path, data_dir: str | None) -> Job:
        """The run on a seed."""
        name = f"{self.name}/seed={seed}"
        return Job(
            name,
            partial(problem_run, self, seed, out / name, data_dir),
            resumable=True,
            settings={
                "family": self.family,
                "contender": self.contender,
                "agent": dict(self.settings),
                "num_rounds": self.num_rounds,
                "seed": seed,
            },
            relative_cost=self.num_rounds * (10 if CONTENDERS[self.contender].uses_network else 1),
        )


@dataclass(frozen=True)
class Result:
    """A finished run: cumulative regret, CPU seconds, worst latency, and the share stuck."""

    regret: float
    seconds: float
    latency: float
    stuck: float
    commit: str


def problem_run(trial: Trial, seed: int, directory: Path, data_dir: str | None) -> ProblemRun:
    """The computation of a trial on a seed."""
    family, contender = FAMILIES[trial.family], CONTENDERS[trial.contender]
    environment = family.make(seed, data_dir)
    return ProblemRun(
        contender.make(environment, seed, trial.settings),
        environment,
        trial.num_rounds,
        uses_true_features=contender.uses_true_features,
        reports_stuck=family.reports_stuck,
        directory=directory,
    )


def trials_of(plan: Plan, family: Family, contender: str) -> list[Trial]:
    """One trial for each point of the grid."""
    rounds = plan.rounds(family)
    return [
        Trial(family.name, contender, settings, rounds, plan.label)
        for settings in plan.grid_of(contender)
    ]


def best_trial(plan: Plan, family: Family, contender: str) -> Trial | None:
    """The trial with the smallest mean regret on the tuning seeds; None while some are missing."""
    trials = trials_of(plan, family, contender)
    if len(trials) == 1:
        return trials[0]
    means = []
    for trial in trials:
        found = results_of(plan.out, trial, plan.seeds_for_tuning)
        if len(found) < plan.tuning_seeds:
            return None
        means.append(np.mean([result.regret for result in found.values()]))
    return trials[int(np.argmin(means))]


def results_of(out: Path, trial: Trial, seeds: Iterable[int]) -> dict[int, Result]:
    """The finished runs of a trial, by seed."""
    directories = {seed: out / f"{trial.name}/seed={seed}" for seed in seeds}
    return {seed: read_result(path) for seed, path in directories.items() if is_finished(path)}


def read_result(directory: Path) -> Result:
    """The result of a finished run."""
    last, provenance = read_rows(directory)[-1], read_provenance(directory)
    timing: Mapping[str, float] = read_json(directory / TIMING_FILE)
    return Result(
        float(last["cumulative_regret"]),
        float(provenance["cpu_seconds"]),
        max(timing["decide"], timing["observe"]),
        float(last.get("stuck", "nan")),
        # The mark says that files differed from the commit.
        str(provenance["commit"]) + ("+" if provenance["uncommitted_changes"] else ""),
    )


def available_families(plan: Plan, say: Callable[[str], None]) -> list[Family]:
    """The families whose data files exist; the others are named."""
    found = []
    for name in plan.families:
        try:
            FAMILIES[name].make(FIRST_REPORT_SEED, plan.data_dir)
        except DataFileError as error:
            say(f"{name} is left out: {error}")
        else:
            found.append(FAMILIES[name])
    return found


def run(plan: Plan, processes: int, say: Callable[[str], None]) -> None:
    """Compute what is missing: first all tuning runs, then the report runs of the best settings.

    A run that fails is reported, and the others go on.
    """
    families = available_families(plan, say)
    pairs = [(family, name) for family in families for name in plan.contenders_of(family)]
    tuning = [
        trial.job(seed, plan.out, plan.data_dir)
        for family, name in pairs
        if len(CONTENDERS[name].grid) > 1
        for trial in trials_of(plan, family, name)
        for seed in plan.seeds_for_tuning
    ]
    _compute(tuning, plan.out, processes, say)
    chosen = [best_trial(plan, family, name) for family, name in pairs]
    report = [
        trial.job(seed, plan.out, plan.data_dir)
        for seed in plan.seeds_for_report
        for trial in chosen
        if trial is not None
    ]
    _compute(report, plan.out, processes, say)


def _compute(jobs: Sequence[Job], out: Path, processes: int, say: Callable[[str], None]) -> None:
    missing = [job for job in jobs if not job.directory(out).is_finished()]
    missing.sort(key=lambda job: -job.relative_cost)
    say(f"{len(jobs)} runs, {len(missing)} of them missing")
    for count, (job, problem) in enumerate(_attempts(missing, out, processes), start=1):
        say(f"[{count}/{len(missing)}] {job.name}{f': {problem}' if problem else ''}")


def _attempts(jobs: Sequence[Job], out: Path, processes: int) -> Iterable[tuple[Job, str]]:
    if processes == 1:
        for job in jobs:
            with one_thread():
                yield job, attempt(job, out)
    elif jobs:
        yield from run_in_processes(partial(attempt, out=out), jobs, min(processes, len(jobs)))


def attempt(job: Job, out: Path) -> str:
    """Compute a job; return why it failed, or an empty text."""
    try:
        is_done = run_job(job, out)
    except (GFUCBError, RuntimeError, ValueError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return "" if is_done else "another process is computing it"


def settings_text(settings: Settings) -> str:
    """Settings as text for tables."""
    return json.dumps(dict(settings)) if settings else ""

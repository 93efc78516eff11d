"""Commands about claims: the paper's experiments, and what the theory bounds."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.console import Console

from gfucb.cli.paths import require_place
from gfucb.cli.terminal import audit_table, bounds_table_view, progress
from gfucb.core.errors import InvalidInputError, RunDirectoryError, lookup
from gfucb.paper import PAPER, REPRODUCTIONS, Options, page_of, reproduce
from gfucb.runs.audit import Coverage, audit_run
from gfucb.runs.store import read_config
from gfucb.runs.summary import find_runs
from gfucb.theory.bounds_table import TheoryProblem, evaluate_bounds


@dataclass(frozen=True)
class ReproduceCommand:
    """Make a claim anew: its rows, its figure, and a verdict on every sentence of it.

    The directory gets rows.csv, figure.png, figure.svg, verdict.md, verdict.json and provenance.json.
    Given again, the command makes only what is missing.
    """

    name: Annotated[str, tyro.conf.Positional]
    """Which claim, or `all` for the paper's figures; an unknown name lists the known ones."""
    out: Path
    """ResultsDirectory for the results; of `all`, for a directory each."""
    seeds: tuple[int, ...] | None = None
    """Which seeds, instead of those of the claim."""
    quick: bool = False
    """A small version in under a minute; it claims nothing."""
    data_dir: str | None = None
    """ResultsDirectory with data files, for claims that need some."""
    device: str = "cpu"
    """Where networks live."""
    processes: int = 1
    """How many jobs are made at a time; the results are the same for any number."""
    only: str = "*"
    """Make only jobs whose names match, such as `paper-*`: a claim can be made bit by bit, its
    directory going from machine to machine, one call at a time."""
    only_what_is_there: bool = False
    """Make nothing: figure and verdicts of the jobs that are finished."""

    def __call__(self, console: Console) -> None:
        """Make what is missing, then print the verdicts."""
        options = Options(self.seeds, self.quick, self.data_dir, self.device)
        if self.name == "all":
            for name in self._some_of_the_papers(options):
                replace(self, name=name, out=self.out / name)(console)
            return
        entry = lookup(REPRODUCTIONS, self.name, "reproduction")
        num_pieces = len(entry.jobs(options))
        with progress(console, self.name, num_pieces, "job") as advance:
            verdicts = reproduce(
                self.name,
                entry,
                self.out,
                options,
                advance=advance,
                processes=self.processes,
                only=self.only,
                only_what_is_there=self.only_what_is_there,
            )
        if not verdicts:
            console.print("other jobs are missing: no figure yet", highlight=False)
            return
        for verdict in verdicts:
            answer = "holds" if verdict.holds else "does not hold"
            console.print(f"{verdict.claim}: {answer}. {verdict.measured}", highlight=False)
        console.print(f"figure: {self.out / 'figure.png'}", highlight=False)

    def _some_of_the_papers(self, options: Options) -> list[str]:
        """Figures that have a job whose name matches."""
        names = {name: [p.name for p in REPRODUCTIONS[name].jobs(options)] for name in PAPER}
        found = [name for name in PAPER if fnmatch.filter(names[name], self.only)]
        if not found:
            raise InvalidInputError(f"no job of any figure matches {self.only!r}")
        return found


@dataclass(frozen=True)
class PageCommand:
    """Write one document of all reproductions: pictures, verdicts, choices, provenance."""

    results: Path = Path("results")
    """Where the directories of the reproductions are."""
    out: Path = Path("docs/reproduction.md")
    """The document."""

    def __call__(self, console: Console) -> None:
        """Compose and write."""
        require_place(self.out)
        self.out.write_text(page_of(self.results, self.out.parent))
        console.print(f"written: {self.out}", highlight=False)


@dataclass(frozen=True)
class TheoryCommand:
    """Print what the theory bounds for a class and a problem size, as printed and as it holds.

    Covering number, dimensions, squared radii of Lemmas 1 and 4, regret bounds of Theorems 1
    and 2, all with their constants.
    """

    problem: Annotated[TheoryProblem, tyro.conf.arg(name="")] = field(default_factory=TheoryProblem)
    json: Path | None = None
    """Also write the table to this file."""

    def __call__(self, console: Console) -> None:
        """Print the table."""
        require_place(self.json)
        lines = evaluate_bounds(self.problem)
        console.print(bounds_table_view(lines))
        if self.json is not None:
            content = {
                "problem": asdict(self.problem),
                "bounds": [asdict(line) for line in lines],
            }
            self.json.write_text(json.dumps(content, indent=2) + "\n")


@dataclass(frozen=True)
class AuditCommand:
    """Replay finished runs on environments with a known truth: did they keep the theory's bounds?

    Was the truth in every confidence set? Was regret within the width of the set (Lemma 0), were
    wide sets as rare as Lemma 2 says, was the sum within Theorem 1? Runs of agents without a
    confidence set are passed over. The JSON file holds the constants.
    """

    directory: Annotated[Path, tyro.conf.Positional]
    """A directory that `gfucb compare` or `gfucb run` wrote, of a finite or linear environment."""
    json: Path | None = None
    """Also write the findings to this file."""

    def __call__(self, console: Console) -> None:
        """Replay, print a line for each run and the coverage."""
        require_place(self.json)
        torch.set_num_threads(1)
        audits = [
            audit_run(path)
            for path in find_runs(self.directory)
            if read_config(path)["agent"]["name"] == "gfucb"
        ]
        if not audits:
            raise RunDirectoryError(f"there is no run of gfucb in {self.directory}")
        coverage = Coverage.of(audits)
        console.print(audit_table(audits))
        console.print(
            f"the truth was in every set in {coverage.covered} of {coverage.runs} runs "
            f"(95% interval {coverage.low:.3f} to {coverage.high:.3f})",
            highlight=False,
        )
        if self.json is not None:
            content = {"coverage": asdict(coverage), "runs": [asdict(audit) for audit in audits]}
            self.json.write_text(json.dumps(content, indent=2) + "\n")

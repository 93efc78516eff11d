"""Commands about the paper: reproduce its figures, and write the page of all reproductions."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console

from gfucb.cli.engine_options import EngineOptions, problem_printer
from gfucb.cli.paths import require_parent
from gfucb.cli.terminal import progress
from gfucb.core.errors import InvalidInputError, RunDirectoryError
from gfucb.runs.plugins import load_plugins
from gfucb.runs.text_files import write_text

if TYPE_CHECKING:
    from gfucb.paper import Options


@dataclass(frozen=True)
class ReproduceCommand:
    """Reproduce a figure or claim: its rows, its figure, and a verdict on each statement.

    The directory gets rows.csv, figure.png, figure.svg, verdict.md, verdict.json and
    provenance.json. A repeated command computes only what is missing.
    """

    name: Annotated[str, tyro.conf.Positional]
    """Which one, or `all` for the paper's figures; an unknown name lists the known ones."""
    out: Path
    """Directory for the results; with `all`, for one directory each."""
    plugin: tuple[Path, ...] = ()
    """Python files that register figures of your own."""
    seeds: tuple[int, ...] | None = None
    """Which seeds, instead of the default ones."""
    quick: bool = False
    """A small version that takes under a minute. It tests the code, not the claim."""
    data_dir: str | None = None
    """Directory with data files, for figures that need some."""
    device: str = "cpu"
    """Device of the networks."""
    computing: Annotated[EngineOptions, tyro.conf.arg(name="")] = field(
        default_factory=EngineOptions
    )
    only: str = "*"
    """Compute only jobs whose names match, such as `paper-*`. With it, several machines can
    compute one directory, one call at a time."""
    only_what_is_there: bool = False
    """Compute nothing: figure and verdicts from the finished jobs."""

    def __call__(self, console: Console) -> None:
        """Compute what is missing, then print the verdicts."""
        # Not at the top, here and below: `--help` needs no torch.
        from gfucb.paper import REPRODUCTIONS, Options, reproduce

        load_plugins(self.plugin)
        options = Options(self.seeds, self.quick, self.data_dir, self.device)
        if self.name == "all":
            for name in self._matching_figures(options):
                replace(self, name=name, out=self.out / name)(console)
            return
        entry, engine = REPRODUCTIONS[self.name], self.computing.make(1, self.data_dir)
        num_jobs = len(entry.jobs(options))
        with progress(console, self.name, num_jobs, "job") as advance:
            verdicts = reproduce(
                self.name,
                entry,
                self.out,
                options,
                advance=advance,
                problem=problem_printer(console),
                engine=engine,
                only=self.only,
                only_what_is_there=self.only_what_is_there,
            )
        if not verdicts:
            console.print("some jobs are missing: no figure yet", highlight=False)
            return
        for verdict in verdicts:
            answer = "holds" if verdict.holds else "does not hold"
            console.print(f"{verdict.claim}: {answer}. {verdict.measured}", highlight=False)
        console.print(f"figure: {self.out / 'figure.png'}", highlight=False)

    def _matching_figures(self, options: Options) -> list[str]:
        """The paper's figures that have a job whose name matches `only`."""
        from gfucb.paper import PAPER, REPRODUCTIONS

        names = {name: [job.name for job in REPRODUCTIONS[name].jobs(options)] for name in PAPER}
        found = [name for name in PAPER if fnmatch.filter(names[name], self.only)]
        if not found:
            raise InvalidInputError(f"no job of any figure matches {self.only!r}")
        return found


@dataclass(frozen=True)
class PageCommand:
    """Write one document of all reproductions: figures, verdicts, choices, provenance."""

    results: Path = Path("results")
    """Directory with one directory per reproduction."""
    out: Path = Path("docs/reproduction.md")
    """The document."""
    plugin: tuple[Path, ...] = ()
    """Python files that register figures of your own."""

    def __call__(self, console: Console) -> None:
        """Compose and write."""
        from gfucb.paper import page_of

        load_plugins(self.plugin)
        require_parent(self.out)
        if not self.results.is_dir():
            raise RunDirectoryError(
                f"there is no directory {self.results}; `gfucb reproduce` makes one, --results "
                "names it"
            )
        write_text(self.out, page_of(self.results, self.out.parent))
        console.print(f"written: {self.out}", highlight=False)

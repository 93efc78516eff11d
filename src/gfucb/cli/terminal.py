"""Progress bars and tables on a terminal. All uses of rich are in this file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from gfucb.runs.metrics import as_range, count_of_seeds, metric_of
from gfucb.runs.presets import PRESETS
from gfucb.runs.registry import agent_label

if TYPE_CHECKING:
    import pandas as pd

    from gfucb.evaluation import Evaluation
    from gfucb.runs.audit import RunAudit
    from gfucb.runs.benchmark_results import Ratio
    from gfucb.theory.bounds_table import Bound


def _log_tenths(console: Console, name: str, done: int, total: int, unit: str) -> None:
    if total >= 10 and done % (total // 10) == 0:
        console.print(f"{name}: {unit} {done} of {total}", highlight=False)


@contextmanager
def progress(
    console: Console, name: str, total: int, unit: str = "round"
) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, ten lines in a log; yields a function of the units done."""
    if not console.is_terminal:
        yield lambda done: _log_tenths(console, name, done, total, unit)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} " + unit + "s"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        bar = progress.add_task(name, total=total)
        yield lambda done: progress.update(bar, completed=done)


class ComparisonProgress:
    """Where a comparison stands: a bar on a terminal, a line for each run in a log.

    Args:
        console: where to print.
        show: called with the share of the work that is done and the time left in words.
        clock: seconds.
    """

    def __init__(
        self,
        console: Console,
        show: Callable[[float, str], None] = lambda share, left: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console, self._show, self._clock = console, show, clock
        self._share = 0.0
        self._start: tuple[float, float] | None = None  # time and share at the first call

    def advance(self, share: float) -> None:
        """The share of the work that is done, from 0 to 1."""
        self._share = share
        self._start = self._start or (self._clock(), share)
        self._show(share, self.time_left())

    def time_left(self) -> str:
        """An estimate in words, from what was done since the first call; empty if nothing was."""
        if self._start is None or self._share <= self._start[1] or self._share >= 1:
            return ""
        began, share = self._start
        seconds = (self._clock() - began) * (1 - self._share) / (self._share - share)
        if seconds < 5:
            return "less than 5 s left"
        if seconds < 90:
            return f"about {5 * round(seconds / 5)} s left"
        if seconds < 5400:
            return f"about {round(seconds / 60)} min left"
        return f"about {seconds / 3600:.1f} h left"

    def run_ended(self, text: str) -> None:
        """Print the result of a run, in a log with the share of the work and the time left."""
        if not self._console.is_terminal:
            left = self.time_left()
            text += f" ({self._share:.0%} done{', ' if left else ''}{left})"
        self._console.print(text, highlight=False)


@contextmanager
def comparison_progress(console: Console, num_runs: int) -> Iterator[ComparisonProgress]:
    """Shows where a comparison of `num_runs` runs stands."""
    if not console.is_terminal:
        yield ComparisonProgress(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f}%"),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(f"{num_runs} runs", total=1.0, left="")
        yield ComparisonProgress(
            console, lambda share, left: bars.update(bar, completed=share, left=left)
        )


def bounds_table_view(lines: Sequence[Bound]) -> Table:
    """The bounds of the theory, as printed and corrected."""
    table = Table("quantity", "as printed", "corrected", "remark", box=box.SIMPLE_HEAD)
    for line in lines:
        table.add_row(line.name, _number(line.printed), _number(line.holds), line.remark)
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def audit_table(audits: Sequence[RunAudit]) -> Table:
    """One line per replayed run."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        caption="misses: rounds with the true function outside the confidence set. farthest: its "
        "largest squared distance over the squared radius. Lemma 0: rounds with regret beyond the "
        "width. Bounds: Theorem 1, corrected and as printed; above 2 M T they are vacuous.",
    )
    columns = ("seed", "misses", "farthest", "Lemma 0", "Lemma 2", "regret", "2 M T", "bound")
    for name in (*columns, "printed"):
        table.add_column(name, justify="right", no_wrap=True)
    for audit in audits:
        table.add_row(
            str(audit.seed),
            str(audit.misses),
            f"{audit.farthest:.3f}",
            "" if audit.beyond_width is None else str(audit.beyond_width),
            audit.lemma_2 if audit.wide_rounds else "",
            f"{audit.regret:.1f}",
            f"{audit.trivial_bound:.0f}",
            f"{audit.repaired_bound:.3g}",
            f"{audit.printed_bound:.3g}",
        )
    return table


def bench_table(ratios: Sequence[Ratio]) -> Table:
    """One line per ratio; the caption names numerators and denominators."""
    table = Table("measured", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("ratio", "should be", "holds", "above", "below"):
        table.add_column(name, justify="right", no_wrap=True)
    table.caption_justify = "left"
    table.caption = "\n".join(
        f"{ratio.name}: {ratio.numerator} / {ratio.denominator}"
        + (f" ({ratio.remark})" if ratio.remark else "")
        for ratio in ratios
    )
    for ratio in ratios:
        verdict = {None: "", True: "yes", False: "no"}[ratio.holds]
        table.add_row(
            ratio.name,
            f"{ratio.value:.3g}" if ratio.value < 1000 else f"{ratio.value:.0f}",
            "" if ratio.target is None else f"{ratio.bound} {ratio.target:g}",
            verdict,
            *(_quantity(amount, ratio.unit) for amount in (ratio.above, ratio.below)),
        )
    return table


def _quantity(amount: float, unit: str) -> str:
    """A number with a unit for its size."""
    if unit == "bytes":
        return f"{amount / 1e6:.3g} MB" if amount >= 1e6 else f"{amount / 1e3:.3g} kB"
    return f"{amount:.3g} s" if amount >= 1 else f"{1e3 * amount:.3g} ms"


def summary_table(table: pd.DataFrame, num_rounds: int) -> Table:
    """The summary that `compare` prints."""
    from gfucb.runs.summary import REFERENCES, presentable  # not at the top: it needs pandas

    seeds, metric = as_range(table["seeds"]), metric_of(table.columns)
    shown = Table(
        title=f"{metric.title} after {num_rounds} rounds",
        title_style="bold",
        caption=f"± 95% interval over {count_of_seeds(seeds)}, differences paired by seed; late: "
        f"{metric.per_round} in the last quarter; CPU seconds of a run",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    lines = presentable(table)
    for name in lines[0]:
        # On a narrow terminal labels are wrapped; numbers never are.
        is_label = name == "agent"
        shown.add_column(name, justify="left" if is_label else "right", no_wrap=not is_label)
    for line in lines:
        cells = [agent_label(line["agent"]), *list(line.values())[1:]]
        shown.add_row(*cells, style="bold" if line["agent"] in REFERENCES else None)
    return shown


def evaluation_table(results: Mapping[str, Evaluation]) -> Table:
    """One line for each policy and estimator."""
    first = next(iter(results.values()))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("policy", overflow="fold")
    table.add_column("estimator")
    table.caption = (
        f"mean reward per decision, from {first.num_rows} rows; effective: the number of rows of "
        "equal weight with the same variance"
    )
    for name in ("value", f"{100 * first.confidence:g}% interval", "at all times", "effective"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, result in results.items():
        for estimate in result.estimates.values():
            intervals = (estimate.interval, estimate.sequence)
            shown = ["" if i is None else f"{i.low:.3g} to {i.high:.3g}" for i in intervals]
            size = "" if estimate.estimator == "dm" else f"{result.effective_sample_size:.1f}"
            table.add_row(name, estimate.estimator, f"{estimate.value:.4g}", *shown, size)
        table.add_section()
    return table


def presets_table() -> Table:
    """The presets, and the size of each."""
    table = Table("preset", "description", "tasks", "rounds", "seeds", box=None)
    for name, entry in PRESETS.items():
        numbers = (entry.environment.num_tasks, entry.num_rounds, len(entry.seeds))
        table.add_row(name, entry.description, *(str(number) for number in numbers))
    return table


class Described(Protocol):
    """An entry of a registry."""

    @property
    def description(self) -> str:
        """One sentence."""


def entries_table(noun: str, entries: Mapping[str, Described]) -> Table:
    """Names and descriptions of registered components."""
    table = Table(noun, "description", box=None)
    for name, entry in entries.items():
        table.add_row(name, entry.description)
    return table

"""The command that shows, filters, verifies and exports the log of an agent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gfucb.cli.paths import require_parent
from gfucb.core.errors import DataFileError, InvalidInputError
from gfucb.core.files import atomic_write

SHOWN = ("id", "time", "task", "action", "probability", "mean", "status", "reward")
TITLES = {"time": "time, UTC", "probability": "prob."}
# Texts that may be broken into lines. Others never are: ids are copied from here.
BROKEN = ("time", "task", "action")


@dataclass(frozen=True)
class LogCommand:
    """Show, filter, verify and export the decision log of an agent.

    Without --out the last rows are shown, newest first. The log may be in use by a running agent.

    Example: gfucb log stores.log --task oslo --status rewarded --out rewarded.csv
    """

    log: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="LOG")]
    """The log of a gfucb.Agent."""
    task: tuple[str, ...] = ()
    """Only these tasks; names that are no texts are written as JSON."""
    status: tuple[Literal["open", "rewarded", "default", "expired", "inactive"], ...] = ()
    """Only rows with these statuses."""
    since: str | None = None
    """Only decisions from this time on, such as 2026-03-01 or 2026-03-01T12:00, in UTC."""
    until: str | None = None
    """Only decisions before this time."""
    last: int = 20
    """How many rows to show."""
    out: Path | None = None
    """Write all rows to this file instead: its name ends with .csv or .parquet."""
    inputs: bool = False
    """Also export the inputs of the chosen actions, one column for each number."""
    verify: bool = False
    """Read the whole log and verify all checksums."""

    def __call__(self, console: Console) -> None:
        """Verify, then show or export."""
        # Not at the top, here and below: `--help` needs no torch.
        from gfucb.serving import DecisionLog
        from gfucb.serving.log_tables import RowFilter, log_rows, verify_log

        which = RowFilter(
            self.task,
            self.status,
            _seconds(self.since, float("-inf")),
            _seconds(self.until, float("inf")),
        )
        self._require_consistent()
        with DecisionLog(self.log, read_only=True) as log:
            if self.verify:
                events, decisions = verify_log(log)
                console.print(f"verified {events} events and {decisions} decisions")
            if self.out is None:
                rows = log_rows(log, which, newest_first=True)
                console.print(_table(list(islice(rows, max(0, self.last)))))
            else:
                count = _export(self.out, log_rows(log, which, inputs=self.inputs))
                console.print(f"wrote {count} rows to {self.out}", highlight=False, markup=False)

    def _require_consistent(self) -> None:
        require_parent(self.out)
        if self.last < 1:
            raise InvalidInputError(f"--last must be at least 1, got {self.last}")
        if self.inputs and self.out is None:
            raise InvalidInputError("--inputs are exported: state a file with --out")
        if self.out is not None and self.out.resolve() == self.log.resolve():
            raise InvalidInputError(f"--out {self.out} would replace the log by its export")


def _seconds(text: str | None, default: float) -> float:
    if text is None:
        return default
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(
            f"times are written like 2026-03-01 or 2026-03-01T12:00, got {text!r}"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _export(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    from gfucb.serving.log_tables import write_csv

    if path.suffix == ".csv":
        return write_csv(path, rows)
    if path.suffix != ".parquet":
        raise InvalidInputError(f"the name of {path} must end with .csv or .parquet")
    table = list(rows)
    _write_parquet(path, table)
    return len(table)


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    """By pandas, which needs pyarrow, or else by polars."""
    import pandas as pd

    from gfucb.serving.log_tables import COLUMNS

    names = list(dict.fromkeys(name for row in rows for name in row)) or list(COLUMNS)
    frame = pd.DataFrame(rows, columns=names)
    try:
        atomic_write(path, lambda target: frame.to_parquet(target, index=False))
        return
    except ImportError:
        pass
    try:
        import polars
    except ImportError as error:
        raise DataFileError(
            f"to write {path}, install pyarrow or polars: pip install pyarrow"
        ) from error
    table = polars.DataFrame(rows, schema=names, infer_schema_length=None)
    atomic_write(path, table.write_parquet)


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=0)
    for name in SHOWN:
        width = 10 if name == "time" else None  # the date, and the time below it
        table.add_column(
            TITLES.get(name, name), no_wrap=name not in BROKEN, overflow="fold", min_width=width
        )
    for row in rows:
        name = row["action_name"]
        shown = row | {"action": row["action"] if name is None else name}
        shown["time"] = row["time"][:19].replace("T", " ")
        table.add_row(*(_cell(shown[name]) for name in SHOWN))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    # Names are data: no style of the table, and no command to the terminal.
    return escape("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))

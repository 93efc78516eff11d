"""Compare this library with other packages on the same problems.

    python -m benchmarks.peers --data DATA --environments ~/.cache/gfucb-peers

The command makes a virtual environment for each package from pinned requirements, writes the
problems as files, chooses settings on seed 2000, plays the report seeds, and writes the tables. A
repeated command computes what is missing. Packages and problems that are not played keep the runs
of the table that exists.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from gfucb.runs.text_files import write_text

from .environments import make_environment
from .plan import PEERS
from .problem_files import PROBLEMS
from .running import Comparison, run
from .table import (
    compact,
    markdown,
    memories,
    quoted,
    run_table,
    speeds,
    summary_table,
    verdicts,
    with_kept,
)

OUT = Path("runs") / "peers"
CACHE = Path.home() / ".cache" / "gfucb-peers"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", help="directory with jester5k; without it Jester is left out")
    parser.add_argument("--environments", type=Path, default=CACHE, help="of the packages")
    parser.add_argument("--out", type=Path, default=OUT, help="directory of problems and runs")
    parser.add_argument("--tables", type=Path, help="directory of the tables; default --out")
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--seeds", type=int, default=3, help="report seeds, from 0")
    parser.add_argument(
        "--documents", nargs="+", type=Path, default=[], help="whose tables are replaced"
    )
    parser.add_argument("--only-tables", action="store_true", help="of the runs that exist")
    return parser


def write_tables(comparison: Comparison, directory: Path) -> str:
    """Write runs, summary and markdown; return the markdown."""
    runs = run_table(comparison)
    if runs.empty:
        raise SystemExit(f"there are no finished runs in {comparison.out}")
    if (directory / "runs.csv").is_file():
        runs = with_kept(runs, pd.read_csv(directory / "runs.csv", keep_default_na=False))
    summary = summary_table(runs)
    text = markdown(summary, runs)
    directory.mkdir(parents=True, exist_ok=True)
    write_text(directory / "runs.csv", runs.to_csv(index=False))
    write_text(directory / "summary.csv", summary.to_csv(index=False))
    write_text(directory / "table.md", text)
    return text


def write_documents(directory: Path, documents: Sequence[Path]) -> None:
    """Replace the tables in documents by those of `directory`."""
    summary = pd.read_csv(directory / "summary.csv")
    for path in documents:
        text = path.read_text()
        for table in (compact(summary), speeds(summary), memories(summary), verdicts(summary)):
            text = quoted(text, table)
        write_text(path, text)


def main(words: Sequence[str] | None = None) -> None:
    """Run what is missing, then write the tables."""
    given = parser().parse_args(words)
    say = partial(print, flush=True)
    comparison = Comparison(
        given.out,
        given.environments,
        given.data,
        tuple(given.problems),
        tuple(given.peers),
        given.seeds,
    )
    if not given.only_tables:
        for name in comparison.peers:
            try:
                make_environment(PEERS[name], comparison.environments, say)
            except subprocess.CalledProcessError as error:
                say(f"{name} cannot be installed: {error}")
        run(comparison, say)
    tables = given.tables or given.out
    say(write_tables(comparison, tables))
    write_documents(tables, given.documents)


if __name__ == "__main__":
    main()

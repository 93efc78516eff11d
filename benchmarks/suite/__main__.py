"""Run the benchmark suite and write its tables.

    python -m benchmarks.suite run --quick --data DATA --processes 2
    python -m benchmarks.suite table --quick --data DATA
    python -m benchmarks.suite table --add-runs newer-runs.csv older-runs.csv

A repeated command computes the missing runs. Interrupted runs continue.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from gfucb.runs.plots import save
from gfucb.runs.text_files import write_text

from .analysis import contender_table, markdown, ratio_table, run_table, with_earlier_runs
from .contenders import CONTENDERS, DEFAULT
from .drawing import ratio_figure
from .families import FAMILIES
from .running import Plan, available_families, run

OUT = Path("runs") / "suite"
# Workers inherit these: a linear-algebra library reads them when it is loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suite", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("command", choices=["run", "table", "families"])
    parser.add_argument("--families", nargs="+", choices=list(FAMILIES), metavar="FAMILY")
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS), metavar="CONTENDER")
    parser.add_argument("--data", help="directory with mnist, jester5k, mushroom, school")
    parser.add_argument("--out", type=Path, default=OUT, help="directory of the runs")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="short runs of some agents and families",
    )
    parser.add_argument("--num-rounds", type=int, help="T, instead of that of each family")
    parser.add_argument("--tuning-seeds", type=int, help="from 2000 on; default 3, quick 1")
    parser.add_argument("--report-seeds", type=int, help="from 100 on; default 10, quick 2")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--tables", type=Path, help="directory of tables and figure; default --out")
    parser.add_argument(
        "--add-runs",
        nargs="+",
        type=Path,
        default=[],
        metavar="CSV",
        help="tables of runs that were made elsewhere or earlier: families and contenders without "
        "finished runs here are read from the first file that has them",
    )
    parser.add_argument("--label", default="default", help="version of the network agents")
    return parser


def plan_of(given: argparse.Namespace) -> Plan:
    """The plan that the command line asks for."""
    quick = [name for name, family in FAMILIES.items() if family.quick_rounds]
    fast = [name for name, c in CONTENDERS.items() if name == DEFAULT or not c.uses_network]
    return Plan(
        out=given.out,
        data_dir=given.data,
        families=tuple(given.families or (quick if given.quick else FAMILIES)),
        contenders=tuple(given.contenders or (fast if given.quick else CONTENDERS)),
        tuning_seeds=given.tuning_seeds or (1 if given.quick else 3),
        report_seeds=given.report_seeds or (2 if given.quick else 10),
        num_rounds=given.num_rounds,
        is_quick=given.quick,
        label=given.label,
    )


def write_tables(plan: Plan, directory: Path, earlier: Sequence[Path] = ()) -> str:
    """Write runs, tables and figure to a directory; return the markdown."""
    runs = with_earlier_runs(run_table(plan), earlier)
    if runs.empty:
        raise SystemExit(f"there are no finished runs in {plan.out}; start them with `run`")
    contenders, ratios = contender_table(runs), ratio_table(runs)
    name = f"table{'-quick' if plan.is_quick else ''}-{plan.label}"
    text = markdown(ratios, contenders)
    directory.mkdir(parents=True, exist_ok=True)
    write_text(directory / f"{name}.md", text)
    write_text(directory / f"{name}-runs.csv", runs.to_csv(index=False))
    write_text(directory / f"{name}.csv", ratios.to_csv(index=False))
    if len(ratios):
        save(ratio_figure(ratios), directory / name)
    return text


def main(words: Sequence[str] | None = None) -> None:
    """Run a command."""
    given = parser().parse_args(words)
    plan, say = plan_of(given), partial(print, flush=True)
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")
    if given.command == "families":
        for family in available_families(plan, say):
            say(f"{family.name}: T = {family.num_rounds}; {', '.join(family.contenders)}")
        return
    if given.command == "run":
        run(plan, given.processes, say)
    say(write_tables(plan, given.tables or plan.out, given.add_runs))


if __name__ == "__main__":
    main()

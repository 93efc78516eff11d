"""Run the exploration benchmarks and write their table.

    python -m benchmarks.episodic run --problems lock-6 lock-12 --seeds 3
    python -m benchmarks.episodic run --problems bsuite mountain-car --seeds 5
    python -m benchmarks.episodic table --to benchmarks/episodic/results

A repeated command computes the missing runs. `tune` computes only runs that choose scales of
exploration: those of `--scales`, so that several processes can share the work.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from gfucb.runs.text_files import write_json, write_text

from .contenders import CONTENDERS
from .problems import GROUPS, PROBLEMS
from .running import Plan, run, tune
from .table import comparison_markdown, markdown, overview_markdown, results

OUT = Path("runs") / "episodic"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.episodic", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("command", choices=["run", "tune", "table"])
    problems = [*PROBLEMS, *GROUPS]
    parser.add_argument("--problems", nargs="+", choices=problems, metavar="PROBLEM")
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS), metavar="CONTENDER")
    parser.add_argument("--seeds", type=int, default=10, help="from --first-seed on")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--tuning-seeds", type=int, default=1, help="from 2000 on")
    parser.add_argument("--scales", nargs="+", type=float, help="of `tune`; default all")
    parser.add_argument("--max-episodes", type=int, help="instead of that of each problem")
    parser.add_argument("--out", type=Path, default=OUT, help="directory of the runs")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--to", type=Path, help="directory of the tables; default --out")
    return parser


def plan_of(given: argparse.Namespace) -> Plan:
    """The plan that the command line asks for."""
    problems = [name for own in given.problems or PROBLEMS for name in GROUPS.get(own, (own,))]
    return Plan(
        out=given.out,
        problems=tuple(dict.fromkeys(problems)),
        contenders=tuple(given.contenders or CONTENDERS),
        seeds=tuple(range(given.first_seed, given.first_seed + given.seeds)),
        tuning_seeds=given.tuning_seeds,
        max_episodes=given.max_episodes,
        scales=tuple(given.scales) if given.scales else None,
    )


def main(words: Sequence[str] | None = None) -> None:
    """Run a command."""
    given = parser().parse_args(words)
    plan = plan_of(given)
    if given.command != "table":
        for variable in THREAD_VARIABLES:
            os.environ.setdefault(variable, "1")
        (run if given.command == "run" else tune)(plan, given.processes)
    if given.command == "tune":
        return
    content = results(plan)
    if not content["results"]:
        raise SystemExit(f"there are no finished runs in {plan.out}; start them with `run`")
    directory = given.to or given.out
    directory.mkdir(parents=True, exist_ok=True)
    lines, comparisons = content["results"], content["comparisons"]
    parts = overview_markdown(lines), markdown(lines), comparison_markdown(comparisons)
    text = "\n".join(part for part in parts if part)
    write_text(directory / "table.md", text)
    write_json(directory / "table.json", content)
    print(text, end="")


if __name__ == "__main__":
    main()

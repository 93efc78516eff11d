"""Copy the results of examples into the repository, and write the tables of their pages.

    python examples/school.py --data DATA
    python -m scripts.example_pages [--runs runs/examples]

Every example whose results are in RUNS is updated: `examples/results/NAME` gets the summary, the
provenance and the figure of its page, and `docs/examples/NAME.md` the table.
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from gfucb.runs.text_files import write_text

ROOT = Path(__file__).parents[1]
TABLE = re.compile(r"^\| agent \|.*?\n(?!\|)", re.S | re.M)


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """The table of a page from the lines of a summary."""
    metric = "regret" if "regret" in rows[0] else "reward"
    title = "regret" if metric == "regret" else "mean reward"
    head = f"| agent | {title} | difference to GFUCB, paired | CPU seconds of a run |"
    lines = [head, "|---|---|---|---|"]
    for row in rows:
        mean, spread = float(row[metric]), float(row[f"{metric}_half_width"])
        other, half = float(row["versus_reference"]), float(row["versus_reference_half_width"])
        difference = "" if row["agent"] == "gfucb" else f"{other:+.2f} ± {half:.2f}"
        seconds = float(row["cpu_seconds"])
        agent = "**GFUCB**" if row["agent"] == "gfucb" else row["agent"]  # as in the figure
        lines.append(f"| {agent} | {mean:.2f} ± {spread:.2f} | {difference} | {seconds:.1f} |")
    return "\n".join(lines) + "\n"


def update(name: str, run: Path, root: Path) -> None:
    """Copy the results of one example and write its table."""
    page, results = root / "docs" / "examples" / f"{name}.md", root / "examples" / "results" / name
    text = page.read_text()
    figures = re.findall(rf"examples/results/{name}/(\w+\.png)", text)
    for file in ("summary.csv", "provenance.json", *figures):
        shutil.copyfile(run / file, results / file)
    with (run / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    write_text(page, TABLE.sub(lambda _: table(rows), text, count=1))


def main(words: list[str] | None = None, root: Path = ROOT) -> None:
    """Update all examples whose results are there."""
    parser = argparse.ArgumentParser(prog="python -m scripts.example_pages", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "examples")
    runs = parser.parse_args(words).runs
    found = sorted(path.parent for path in runs.glob("*/summary.csv"))
    if not found:
        raise SystemExit(f"there are no results of examples in {runs}")
    for run in found:
        update(run.name, run, root)
        print(f"docs/examples/{run.name}.md")


if __name__ == "__main__":
    main()

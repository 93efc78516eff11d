"""All reproductions as one Markdown document."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from gfucb.paper.common import Reproduction
from gfucb.paper.reproductions import REPRODUCTIONS
from gfucb.runs.text_files import read_json

INTRODUCTION = """\
# Reproduction of the paper's experiments

For each claim, this page states the measurement, whether the claim holds and by how much, and what
was chosen where the paper leaves something open. The paper (Lu, Zhao, Du and Huang 2022, arXiv
2205.15701) has no public code and its figures have no numbers, so its statements are tested. Each
section is computed by one command, `gfucb reproduce NAME --data-dir DATA --out DIRECTORY`, where
DATA has the files of MNIST and DIRECTORY is new. `gfucb reproduce all --data-dir DATA --out
DIRECTORY` computes the paper's figures. The last two sections are claims about Algorithm 2, for
which the paper has no experiments.

One rule decides: a claim that something is larger, or larger than a threshold, holds if the 95%
interval of the difference, of the ratio or of the share lies on that side. Intervals are over
paired seeds unless stated otherwise. Claims about all seeds, all rows or all images are counted.

*`gfucb page` writes this page from `results/`; no number is typed by hand.* Where the provenance
says *added by hand*, the jobs were computed on a machine that had the files of a commit without
its history. Commit and versions were added afterwards.
"""


def page_of(results: Path, directory: Path) -> str:
    """The document on all results directories in `results`, with links relative to `directory`."""
    names = _sections(results)
    sections = [_section(name, results / name, directory) for name in names]
    return "\n".join([INTRODUCTION, _overview(names, results), *sections])


def _sections(results: Path) -> list[str]:
    """The reproductions of this package, and those of plugins that have results."""
    return [
        name
        for name in REPRODUCTIONS
        if REPRODUCTIONS.module_of(name).startswith(f"{__package__}.")
        or (results / name / "verdict.md").exists()
    ]


def _overview(names: list[str], results: Path) -> str:
    """How many claims of each section hold."""
    lines = ["| section | claims that hold |", "|---|---|"]
    for name in names:
        title, path = _title(name), results / name / "verdict.json"
        if path.exists():
            verdicts = pd.read_json(path)
            answer = f"{verdicts['holds'].sum()} of {len(verdicts)}"
        else:
            answer = "no results yet"
        lines.append(f"| [{title}](#{_anchor(title)}) | {answer} |")
    return "\n".join(lines) + "\n"


def _title(name: str) -> str:
    return REPRODUCTIONS[name].title or name


def _section(name: str, results: Path, directory: Path) -> str:
    reproduction = REPRODUCTIONS[name]
    parts = [f"## {_title(name)}"]
    if (results / "verdict.md").exists():
        parts += _results(name, reproduction, results, directory)
    else:
        parts += [reproduction.claim, "*No results yet.*"]
    if reproduction.choices:
        choices = reproduction.choices.rstrip()
        parts.append(f"Choices where the paper leaves something open:\n\n{choices}")
    return "\n\n".join(parts) + "\n"


def _results(name: str, reproduction: Reproduction, results: Path, directory: Path) -> list[str]:
    """Claim, figure, verdicts, more numbers, provenance."""
    blocks = (results / "verdict.md").read_text().strip().split("\n\n")
    _heading, claim, *verdicts, _command = blocks
    figure = Path(os.path.relpath(results / "figure.png", directory)).as_posix()
    rows = pd.read_csv(results / "rows.csv")
    caption = reproduction.caption(rows)
    below = [f"*{caption}*"] if caption else []
    parts = [claim, f"![{_title(name)}]({figure})", *below, *verdicts]
    table = reproduction.table(rows)
    if table:
        parts.append(table)
    return [*parts, _provenance(name, read_json(results / "provenance.json"))]


def _provenance(name: str, content: Mapping[str, Any]) -> str:
    """The command, and the code and machines that computed the jobs."""
    settings = content["settings"]
    flags = " --quick" if settings["quick"] else ""
    if settings["seeds"]:
        flags += " --seeds " + " ".join(map(str, settings["seeds"]))
    origins = [_origin(record) for record in content["provenance"] if record["jobs"]]
    return f"*Computed by `gfucb reproduce {name}{flags}`: {'; '.join(dict.fromkeys(origins))}.*"


def _origin(record: Mapping[str, Any]) -> str:
    commit = (record["commit"] or "unknown")[:10]
    changes = ", with uncommitted changes" if record["uncommitted_changes"] else ""
    versions = record["versions"]
    remark = f" ({record['remark']})" if record.get("remark") else ""
    return (
        f"commit {commit}{changes}, torch {versions['torch']}, numpy {versions['numpy']}, "
        f"Python {record['python']}, {record['device']}{remark}"
    )


def _anchor(title: str) -> str:
    """The anchor that Markdown readers give to a title."""
    letters = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return letters.replace(" ", "-")

"""All reproductions as one document: numbers from their directories, prose from beside the code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from gfucb.paper.common import Reproduction
from gfucb.paper.registry import REPRODUCTIONS

TITLES = {
    "fig1": "Figure 1: regret",
    "fig2a": "Figure 2(a): bonus against error",
    "fig2b": "Figure 2(b): bonus against samples",
    "fig3": "Figure 3: what the representation knows of digits",
    "probe": "A linear layer on the representation",
    "lock": "Algorithm 2 on combination locks",
    "linear-mdp": "Linear MDPs",
}
INTRODUCTION = """\
# The paper's experiments, made anew

Claim by claim: what was measured, whether it holds, by how much, and what was chosen where the
paper is silent. The paper (Lu, Zhao, Du and Huang 2022, arXiv 2205.15701) has no public code and
prints no numbers beside its pictures, so it is its sentences that are tested. Each section is made
by one command, `gfucb reproduce NAME --data-dir FOLDER --out MINE`; FOLDER holds MNIST, MINE is a
new directory. `gfucb reproduce all --data-dir FOLDER --out MINE` makes the paper's figures. The last
two sections are claims about Algorithm 2, which the paper does not run.

*This page is written by `gfucb page` from `results/`: no number in it is typed.* Where it says
*entered by hand*, jobs were made on a machine that had the files of a commit but not its history,
by the functions behind the command, and commit and versions were entered afterwards.
"""


def page_of(results: Path, directory: Path) -> str:
    """The document, to stand in `directory`, of what is found in `results`."""
    sections = [_section(name, results / name, directory) for name in TITLES]
    return "\n".join([INTRODUCTION, _overview(results), *sections])


def _overview(results: Path) -> str:
    """How many claims of each section hold."""
    lines = ["| section | claims that hold |", "|---|---|"]
    for name, title in TITLES.items():
        directory = results / name
        if (directory / "verdict.json").exists():
            verdicts = _read(directory / "verdict.json")
            told = f"{sum(v['holds'] for v in verdicts)} of {len(verdicts)}"
        else:
            told = "not there yet"
        lines.append(f"| [{title}](#{_anchor(title)}) | {told} |")
    return "\n".join(lines) + "\n"


def _section(name: str, directory: Path, beside: Path) -> str:
    row = REPRODUCTIONS.get(name)
    parts = [f"## {TITLES[name]}"]
    if row is not None and (directory / "verdict.md").exists():
        parts += _found(name, row, directory, beside)
    else:
        parts += [row.claim] if row is not None else []
        parts.append("*Not there yet.*")
    if row is not None and row.choices:
        parts.append("What was chosen where the paper is silent:\n\n" + row.choices.rstrip())
    return "\n\n".join(parts) + "\n"


def _found(name: str, row: Reproduction, directory: Path, beside: Path) -> list[str]:
    """Claim, picture, verdicts, further numbers, provenance."""
    _title, claim, *verdicts, _made_by = (
        (directory / "verdict.md").read_text().strip().split("\n\n")
    )
    picture = Path(os.path.relpath(directory / "figure.png", beside)).as_posix()
    parts = [claim, f"![{TITLES[name]}]({picture})", *verdicts]
    table = row.table(pd.read_csv(directory / "rows.csv"))
    if table:
        parts.append(table)
    return [*parts, _provenance(name, _read(directory / "provenance.json"))]


def _provenance(name: str, provenance: Mapping[str, Any]) -> str:
    """Which command, code and machine finished the jobs."""
    settings = provenance["settings"]
    flags = "".join(f" --{flag}" for flag in ("quick",) if settings[flag])
    if settings["seeds"]:
        flags += " --seeds " + " ".join(map(str, settings["seeds"]))
    makers = []
    for made in provenance["provenance"]:
        if made["jobs"]:
            commit = (made["commit"] or "unknown")[:10]
            changed = ", with changes" if made["uncommitted_changes"] else ""
            versions = made["versions"]
            told = (
                f"commit {commit}{changed}, torch {versions['torch']}, numpy {versions['numpy']}, "
                f"Python {made['python']}, {made['device']}"
            )
            if made.get("remark"):
                told += f" ({made['remark']})"
            if told not in makers:
                makers.append(told)
    return f"*Made by `gfucb reproduce {name}{flags}`: {'; '.join(makers)}.*"


def _anchor(title: str) -> str:
    """The name a title has in links, as Markdown readers make it."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _read(path: Path) -> Any:
    return json.loads(path.read_text())

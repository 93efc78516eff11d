"""What every figure of the paper defines: a claim, its jobs, a figure and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from gfucb.runs.jobs import Job

__all__ = ["Job", "Options", "Reproduction", "Verdict"]


@dataclass(frozen=True)
class Options:
    """How a claim is reproduced.

    Attributes:
        seeds: the seeds; None for those of the claim.
        quick: a small version, under a minute: it shows that everything runs, and is no evidence.
        data_dir: the directory of data files, for claims that need some.
        device: where networks are.
    """

    seeds: tuple[int, ...] | None = None
    quick: bool = False
    data_dir: str | None = None
    device: str = "cpu"


@dataclass(frozen=True)
class Verdict:
    """One sentence of the claim, the measurement, and whether the sentence holds."""

    claim: str
    measured: str
    holds: bool
    margin: str = ""


@dataclass(frozen=True)
class Reproduction:
    """A claim and how it is tested.

    Attributes:
        claim: the claim in a sentence.
        jobs: from the options to the jobs.
        figure: from all rows to the figure.
        verdicts: from all rows to the verdicts.
        config: settings to record, from the options; of a dataclass, all fields.
        choices: what was chosen where the claim leaves something open, in Markdown, without
            measured numbers.
        table: from all rows to more numbers for the page, in Markdown.
        caption: from all rows to the caption of the figure: panels, numbers of seeds, bands.
        title: the title of its section on the page; by default its name.
        order: its position on the page and in `gfucb reproduce all`; small numbers come first.
        in_paper: whether the paper has this experiment; `gfucb reproduce all` computes these.
    """

    claim: str
    jobs: Callable[[Options], Sequence[Job]]
    figure: Callable[[pd.DataFrame], Figure]
    verdicts: Callable[[pd.DataFrame], Sequence[Verdict]]
    config: Callable[[Options], dict[str, Any]] = field(default=lambda options: {})
    choices: str = ""
    table: Callable[[pd.DataFrame], str] = field(default=lambda rows: "")
    caption: Callable[[pd.DataFrame], str] = field(default=lambda rows: "")
    title: str = ""
    order: int = 100
    in_paper: bool = False

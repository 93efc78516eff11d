"""Commands beside: what things cost, what there is, where data comes from."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.console import Console

from gfucb.cli.paths import require_place
from gfucb.cli.terminal import agents_table, bench_table, presets_table
from gfucb.environments import fetch_mnist
from gfucb.environments.images import DATA_DIR_VARIABLE
from gfucb.runs.benchmark_results import BenchSizes, Ratio, Setting
from gfucb.runs.benchmarks import MEASURES, measure


@dataclass(frozen=True)
class BenchCommand:
    """Measure what things cost, every figure a ratio of two measurements of this run.

    decision: a decision against the paper's fine-tuning. growth: late rounds against early ones.
    tasks: a task among many against one among few. subset: a few tasks asked of many against a few
    of few. catalogue: items that all tasks share against a copy for each. batched: runs in batch
    against one after another. On a CPU one thread is used, and seconds are those of this process.
    Takes some minutes.
    """

    only: tuple[str, ...] = tuple(MEASURES)
    """Which measurements to take."""
    sizes: Annotated[BenchSizes, tyro.conf.arg(name="")] = field(default_factory=BenchSizes)
    device: str = "cpu"
    """Where agents work: cpu or cuda."""
    data_dir: str | None = None
    """ResultsDirectory with MNIST's files; by default the environment variable GFUCB_DATA_DIR, and random
    images of the same size where there is none."""
    quick: bool = False
    """Tiny problems, in seconds: shows that it works; its figures say nothing about targets."""
    json: Path | None = None
    """Also write the figures, with versions, commit and device, to this file."""

    def __call__(self, console: Console) -> None:
        """Measure, print the table."""
        require_place(self.json)
        torch.set_num_threads(1)
        data_dir = self.data_dir or os.environ.get(DATA_DIR_VARIABLE)
        setting = Setting(self.sizes, self.device, data_dir)
        provenance = setting.describe()  # of the code that is measured, not of later edits
        ratios: list[Ratio] = []
        for name, take in [(name, measure(name)) for name in self.only]:
            console.print(f"measuring {name}", highlight=False)
            ratios += [replace(r, target=None) if self.quick else r for r in take(setting)]
        console.print(bench_table(ratios))
        if self.json is not None:
            content = {"provenance": provenance, "ratios": [ratio.record() for ratio in ratios]}
            self.json.write_text(json.dumps(content, indent=2) + "\n")


@dataclass(frozen=True)
class FetchCommand:
    """Download the four MNIST files that are missing from a directory; checksums are verified."""

    data_dir: Path
    """ResultsDirectory for the files."""

    def __call__(self, console: Console) -> None:
        """Download and check."""
        for path in fetch_mnist(self.data_dir):
            console.print(f"checked {path}", highlight=False)


@dataclass(frozen=True)
class PresetsCommand:
    """List the presets and the agents."""

    def __call__(self, console: Console) -> None:
        """Print both tables."""
        console.print(presets_table(), "", agents_table())

"""Other commands: measure costs, list components, download data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from gfucb.cli.engine_options import EngineOptions, problem_printer
from gfucb.cli.terminal import Described, bench_table, entries_table, presets_table
from gfucb.core.data_directories import DATA_DIR_VARIABLE
from gfucb.runs.benchmark_sizes import MEASUREMENTS, BenchSizes
from gfucb.runs.plugins import load_plugins
from gfucb.runs.policy_registry import POLICIES
from gfucb.runs.registry import ACTION_SELECTORS, AGENTS, ENVIRONMENTS, FITS, AgentEntry, Kind


@dataclass(frozen=True)
class BenchCommand:
    """Measure costs, each as a ratio of two measurements in this process.

    decision: a decision over the paper's fine-tuning. growth: late rounds over early rounds.
    tasks: the time per task with many tasks over that with few. subset: decisions for a few of
    many tasks over decisions for a few of few. catalogue: items that all tasks share over one copy
    per task. batched: runs in a batch over runs one after another. On a CPU one thread is
    used, and seconds are CPU seconds. Takes some minutes. The directory gets a run directory for
    each measurement. A repeated command takes only the measurements that are missing. Those
    taken at the same time share caches and memory: report results of `--processes 1`.
    """

    out: Path
    """Directory for the measurements, OUT/MEASUREMENT. Finished ones are not repeated."""
    only: tuple[str, ...] = MEASUREMENTS
    """Which measurements to take."""
    sizes: Annotated[BenchSizes, tyro.conf.arg(name="")] = field(default_factory=BenchSizes)
    device: str = "cpu"
    """Device of the agents: cpu or cuda."""
    data_dir: str | None = None
    """Directory with the MNIST files; by default the environment variable GFUCB_DATA_DIR. Without
    files, random images of the same size."""
    quick: bool = False
    """Tiny problems that take seconds. They test the code; ratios are not compared with targets."""
    computing: Annotated[EngineOptions, tyro.conf.arg(name="")] = field(
        default_factory=EngineOptions
    )

    def __call__(self, console: Console) -> None:
        """Measure what is missing, print the table."""
        # Not at the top, here and below: `--help` needs no torch.
        from gfucb.runs.benchmark_results import Ratio, Setting
        from gfucb.runs.benchmarks import bench_job
        from gfucb.runs.jobs import Progress, run_all

        data_dir = self.data_dir or os.environ.get(DATA_DIR_VARIABLE)
        setting = Setting(self.sizes, self.device, data_dir)
        if self.computing.address is None:  # otherwise other machines measure
            setting.require_device()
        jobs = [bench_job(name, setting, quick=self.quick) for name in dict.fromkeys(self.only)]
        progress = Progress(
            lambda job: console.print(f"measured {job.name}", highlight=False),
            problem=problem_printer(console),
        )
        engine = self.computing.make(1, data_dir)
        rows = run_all(jobs, self.out, engine=engine, device=self.device, progress=progress)
        console.print(bench_table([Ratio.from_row(row) for own in rows.values() for row in own]))
        console.print(f"rows: {self.out / 'MEASUREMENT' / 'rows.csv'}", highlight=False)


@dataclass(frozen=True)
class FetchCommand:
    """Download the four MNIST files that are missing from a directory; checksums are verified."""

    data_dir: Path
    """Directory for the files."""

    def __call__(self, console: Console) -> None:
        """Download and check."""
        from gfucb.environments import fetch_mnist

        for path in fetch_mnist(self.data_dir):
            console.print(f"checked {path}", highlight=False)


@dataclass(frozen=True)
class PresetsCommand:
    """List the presets, environments, agents, fits, action selectors, policies and engines."""

    plugin: tuple[Path, ...] = ()
    """Python files that register components of your own."""

    def __call__(self, console: Console) -> None:
        """Print one table each."""
        from gfucb.runs.engines import ENGINES

        load_plugins(self.plugin)
        console.print(presets_table())
        components: dict[str, Mapping[str, Described]] = {
            "environment": ENVIRONMENTS,
            "bandit agent": _of_kind("bandit"),
            "episodic agent": _of_kind("episodic"),
            "fit": FITS,
            "action selector": ACTION_SELECTORS,
            "policy": POLICIES,
            "engine": ENGINES,
        }
        for noun, entries in components.items():
            console.print("", entries_table(noun, entries))


def _of_kind(kind: Kind) -> dict[str, AgentEntry]:
    return {name: entry for name, entry in AGENTS.items() if entry.kind == kind}

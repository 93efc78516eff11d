"""Where the jobs of a command are computed: settings that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from gfucb.runs.jobs import Engine, Job


@dataclass(frozen=True)
class EngineOptions:
    """Where jobs are computed. The results do not depend on it."""

    engine: str = "local"
    """local: processes of this machine. ray: tasks of Ray; needs the extra `ray`."""
    address: str | None = None
    """With `--engine ray`: a running cluster, HOST:PORT, or `auto` for the one of this machine. By
    default Ray is started on this machine and stopped at the end."""
    processes: int | None = None
    """Number of jobs at a time, one thread each. By default 1, or 2 for `compare`; with
    `--address`, as many as the cluster has CPUs, or GPUs with `--device cuda`."""

    def make(self, default_processes: int, data_dir: str | None) -> Engine:
        """The engine; `default_processes` are those of the command."""
        from gfucb.runs.engines import ENGINES, EngineSettings  # not at the top: they need torch

        settings = EngineSettings(self.processes, default_processes, self.address, data_dir)
        return ENGINES[self.engine].factory(settings)


def problem_printer(console: Console) -> Callable[[Job, str], None]:
    """A function that prints the problem of a job; see `gfucb.runs.jobs.Progress`."""
    return lambda job, text: console.print(
        f"{job.name}: {text}", highlight=False, markup=False, soft_wrap=True
    )

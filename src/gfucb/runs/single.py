"""One run of an agent in an environment, from its config to its directory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from gfucb.core.errors import RunDirectoryError
from gfucb.core.records import Row
from gfucb.runs.build_run import (
    config_from,
    modules_of_agent,
    modules_of_environment,
    plugin_settings,
    prepare,
)
from gfucb.runs.config import RunConfig
from gfucb.runs.jobs import Job
from gfucb.runs.metrics import Metric, metric_of
from gfucb.runs.registry import AGENTS
from gfucb.runs.row_sinks import RowSinks, with_sinks
from gfucb.runs.store import read_config, read_rows
from gfucb.runs.stored_settings import default_settings


def run(
    config: RunConfig,
    directory: Path,
    *,
    data_dir: str | None = None,
    sinks: Sequence[RowSinks] = (),
) -> Iterator[Row]:
    """Run `config` into `directory` and yield rows as they are written; `sinks` also get them.

    A run that was interrupted continues; a finished one is refused.
    """
    job = with_sinks(run_job_of(config, directory.name, data_dir), sinks)
    # Environment and agent first: settings that cannot be run leave no directory.
    work, stored = job.work(), job.directory(directory.parent)
    if stored.is_finished():
        raise RunDirectoryError(
            f"{directory} holds a finished run, and runs are never overwritten; choose another "
            "directory, or remove this one"
        )
    yield from stored.write(work)


def final_result(directory: Path) -> tuple[Metric, float]:
    """The cumulative regret of a task, or its mean reward where no regret is known."""
    rows = read_rows(directory)
    metric = metric_of(rows[-1])
    return metric, metric.final_of_run(rows)


def run_job_of(config: RunConfig, name: str, data_dir: str | None = None) -> Job:
    """A run as a job of that name."""
    modules = modules_of_environment(config.environment) + modules_of_agent(config.agent)
    plugins = plugin_settings(modules)
    return Job(
        name,
        partial(prepare, config, data_dir),
        resumable=True,
        settings=dataclasses.asdict(config) | plugins,
        relative_cost=AGENTS[config.agent.name].relative_cost,
        defaults=default_settings(config) | plugins,
        kind=config.agent.name,
    )


def load_config(directory: Path) -> RunConfig:
    """The settings of a run, as they were given."""
    stored = read_config(directory)
    try:
        return config_from(stored)
    except (KeyError, TypeError) as error:
        raise RunDirectoryError(
            f"the settings in {directory} are not those of a run of this version: {error}"
        ) from error

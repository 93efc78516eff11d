"""Several agents on the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gfucb.core.errors import InvalidInputError
from gfucb.runs.build_run import require_same_kind
from gfucb.runs.config import AgentConfig, EnvironmentConfig, RunConfig
from gfucb.runs.jobs import Engine, Job, Progress, run_all
from gfucb.runs.metrics import Metric
from gfucb.runs.row_sinks import RowSinks, with_sinks
from gfucb.runs.single import final_result, run_job_of


@dataclass(frozen=True)
class Comparison:
    """Agents, seeds and the environment they share; its runs differ in agent and seed only."""

    environment: EnvironmentConfig
    agents: tuple[AgentConfig, ...]
    seeds: tuple[int, ...]
    num_rounds: int

    def __post_init__(self) -> None:
        names = [agent.name for agent in self.agents]
        for what, values in (("agents", names), ("seeds", list(self.seeds))):
            if not values or len(set(values)) < len(values):
                raise InvalidInputError(f"{what} must be given, each once, got {values}")
        for name in names:
            require_same_kind(self.environment.name, name)

    def runs(self) -> dict[str, RunConfig]:
        """The config of every run, by its directory AGENT/seed=SEED."""
        return {
            f"{agent.name}/seed={seed}": RunConfig(self.environment, agent, self.num_rounds, seed)
            for agent in self.agents
            for seed in self.seeds
        }


@dataclass(frozen=True)
class Listener:
    """Functions that are called while a comparison runs."""

    run_ended: Callable[[RunConfig, Metric, float], None] = lambda config, metric, value: None
    """Called with the run and its result, see `final_result`."""
    share_done: Callable[[float], None] = lambda share: None
    """Called a few times a second, and before `run_ended`, with the share of the work that is done,
    from 0 to 1: rounds on disk, weighted by the relative cost of their agents."""
    problem: Callable[[Job, str], None] = lambda job, text: None
    """Called when a run fails, or is repeated because its worker has died."""


def run_comparison(
    comparison: Comparison,
    out: Path,
    *,
    processes: int = 1,
    engine: Engine | None = None,
    data_dir: str | None = None,
    listener: Listener | None = None,
    sinks: Sequence[RowSinks] = (),
) -> None:
    """Run what is not finished below `out`, in `processes` processes of one thread each.

    With an `engine`, runs are computed where it computes them; the rows are the same. Finished
    runs are left as they are and interrupted runs continue. A directory with a run of other
    settings is an error. `sinks` also receive the rows.
    """
    listener = listener or Listener()
    configs = comparison.runs()
    jobs = [run_job_of(config, name, data_dir) for name, config in configs.items()]
    jobs = [with_sinks(job, sinks) for job in jobs]

    def say_share() -> None:
        listener.share_done(_share_done(jobs, out, comparison.num_rounds))

    def say_end(job: Job) -> None:
        say_share()
        listener.run_ended(configs[job.name], *final_result(out / job.name))

    say_share()
    progress = Progress(say_end, say_share, listener.problem)
    run_all(jobs, out, processes=processes, engine=engine, progress=progress)


def _share_done(jobs: Sequence[Job], out: Path, num_rounds: int) -> float:
    total = num_rounds * sum(job.relative_cost for job in jobs)
    return sum(job.relative_cost * _rounds_on_disk(out / job.name) for job in jobs) / total


def _rounds_on_disk(directory: Path) -> int:
    path = directory / "rows.csv"
    return max(0, path.read_bytes().count(b"\n") - 1) if path.exists() else 0

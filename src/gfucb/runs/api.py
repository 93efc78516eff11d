"""Compare agents from Python: registered ones, and those of a script or notebook.

result = gfucb.compare("digits", ["gfucb", "linucb"], seeds=range(3), num_rounds=100)
result                      # the table
result.figure()             # regret curves, a matplotlib Figure
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from gfucb.core.errors import InvalidInputError, lookup
from gfucb.core.records import Row
from gfucb.core.validation.settings import validate_count, validate_methods, validate_seed
from gfucb.runs.build_run import agent_run, plugin_settings
from gfucb.runs.jobs import Job, require_startable, run_all
from gfucb.runs.loop import gymnasium_cure
from gfucb.runs.metrics import count_of_seeds, metric_of, number_of_seeds
from gfucb.runs.plots import comparison_curves, save
from gfucb.runs.pool import one_thread, run_in_processes
from gfucb.runs.provenance import current_provenance
from gfucb.runs.row_sinks import RowSinks, with_sinks
from gfucb.runs.sources import (
    AgentsLike,
    EnvironmentLike,
    Source,
    agent_sources,
    environment_source,
    is_environment,
)
from gfucb.runs.store import distinct_provenance
from gfucb.runs.summary import load_rows, load_seconds, presentable, summarise_rows
from gfucb.runs.text_files import write_json, write_text
from gfucb.runs.work import AgentRun

RunKey = tuple[str, int]  # agent, seed


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonResult:
    """The rows of a comparison and what follows from them.

    Attributes:
        rows: one row per agent, seed and round.
        table: one line per agent, the best first; see `summarise_rows`.
        provenance: which code and machine computed the runs, each once.
    """

    rows: pd.DataFrame
    table: pd.DataFrame
    provenance: Sequence[Mapping[str, Any]]

    def figure(self) -> Figure:
        """Cumulative regret per task: mean and 95% band over seeds.

        In environments without optimal values the figure has rewards instead.
        """
        return comparison_curves(self.rows)

    def save(self, directory: Path | str) -> None:
        """Write rows.csv, summary.csv, provenance.json, and the figure as .png and .svg.

        The figure is named regret, or reward where no regret is known. Where runs are of several
        commits or machines, provenance.json lists all of them.
        """
        path = Path(directory)
        path.mkdir(parents=True, exist_ok=True)
        write_text(path / "rows.csv", self.rows.to_csv(index=False))
        write_text(path / "summary.csv", self.table.to_csv(index=False))
        is_one, known = len(self.provenance) == 1, list(self.provenance)
        write_json(path / "provenance.json", known[0] if is_one else {"computed_by": known})
        save(self.figure(), path / metric_of(self.rows.columns).name)

    def __repr__(self) -> str:
        num_rounds, seeds = int(self.rows["round"].max()), number_of_seeds(self.rows)
        title = metric_of(self.rows.columns).title
        head = f"{title} after {num_rounds} rounds, ± 95% interval over {count_of_seeds(seeds)}"
        return f"{head}\n{self._lines().to_string(index=False)}"

    def _repr_html_(self) -> str:
        return str(self._lines().to_html(index=False))

    def _lines(self) -> pd.DataFrame:
        return pd.DataFrame(presentable(self.table))


def compare(
    environment: EnvironmentLike,
    agents: AgentsLike,
    *,
    seeds: Iterable[int] = range(5),
    num_rounds: int = 200,
    reference: str | None = None,
    processes: int = 1,
    out: Path | str | None = None,
    data_dir: str | None = None,
    sinks: Sequence[RowSinks] = (),
) -> ComparisonResult:
    """Run several agents in one environment on the same seeds.

    Args:
        environment: the name or the settings of a registered environment, a function from the
            seed to an environment, or an environment, which is then the same for all seeds.
        agents: names or settings of registered agents. A mapping gives each a name of its own,
            and may also have functions (environment, seed) -> agent.
        seeds: the seeds of environment and agent.
        num_rounds: T, the number of rounds or episodes.
        reference: the agent with which others are compared; by default gfucb, if it is there.
        processes: 1 runs in this process. More need functions that another process can import:
            those of a module, not lambdas or functions of a notebook.
        out: a directory for the runs. Finished runs are then not repeated and interrupted ones
            are resumed, as with `gfucb compare`; agents need `state` and `load_state`. Without it
            nothing is written.
        data_dir: the directory of data files, for environments that read some.
        sinks: also receive the rows, for example `gfucb.adapters.mlflow.MLflowRows()`;
            they need `out`.
    """
    if sinks and out is None:
        raise InvalidInputError("sinks receive the rows of stored runs: pass a directory as out=")
    num_rounds = validate_count(num_rounds, "num_rounds")
    processes = validate_count(processes, "processes")
    for sink in sinks:
        validate_methods(sink, "a sink", ("open",))
    source = environment_source(environment, data_dir)
    sources, numbers = agent_sources(agents), _distinct(seeds)
    if reference is not None:
        lookup(sources, reference, "agent of these runs")
    jobs = {
        (name, seed): _job(name, source, agent, seed, num_rounds)
        for name, agent in sources.items()
        for seed in numbers
    }
    if processes > 1:
        _require_importable(jobs)
    if out is None:
        rows, seconds = _in_memory(jobs, processes)
        provenance = [current_provenance()]
    else:
        rows, seconds = _on_disk(jobs, Path(out), processes, sinks)
        provenance = distinct_provenance(Path(out) / job.name for job in jobs.values())
    return ComparisonResult(rows, summarise_rows(rows, seconds, reference), provenance)


def _distinct(seeds: Iterable[int]) -> list[int]:
    if not isinstance(seeds, Iterable):
        raise InvalidInputError(f"seeds must be several, such as range(5), got {seeds!r}")
    found = [validate_seed(seed, "a seed") for seed in seeds]
    if not found or len(set(found)) < len(found):
        raise InvalidInputError(f"seeds must be given, each once, got {found}")
    return found


def _job(name: str, environment: Source, agent: Source, seed: int, num_rounds: int) -> Job:
    plugins = plugin_settings([*environment.modules, *agent.modules])
    return Job(
        f"{name}/seed={seed}",
        partial(_agent_run, name, environment, agent, seed, num_rounds),
        resumable=True,
        settings={
            "environment": dict(environment.settings),
            "agent": dict(agent.settings),
            "num_rounds": num_rounds,
            "seed": seed,
            **plugins,
        },
        relative_cost=agent.relative_cost,
        defaults={"environment": environment.defaults, "agent": agent.defaults, **plugins},
        kind=name,
    )


def _agent_run(
    name: str, environment_source: Source, agent_source: Source, seed: int, num_rounds: int
) -> AgentRun:
    environment: Any = environment_source.make(seed)
    if not is_environment(environment):
        raise InvalidInputError(
            "an environment has a method round or episode, see gfucb.core.protocols; got "
            f"{type(environment).__name__}{gymnasium_cure(environment)}"
        )
    agent: Any = agent_source.make(environment, seed)
    missing = [m for m in ("decide", "observe", "diagnostics") if not hasattr(agent, m)]
    if missing:
        raise InvalidInputError(
            f"agent {name!r} has no method {' and no '.join(missing)}; gfucb.core.protocols lists "
            "the methods of an agent"
        )
    return agent_run(agent, environment, num_rounds, agent_source.uses_true_features)


def _require_importable(jobs: Mapping[RunKey, Job]) -> None:
    for (name, _), job in jobs.items():
        try:
            ForkingPickler.dumps(job)
        except Exception as error:
            raise InvalidInputError(
                f"agent {name!r} or its environment cannot be sent to another process ({error}); "
                "define it as a function of a module, or use processes=1"
            ) from None


def _in_memory(jobs: Mapping[RunKey, Job], processes: int) -> tuple[pd.DataFrame, pd.Series]:
    """Rows of all runs and CPU seconds by agent, without files."""
    require_startable(list(jobs.values()))
    if processes == 1:
        with one_thread():
            computed = {key: _computed(job) for key, job in jobs.items()}
    else:
        keys = {job.name: key for key, job in jobs.items()}
        longest_first = sorted(jobs.values(), key=lambda job: -job.relative_cost)
        ended = run_in_processes(_computed, longest_first, processes)
        found = {keys[job.name]: result for job, result in ended}
        computed = {key: found[key] for key in jobs}
    tables = [
        pd.DataFrame(rows).assign(agent=name, seed=seed)
        for (name, seed), (rows, _) in computed.items()
    ]
    seconds = pd.DataFrame(
        [(name, spent) for (name, _), (_, spent) in computed.items()], columns=["agent", "seconds"]
    )
    return pd.concat(tables, ignore_index=True), seconds.groupby("agent")["seconds"].mean()


def _computed(job: Job) -> tuple[list[Row], float]:
    start = time.process_time()
    rows = list(job.work().rows())
    return rows, time.process_time() - start


def _on_disk(
    jobs: Mapping[RunKey, Job], out: Path, processes: int, sinks: Sequence[RowSinks]
) -> tuple[pd.DataFrame, pd.Series]:
    """The same from run directories below `out`, where missing runs are computed first."""
    run_all([with_sinks(job, sinks) for job in jobs.values()], out, processes=processes)
    rows = load_rows(out)
    keys = set(jobs)
    is_wanted = [key in keys for key in zip(rows["agent"], rows["seed"], strict=True)]
    return rows[is_wanted].reset_index(drop=True), load_seconds(out)

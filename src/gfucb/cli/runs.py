"""Commands that run agents and report on runs: run, compare, report."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from gfucb.cli.engine_options import EngineOptions, problem_printer
from gfucb.cli.sinks import row_sinks
from gfucb.cli.terminal import comparison_progress, progress, summary_table
from gfucb.runs.build_run import with_settings
from gfucb.runs.config import AgentConfig, EnvironmentConfig, RunConfig
from gfucb.runs.metrics import metric_of
from gfucb.runs.plugins import load_plugins
from gfucb.runs.registry import ENVIRONMENTS, agent_label
from gfucb.runs.text_files import write_text


@dataclass(frozen=True)
class RunCommand:
    """Run one agent in one environment with one seed.

    The directory gets config.json (the settings), provenance.json (versions, commit, seconds) and
    rows.csv (one row per round, or per episode of an episodic environment). A repeated command
    resumes a run that was killed.
    """

    out: Path
    """Directory of the run; it must not contain another run."""
    preset: str = "digits"
    """Sets the defaults shown below; `gfucb presets` lists the presets."""
    plugin: tuple[Path, ...] = ()
    """Python files that register agents, environments, fits or action selectors of your own."""
    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    num_rounds: int = 200
    """T, the number of rounds or episodes."""
    seed: int = 0
    """Environment and agent derive all their randomness from it."""
    data_dir: str | None = None
    """Directory with the MNIST files; by default the environment variable GFUCB_DATA_DIR."""
    sinks: tuple[str, ...] = ()
    """Also send the rows to tensorboard=DIRECTORY or mlflow=EXPERIMENT. The server of MLflow is
    set by the environment variable MLFLOW_TRACKING_URI."""

    def __call__(self, console: Console) -> None:
        """Run, with a progress bar on a terminal."""
        # Not at the top, here and below: `--help` needs no torch.
        import torch

        from gfucb.runs.single import final_result, run

        torch.set_num_threads(1)
        config = RunConfig(self.environment, self.agent, self.num_rounds, self.seed)
        sinks = row_sinks(self.sinks)
        with progress(console, config.agent.name, config.num_rounds) as advance:
            for row in run(config, self.out, data_dir=self.data_dir, sinks=sinks):
                advance(int(row["round"]))
        is_episodic = ENVIRONMENTS[self.environment.name].kind == "episodic"
        metric, value = final_result(self.out)
        console.print(
            f"{agent_label(config.agent.name)}: {metric.title.lower()} {value:.3f} after "
            f"{config.num_rounds} {'episodes' if is_episodic else 'rounds'}; "
            f"rows in {self.out / 'rows.csv'}"
        )


@dataclass(frozen=True)
class CompareCommand:
    """Compare several agents on the same seeds.

    All agents face the same contexts and the same noise. Prints a table (mean regret per task with
    its 95% interval over seeds, paired differences to GFUCB, seconds; for episodic environments
    also the share of episodes whose optimistic value was below the optimal value) and writes
    summary.csv, regret.png and regret.svg next to the run directories. In environments without
    optimal values, table and figure (reward.png, reward.svg) have the mean reward instead.
    """

    out: Path
    """Directory for the runs, OUT/AGENT/seed=SEED. Finished runs are not repeated."""
    preset: str = "digits"
    """Sets the defaults shown below; `gfucb presets` lists the presets."""
    plugin: tuple[Path, ...] = ()
    """Python files that register agents, environments, fits or action selectors of your own."""
    agents: tuple[str, ...] = ("gfucb",)
    """Which agents; `gfucb presets` lists them."""
    seeds: tuple[int, ...] = (0,)
    """Which seeds."""
    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    """Settings of all agents; their names come from --agents."""
    num_rounds: int = 200
    """T, the number of rounds or episodes."""
    computing: Annotated[EngineOptions, tyro.conf.arg(name="")] = field(
        default_factory=EngineOptions
    )
    data_dir: str | None = None
    """Directory with the MNIST files; by default the environment variable GFUCB_DATA_DIR."""
    sinks: tuple[str, ...] = ()
    """Also send the rows to tensorboard=DIRECTORY or mlflow=EXPERIMENT. The server of MLflow is
    set by the environment variable MLFLOW_TRACKING_URI."""

    def __call__(self, console: Console) -> None:
        """Run what is missing, then print the table and draw the figure."""
        from gfucb.runs.comparison import Comparison, Listener, run_comparison

        engine = self.computing.make(min(2, os.cpu_count() or 1), self.data_dir)
        agents = tuple(with_settings(name, self.agent) for name in self.agents)
        comparison = Comparison(self.environment, agents, self.seeds, self.num_rounds)
        num_runs, sinks = len(self.agents) * len(self.seeds), row_sinks(self.sinks)
        with comparison_progress(console, num_runs) as shown:
            listener = Listener(
                lambda config, metric, value: shown.run_ended(
                    f"{config.agent.name}, seed {config.seed}: {metric.label} {value:.2f}"
                ),
                shown.advance,
                problem_printer(console),
            )
            run_comparison(
                comparison,
                self.out,
                engine=engine,
                data_dir=self.data_dir,
                listener=listener,
                sinks=sinks,
            )
        # Not before the runs: they need neither pandas nor matplotlib.
        from gfucb.runs.plots import comparison_curves, save
        from gfucb.runs.summary import load_rows, summarise

        table = summarise(self.out)
        write_text(self.out / "summary.csv", table.to_csv(index=False))
        rows = load_rows(self.out)
        figure = self.out / metric_of(rows.columns).name
        save(comparison_curves(rows), figure)
        console.print(summary_table(table, self.num_rounds))
        console.print(f"figure: {figure.with_suffix('.png')}", highlight=False)


@dataclass(frozen=True)
class ReportCommand:
    """Make one self-contained HTML page of the finished runs in a directory."""

    directory: Annotated[Path, tyro.conf.Positional]
    """A directory that `gfucb compare` or `gfucb run` wrote."""
    plugin: tuple[Path, ...] = ()
    """Python files that registered agents or environments of these runs."""

    def __call__(self, console: Console) -> None:
        """Write DIRECTORY/report.html."""
        from gfucb.runs.report import write_report

        load_plugins(self.plugin)
        console.print(f"report: {write_report(self.directory)}", highlight=False)

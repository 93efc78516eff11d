"""Commands that play: run, compare, report."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.console import Console

from gfucb.cli.terminal import progress, summary_table
from gfucb.core.errors import lookup
from gfucb.runs.bandit_agents import AGENTS
from gfucb.runs.comparison import Comparison, Listener, compare
from gfucb.runs.config import AgentConfig, EnvironmentConfig, RunConfig
from gfucb.runs.episodic_agents import EPISODIC_AGENTS, EpisodicAgentConfig
from gfucb.runs.episodic_config import EpisodicEnvironmentConfig, EpisodicRunConfig
from gfucb.runs.plots import label, regret_curves, save
from gfucb.runs.report import write_report
from gfucb.runs.single import run
from gfucb.runs.summary import load_rows, summarise


@dataclass(frozen=True)
class RunCommand:
    """Play one agent in one environment under one seed, and write what happened.

    The directory gets config.json (the settings), provenance.json (versions, commit, seconds) and
    rows.csv (a row for each round). Given again, the command takes up a run that was killed.
    """

    out: Path
    """ResultsDirectory of the run; it must not hold another one."""
    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    num_rounds: int = 200
    """T, the number of rounds."""
    seed: int = 0
    """Environment and agent derive all their randomness from it."""
    data_dir: str | None = None
    """ResultsDirectory with MNIST's files; by default the environment variable GFUCB_DATA_DIR."""

    def __call__(self, console: Console) -> None:
        """Run, with a progress bar on a terminal."""
        config = RunConfig(self.environment, self.agent, self.num_rounds, self.seed)
        _run(config, self.out, console, self.data_dir)


@dataclass(frozen=True)
class RunMDPCommand:
    """Play one agent in one environment of episodic MDPs under one seed, and write what happened.

    The directory gets config.json (the settings), provenance.json (versions, commit, seconds) and
    rows.csv (a row for each episode). Given again, the command takes up a run that was killed.
    """

    out: Path
    """ResultsDirectory of the run; it must not hold another one."""
    environment: EpisodicEnvironmentConfig = field(default_factory=EpisodicEnvironmentConfig)
    agent: EpisodicAgentConfig = field(default_factory=EpisodicAgentConfig)
    num_rounds: int = 500
    """T, the number of episodes."""
    seed: int = 0
    """Environment and agent derive all their randomness from it."""

    def __call__(self, console: Console) -> None:
        """Run, with a progress bar on a terminal."""
        config = EpisodicRunConfig(self.environment, self.agent, self.num_rounds, self.seed)
        _run(config, self.out, console)


@dataclass(frozen=True)
class CompareCommand:
    """Play several agents on the same seeds, and say who lost least.

    All agents meet the same contexts and the same noise. Ends with a table (mean regret of one
    task with its 95% interval over seeds, paired differences to GFUCB, seconds) and writes
    summary.csv, regret.png and regret.svg next to the run directories.
    """

    out: Path
    """ResultsDirectory for the runs, OUT/AGENT/seed=SEED. Runs that are there are kept or taken up."""
    agents: tuple[str, ...] = ("gfucb",)
    """Which agents; `gfucb presets` lists them."""
    seeds: tuple[int, ...] = (0,)
    """Which seeds."""
    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    """Settings for all agents; their names come from --agents."""
    num_rounds: int = 200
    """T, the number of rounds."""
    jobs: int = min(2, os.cpu_count() or 1)
    """Runs at a time, a process with one thread each."""
    data_dir: str | None = None
    """ResultsDirectory with MNIST's files; by default the environment variable GFUCB_DATA_DIR."""

    def __call__(self, console: Console) -> None:
        """Run what is missing, then print the table and draw the figure."""
        for name in self.agents:
            lookup(AGENTS, name, "agent")
        agents = tuple(replace(self.agent, name=name) for name in self.agents)
        comparison = Comparison(self.environment, agents, self.seeds, self.num_rounds)
        _compare(comparison, self.out, console, self.jobs, self.data_dir)


@dataclass(frozen=True)
class CompareMDPCommand:
    """Play several agents in episodic MDPs on the same seeds, and say who lost least.

    All agents meet the same draws. Ends with a table (mean regret of one task with its 95%
    interval over seeds, paired differences to GFUCB, seconds, and how often the optimistic value
    was below the optimal one) and writes summary.csv, regret.png and regret.svg.
    """

    out: Path
    """ResultsDirectory for the runs, OUT/AGENT/seed=SEED. Runs that are there are kept or taken up."""
    agents: tuple[str, ...] = ("gfucb-mdp",)
    """Which agents; `gfucb presets` lists them."""
    seeds: tuple[int, ...] = (0,)
    """Which seeds."""
    environment: EpisodicEnvironmentConfig = field(default_factory=EpisodicEnvironmentConfig)
    agent: EpisodicAgentConfig = field(default_factory=EpisodicAgentConfig)
    """Settings for all agents; their names come from --agents."""
    num_rounds: int = 500
    """T, the number of episodes."""
    jobs: int = min(2, os.cpu_count() or 1)
    """Runs at a time, a process with one thread each."""

    def __call__(self, console: Console) -> None:
        """Run what is missing, then print the table and draw the figure."""
        for name in self.agents:
            lookup(EPISODIC_AGENTS, name, "agent")
        agents = tuple(replace(self.agent, name=name) for name in self.agents)
        comparison = Comparison(self.environment, agents, self.seeds, self.num_rounds)
        _compare(comparison, self.out, console, self.jobs)


@dataclass(frozen=True)
class ReportCommand:
    """Make one self-contained HTML page of the finished runs in a directory."""

    directory: Annotated[Path, tyro.conf.Positional]
    """A directory that `gfucb compare` or `gfucb run` wrote."""

    def __call__(self, console: Console) -> None:
        """Write FOLDER/report.html."""
        console.print(f"report: {write_report(self.directory)}", highlight=False)


def _run(
    config: RunConfig | EpisodicRunConfig, out: Path, console: Console, data_dir: str | None = None
) -> None:
    torch.set_num_threads(1)
    regret = 0.0
    with progress(console, config.agent.name, config.num_rounds) as advance:
        for row in run(config, out, data_dir=data_dir):
            regret = float(row["cumulative_regret"])
            advance(int(row["round"]))
    what = "episodes" if isinstance(config, EpisodicRunConfig) else "rounds"
    console.print(
        f"{label(config.agent.name)}: regret of one task {regret:.3f} after {config.num_rounds} "
        f"{what}; rows in {out / 'rows.csv'}"
    )


def _compare(
    comparison: Comparison, out: Path, console: Console, jobs: int, data_dir: str | None = None
) -> None:
    num_runs = len(comparison.agents) * len(comparison.seeds)
    with progress(console, f"{num_runs} runs", num_runs * comparison.num_rounds) as advance:
        compare(
            comparison,
            out,
            processes=jobs,
            data_dir=data_dir,
            listener=Listener(
                lambda config, regret: console.print(
                    f"{config.agent.name}, seed {config.seed}: regret {regret:.2f}",
                    highlight=False,
                ),
                # In a log, the line above is progress enough.
                advance if console.is_terminal else lambda rounds: None,
            ),
        )
    table = summarise(out)
    table.to_csv(out / "summary.csv", index=False)
    save(regret_curves(load_rows(out)), out / "regret")
    console.print(summary_table(table, comparison.num_rounds, comparison.environment.num_tasks))
    console.print(f"figure: {out / 'regret.png'}", highlight=False)

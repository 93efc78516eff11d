"""Several agents on the same seeds, side by side in a few processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import torch

from gfucb.core.errors import InvalidInputError
from gfucb.runs.build_run import AnyRunConfig, relative_cost
from gfucb.runs.config import AgentConfig, EnvironmentConfig, RunConfig
from gfucb.runs.episodic_agents import EpisodicAgentConfig
from gfucb.runs.episodic_config import EpisodicEnvironmentConfig, EpisodicRunConfig
from gfucb.runs.store import is_finished, read_rows, run


@dataclass(frozen=True)
class Comparison:
    """Agents, seeds and the environment they share; its runs differ in agent and seed only."""

    environment: EnvironmentConfig | EpisodicEnvironmentConfig
    agents: tuple[AgentConfig, ...] | tuple[EpisodicAgentConfig, ...]
    seeds: tuple[int, ...]
    num_rounds: int

    def __post_init__(self) -> None:
        names = [agent.name for agent in self.agents]
        for what, values in (("agents", names), ("seeds", list(self.seeds))):
            if not values or len(set(values)) < len(values):
                raise InvalidInputError(f"{what} must be given, each once, got {values}")

    def runs(self, out: Path) -> list[tuple[Path, AnyRunConfig]]:
        """ResultsDirectory and config of every run."""
        return [
            (out / agent.name / f"seed={seed}", self._run(agent, seed))
            for agent in self.agents
            for seed in self.seeds
        ]

    def _run(self, agent: AgentConfig | EpisodicAgentConfig, seed: int) -> AnyRunConfig:
        if isinstance(self.environment, EpisodicEnvironmentConfig):
            assert isinstance(agent, EpisodicAgentConfig)
            return EpisodicRunConfig(self.environment, agent, self.num_rounds, seed)
        assert isinstance(agent, AgentConfig)
        return RunConfig(self.environment, agent, self.num_rounds, seed)


@dataclass(frozen=True)
class Listener:
    """What a comparison tells while it goes on."""

    run_ended: Callable[[AnyRunConfig, float], None] = lambda config, regret: None
    """Called with the run and its regret."""
    rounds_written: Callable[[int], None] = lambda rounds: None
    """Called a few times a second with the rounds on disk, of all runs together."""


def compare(
    comparison: Comparison,
    out: Path,
    *,
    jobs: int = 1,
    data_dir: str | None = None,
    listener: Listener | None = None,
) -> None:
    """Run what is not finished yet, `jobs` processes at a time, one thread each.

    Runs that are there are kept: finished ones as they are, others are taken up. A directory with
    a run of other settings is an error.
    """
    if jobs < 1:
        raise InvalidInputError(f"jobs must be at least 1, got {jobs}")
    listener = listener or Listener()
    runs = comparison.runs(out)
    waiting = [
        (directory, config) for directory, config in runs if not is_finished(directory, config)
    ]
    # Long runs first, so that none is left alone at the end.
    waiting.sort(key=lambda item: -relative_cost(item[1].agent.name))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=jobs, mp_context=context) as pool:
        futures = {
            pool.submit(run_to_end, config, directory, data_dir): config
            for directory, config in waiting
        }
        try:
            while futures:
                ended, _ = wait(futures, timeout=0.3, return_when=FIRST_COMPLETED)
                for future in ended:
                    listener.run_ended(futures.pop(future), future.result())
                listener.rounds_written(sum(_rounds_on_disk(directory) for directory, _ in runs))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_to_end(config: AnyRunConfig, directory: Path, data_dir: str | None) -> float:
    """Run in this process on one thread; return the regret of a task."""
    torch.set_num_threads(1)
    for _ in run(config, directory, data_dir=data_dir):
        pass
    return float(read_rows(directory)[-1]["cumulative_regret"])


def _rounds_on_disk(directory: Path) -> int:
    path = directory / "rows.csv"
    return max(0, path.read_bytes().count(b"\n") - 1) if path.exists() else 0

"""Jobs for workers on Ray, and an agent that only this file registers."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from threadpoolctl import threadpool_info

from gfucb.bandits.baselines import Uniform
from gfucb.core.data_directories import data_directory
from gfucb.runs import BanditAgentConfig, register_agent
from gfucb.runs.build_run import prepare


@dataclass(frozen=True)
class WorkerAgentConfig(BanditAgentConfig):
    fast_if: str = ""
    """A round takes a tenth of a second until this file exists."""


class WorkerAgent(Uniform):
    def __init__(self, num_tasks, seed, fast_if):
        super().__init__(num_tasks, seed=seed)
        self.fast_if = Path(fast_if)

    def observe(self, decision, rewards):
        super().observe(decision, rewards)
        time.sleep(0.0 if self.fast_if.exists() else 0.1)


@register_agent("worker-agent", config=WorkerAgentConfig, description="Only this file has it.")
def worker_agent(config, environment, seed):
    return WorkerAgent(environment.num_tasks, seed, config.fast_if)


class DyingRun:
    """A run whose worker is killed once, as soon as one row is in the run directory."""

    def __init__(self, config, directory, marker):
        self.inner, self.directory, self.marker = prepare(config), directory, marker
        self.state, self.load_state = self.inner.state, self.inner.load_state

    def rows(self):
        for row in self.inner.rows():
            yield row
            if not self.marker.exists() and row["round"] >= 4:
                while not (self.directory / "checkpoint.safetensors").exists():
                    time.sleep(0.01)
                self.marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def fail(number):
    raise LookupError(f"there is no row {number}")


def facts(data_dir):
    """How many threads a worker has, and what it reads as its data directory."""
    counts = [pool["num_threads"] for pool in threadpool_info()]
    directory = data_directory(data_dir)
    return [
        {
            "threads": max([torch.get_num_threads(), *counts]),
            "text": (directory / "deep" / "file.txt").read_text(),
            "is_copy": directory != Path(data_dir),
            "by_default": data_directory(None) == directory,
        }
    ]

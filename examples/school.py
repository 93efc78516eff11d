"""Schools: which of ten pupils has the best exam score? The 139 schools are tasks.

    python examples/school.py --data DATA

DATA holds school/school.npz: 28 columns `X` of each pupil, the score `y` and the school `task`
(Inner London Education Authority; 15,362 pupils). Every pupil is a candidate with columns.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import torch

import gfucb
from gfucb.core.records import BanditRound
from gfucb.runs.agents.linear_agents import LinearAgentConfig
from gfucb.tables import Columns

LARGEST_SCORE = 70.0


class Schools:
    """In each round ten pupils of each school; the reward is the score of the chosen one."""

    value_range = (0.0, 1.0)

    def __init__(self, inputs: np.ndarray, scores: np.ndarray, tasks: np.ndarray, seed: int):
        self.pupils = Columns.of(inputs).encode(inputs)  # standardised
        self.scores = torch.from_numpy(scores / LARGEST_SCORE)
        self.members = [np.flatnonzero(tasks == school) for school in np.unique(tasks)]
        self.num_tasks, self.seed = len(self.members), seed

    def round(self, round_index: int) -> BanditRound:
        """Candidates [school, pupil, column] and scores."""
        draws = np.random.default_rng([self.seed, round_index])
        chosen = [draws.choice(own, 10, replace=False) for own in self.members]
        pupils = torch.from_numpy(np.stack(chosen))
        scores = self.scores[pupils]
        noise = torch.zeros(self.num_tasks)
        return BanditRound(self.pupils[pupils], scores, noise, scores[:, :, None])


AGENTS = {
    "gfucb": "gfucb",
    "LinUCB, one model per school": LinearAgentConfig("linear-task", alpha=0.1),
    "LinUCB, one model for all schools": LinearAgentConfig("linear-pooled", alpha=0.03, ridge=0.1),
    "LinUCB, own around shared": LinearAgentConfig(
        "linear-shared", alpha=0.0, ridge=0.1, own_ridge=10.0
    ),
    "uniform": "uniform",
}


def main(words: list[str] | None = None) -> None:
    """Compare the default agent with linear models of one school, of all, and of both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the directory of school")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10], help="END, or START END")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--runs", help="keep finished runs here, and do not repeat them")
    parser.add_argument("--out", default="runs/examples/school")
    given = parser.parse_args(words)
    with np.load(given.data / "school" / "school.npz") as archive:
        arrays = [archive[name].astype(float) for name in ("X", "y", "task")]
    how = {"num_rounds": given.rounds, "processes": given.processes, "out": given.runs}
    result = gfucb.compare(partial(Schools, *arrays), AGENTS, seeds=range(*given.seeds), **how)
    print(result)
    result.save(given.out)


if __name__ == "__main__":
    main()

"""Jester: jokes for a thousand users. Users are tasks, jokes are items without columns.

    python examples/jester.py --data DATA

DATA holds jester5k/jester5k.npz: `ratings` [user, joke] from -10 to 10, NaN where there is none. In
each round a user is offered five jokes that it has not been offered before, and rates the chosen
one. After 20 rounds every joke was offered once.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import torch

import gfucb
from gfucb.core.records import BanditRound
from gfucb.runs.agents.linear_agents import FactorisationConfig, LinearAgentConfig
from gfucb.runs.plots import late_regret, save

NUM_OFFERED = 5


class Users:
    """Users that rated all jokes, in random order."""

    value_range = (0.0, 1.0)

    def __init__(self, ratings: np.ndarray, num_users: int, seed: int) -> None:
        draws = np.random.default_rng(seed)
        complete = ratings[~np.isnan(ratings).any(axis=1)]
        chosen = complete[draws.permutation(len(complete))[:num_users]]
        self.values = torch.from_numpy((chosen + 10) / 20)  # [user, joke], from 0 to 1
        self.num_tasks, self.num_items = self.values.shape
        order = draws.permuted(np.tile(np.arange(self.num_items), (self.num_tasks, 1)), axis=1)
        self.order = torch.from_numpy(order)

    def round(self, round_index: int) -> BanditRound:
        """The next five jokes of each user, as numbers: candidates [user, joke]."""
        start = (round_index - 1) * NUM_OFFERED % self.num_items
        jokes = self.order[:, start : start + NUM_OFFERED]
        values = self.values.gather(1, jokes)
        return BanditRound(jokes, values, torch.zeros(self.num_tasks), values[:, :, None])


AGENTS = {
    "gfucb": "gfucb",
    "matrix factorisation": FactorisationConfig("als", rank=5, ridge=2.0, bias_ridge=5.0),
    "popularity": LinearAgentConfig("linear-pooled", alpha=0.3, ridge=0.1),
    "LinUCB, own around shared": LinearAgentConfig("linear-shared", alpha=0.3, ridge=0.1),
    "UCB per user": LinearAgentConfig("linear-task", alpha=0.0, ridge=0.1),
    "uniform": "uniform",
}


def main(words: list[str] | None = None) -> None:
    """Compare the model of items with popularity, UCB per user and matrix factorisation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the directory of jester5k")
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10], help="END, or START END")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--runs", help="keep finished runs here, and do not repeat them")
    parser.add_argument("--out", default="runs/examples/jester")
    given = parser.parse_args(words)
    with np.load(given.data / "jester5k" / "jester5k.npz") as archive:
        environment = partial(Users, archive["ratings"].astype(float), given.users)
    how = {"num_rounds": given.rounds, "processes": given.processes, "out": given.runs}
    result = gfucb.compare(environment, AGENTS, seeds=range(*given.seeds), **how)
    print(result)
    result.save(given.out)
    save(late_regret(result.rows), Path(given.out) / "late_regret")  # shows small differences


if __name__ == "__main__":
    main()

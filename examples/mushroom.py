"""Mushrooms: eat or leave, from 22 text columns. One task, two actions.

    python examples/mushroom.py --data DATA

DATA holds mushroom/agaricus-lepiota.data (UCI). Eating an edible mushroom has the reward 5, eating
a poisonous one 5 or -35 with probability 1/2, leaving it 0 (Riquelme et al., 2018).
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import gfucb
from gfucb.core.records import BanditRound
from gfucb.runs.agents.linear_agents import LinearAgentConfig
from gfucb.tables import Schema

EDIBLE, HARMFUL = 5.0, -35.0
ACTIONS = ["eat", "leave"]


class Mushrooms:
    """A random mushroom in each round."""

    num_tasks = 1
    discrete_actions = len(ACTIONS)
    value_range = ((EDIBLE + HARMFUL) / 2, EDIBLE)

    def __init__(self, table: pd.DataFrame, seed: int) -> None:
        self.edible, self.seed = (table["class"] == "e").to_numpy(), seed
        columns = table.drop(columns="class")
        self.schema = Schema.of(columns, action="action", actions=ACTIONS)
        self.candidates = self.schema.offers(columns).candidates  # [mushroom, action, column]

    def round(self, round_index: int) -> BanditRound:
        """Candidates [1, action, column] and the expected rewards of both actions."""
        draws = np.random.default_rng([self.seed, round_index])
        index, is_harmed = draws.integers(len(self.edible)), draws.random() < 0.5
        mean = EDIBLE if self.edible[index] else (EDIBLE + HARMFUL) / 2
        reward = HARMFUL if is_harmed and not self.edible[index] else EDIBLE
        means = torch.tensor([[mean, 0.0]], dtype=torch.float64)
        noise = torch.tensor([[reward - mean, 0.0]], dtype=torch.float64)
        return BanditRound(self.candidates[[index]], means, noise, means[:, :, None])


AGENTS = {
    "gfucb": "gfucb",
    "LinUCB": LinearAgentConfig("linear-arms-task", alpha=0.03, ridge=0.1),
    "LinUCB on Fourier features": LinearAgentConfig("fourier-arms-task", alpha=0.03, length=0.4),
    "LinUCB, one slope for both actions": LinearAgentConfig("linear-task", alpha=0.03),
    "uniform": "uniform",
}


def main(words: list[str] | None = None) -> None:
    """Compare the default agent with linear models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the directory of mushroom")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10], help="END, or START END")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--runs", help="keep finished runs here, and do not repeat them")
    parser.add_argument("--out", default="runs/examples/mushroom")
    given = parser.parse_args(words)
    names = ["class", *(f"column {number:02}" for number in range(1, 23))]
    path = given.data / "mushroom" / "agaricus-lepiota.data"
    table = pd.read_csv(path, names=names, na_values="?", dtype=str)
    how = {"num_rounds": given.rounds, "processes": given.processes, "out": given.runs}
    result = gfucb.compare(partial(Mushrooms, table), AGENTS, seeds=range(*given.seeds), **how)
    print(result)
    result.save(given.out)


if __name__ == "__main__":
    main()

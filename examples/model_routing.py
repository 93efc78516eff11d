"""Routing: which language model answers a request? Teams are tasks, models have features.

    python examples/model_routing.py

Thirty synthetic teams. A request has the embedding of its prompt, a length and a kind. A model has
a price, a size and a specialty. The reward is quality minus cost, which teams weigh differently.
"""

import argparse

import numpy as np
import torch

import gfucb
from gfucb.core.records import BanditRound, Decision
from gfucb.runs.agents.linear_agents import LinearAgentConfig
from gfucb.tables import Schema

MODELS = {
    "model": ["small", "small code", "medium", "large code", "large"],
    "price": [0.1, 0.15, 0.5, 1.8, 2.0],
    "log_size": [0.0, 0.0, 1.0, 2.0, 2.0],
    "writes_code": [False, True, False, True, False],
}


class Teams:
    """Rounds are requests, one of each team."""

    value_range = (-1.75, 1.0)  # of expected quality minus cost

    def __init__(self, seed: int, num_teams: int = 30) -> None:
        self.num_tasks, self.seed = num_teams, seed
        draws = np.random.default_rng([seed, 0])
        self.difficulty = 0.7 * draws.normal(size=8)  # of a prompt: a direction of embeddings
        self.thrift = draws.uniform(0.05, 0.7, num_teams)  # the weight of the cost
        self.needs = draws.normal([1.0, 1.0], 0.6, (num_teams, 2))  # of size, of code
        self.schema = Schema.of(self.requests(0), task="team", action="model", actions=MODELS)

    def requests(self, index: int) -> dict[str, list[str] | np.ndarray]:
        """A request of each team."""
        draws = np.random.default_rng([self.seed, 1, index])
        return {
            "team": [f"team {number}" for number in range(self.num_tasks)],
            "prompt": draws.normal(size=(self.num_tasks, 8)),
            "kilotokens": draws.lognormal(-0.5, 0.6, self.num_tasks),
            "kind": draws.choice(["code", "chat", "summary"], self.num_tasks),
        }

    def round(self, round_index: int) -> BanditRound:
        """Candidates, and the expected quality minus cost of every model."""
        offers = self.schema.offers(table := self.requests(round_index))
        needs = self.needs * [[1.0, 1.5 if kind == "code" else -0.5] for kind in table["kind"]]
        skills = np.array([MODELS["log_size"], MODELS["writes_code"]], dtype=float)  # [2, model]
        quality = 1 / (1 + np.exp((table["prompt"] @ self.difficulty)[:, None] - needs @ skills))
        cost = np.minimum(table["kilotokens"][:, None] * np.array(MODELS["price"]), 2.5)
        means = torch.from_numpy(quality - self.thrift[:, None] * cost)
        noise = np.random.default_rng([self.seed, 2, round_index]).normal(0, 0.1, self.num_tasks)
        return BanditRound(offers.candidates, means, torch.from_numpy(noise), means[:, :, None])


class AlwaysMedium(gfucb.Uniform):
    """The same model for every request: the only available action."""

    def __init__(self, environment: Teams, seed: int) -> None:
        super().__init__(environment.num_tasks)

    def decide(self, candidates, tasks=None, available=None) -> Decision:
        """Choose it in every row."""
        only = torch.tensor([name == "medium" for name in MODELS["model"]])
        return super().decide(candidates, tasks, only.expand(candidates.shape[:2]))


AGENTS = {
    "gfucb": "gfucb",
    "LinUCB, one model per team": LinearAgentConfig("linear-task", alpha=0.03),
    "LinUCB, one model for all teams": LinearAgentConfig("linear-pooled", alpha=0.03),
    "LinUCB, own around shared": LinearAgentConfig("linear-shared", 0.0, 0.1),
    "always medium": AlwaysMedium,
    "uniform": "uniform",
}


def main(words: list[str] | None = None) -> None:
    """Compare the default agent with linear ones and with one model for all requests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10], help="END, or START END")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--runs", help="keep finished runs here, and do not repeat them")
    parser.add_argument("--out", default="runs/examples/model_routing")
    given = parser.parse_args(words)
    how = {"num_rounds": given.rounds, "processes": given.processes, "out": given.runs}
    print(result := gfucb.compare(Teams, AGENTS, seeds=range(*given.seeds), **how))
    result.save(given.out)


if __name__ == "__main__":
    main()

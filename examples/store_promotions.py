"""Stores and promotions: one promotion for each store and day, from a table of text and numbers.

    python examples/store_promotions.py

Forty synthetic stores. A row has date, weather, holiday and visitors, with gaps. The revenue of a
promotion depends on them, in each store a little differently from the average of the chain.
"""

import argparse
from functools import partial

import numpy as np
import pandas as pd
import torch

import gfucb
from gfucb.core.records import BanditRound
from gfucb.runs.agents.linear_agents import LinearAgentConfig
from gfucb.tables import Schema

PROMOTIONS = ["none", "coupon", "bundle", "delivery"]
WEATHER = ["sun", "rain", "snow"]


class Stores:
    """Rounds are days; the tables of all stores are encoded by one schema."""

    value_range = (50.0, 450.0)  # of expected revenue; the unit of alpha below
    discrete_actions = len(PROMOTIONS)  # for linear agents with weights for each action

    def __init__(self, num_stores: int, seed: int) -> None:
        self.num_tasks, self.seed = num_stores, seed
        draws = np.random.default_rng([seed, 0])
        chain = draws.normal(0, 30, (1, len(PROMOTIONS), 7))  # the average of all stores
        own = draws.normal(0, 12, (num_stores, len(PROMOTIONS), 7))
        self.effects = chain + own  # [store, promotion, feature]
        self.sizes = draws.uniform(300, 2000, num_stores)
        past = pd.concat([self.day(day) for day in range(-30, 0)])  # to see all categories
        self.schema = Schema.of(past, task="store", action="promotion", actions=PROMOTIONS)

    def day(self, index: int) -> pd.DataFrame:
        """The table of a day, one row for each store."""
        draws = np.random.default_rng([self.seed, 1, index + 30])
        visitors = self.sizes * draws.lognormal(0, 0.3, self.num_tasks)
        return pd.DataFrame(
            {
                "store": [f"store {number}" for number in range(self.num_tasks)],
                "date": pd.Timestamp("2026-01-01") + pd.Timedelta(days=index),
                "weather": draws.choice(WEATHER, self.num_tasks),
                "holiday": draws.random() < 0.1,
                "visitors": np.where(draws.random(self.num_tasks) < 0.1, np.nan, visitors),
            }
        )

    def round(self, round_index: int) -> BanditRound:
        """Day `round_index`: candidates, expected revenue of each promotion, noise."""
        table = self.day(round_index)
        offers = self.schema.offers(table)
        features = [np.ones(self.num_tasks), *(table["weather"] == name for name in WEATHER)]
        features += [table["date"].dt.day_of_week >= 5, table["holiday"]]
        features += [np.tanh(table["visitors"].fillna(self.sizes.mean()) / 1000 - 1)]
        known = np.stack(features, axis=1).astype(float)  # [store, feature]
        means = 250 + np.einsum("spf,sf->sp", self.effects, known)
        noise = np.random.default_rng([self.seed, 2, round_index]).normal(0, 40, self.num_tasks)
        order = [PROMOTIONS.index(name) for name in offers.names[0]]
        revenue = torch.from_numpy(means[:, order])
        return BanditRound(offers.candidates, revenue, torch.from_numpy(noise), revenue[:, :, None])


def default(environment: Stores, seed: int) -> gfucb.GFUCB:
    """The default agent, which estimates the range of revenue."""
    return gfucb.GFUCB(environment.num_tasks, seed=seed)


AGENTS = {
    "gfucb": default,
    "LinUCB, one model per store": LinearAgentConfig("linear-arms-task", alpha=0.03),
    "LinUCB, one model for all stores": LinearAgentConfig("linear-arms-pooled", 0.03, 0.1),
    "LinUCB, own around shared": LinearAgentConfig("linear-arms-shared", 0.0, 0.1),
    "uniform": "uniform",
}


def main(words: list[str] | None = None) -> None:
    """Compare the default agent with linear alternatives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=365)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10], help="END, or START END")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--runs", help="keep finished runs here, and do not repeat them")
    parser.add_argument("--out", default="runs/examples/store_promotions")
    given = parser.parse_args(words)
    how = {"num_rounds": given.rounds, "processes": given.processes, "out": given.runs}
    print(result := gfucb.compare(partial(Stores, 40), AGENTS, seeds=range(*given.seeds), **how))
    result.save(given.out)


if __name__ == "__main__":
    main()

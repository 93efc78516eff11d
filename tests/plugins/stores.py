"""A bandit environment."""

from dataclasses import dataclass

import torch

from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound
from gfucb.runs import EnvironmentConfig, register_environment


@dataclass(frozen=True)
class StoresConfig(EnvironmentConfig):
    name: str = "stores"
    num_tasks: int = 4
    num_products: int = 3
    """Products in each store."""


class Stores:
    def __init__(self, config, seed):
        self.num_tasks, self.num_products, self.seed = config.num_tasks, config.num_products, seed
        generator = random_stream(seed, "weights")
        self.weights = torch.rand(self.num_tasks, 2, generator=generator, dtype=torch.float64)

    def round(self, round_index):
        generator = random_stream(self.seed, "round", round_index)
        sizes = (self.num_tasks, self.num_products, 2)
        products = torch.rand(sizes, generator=generator, dtype=torch.float64)
        noise = 0.1 * torch.randn(self.num_tasks, generator=generator, dtype=torch.float64)
        means = (products * self.weights[:, None]).sum(-1) / 2
        return BanditRound(products, means, noise, true_features=products)

    def describe(self):
        return {"products": self.num_products}


@register_environment("stores", label="Stores", description="Products.", config=StoresConfig)
def stores(config, seed):
    return Stores(config, seed)

"""The problems: locks of the literature, problems of bsuite, mountain cars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gfucb.core.protocols import EpisodicEnvironment
from gfucb.environments import combination_lock, deep_sea, discounting_chain, umbrella_chain

from .finite_problems import gridworld, random_mdps, river_swim
from .solving import Budget


@dataclass(frozen=True)
class Problem:
    """An environment for each seed, and how long to train in it.

    Attributes:
        make: an environment from `num_tasks` and `seed`.
        num_tasks: M.
        budget: of training and evaluation.
        length_scale: of random features, about the distance of observations that differ.
        description: for the table.
    """

    make: Callable[..., EpisodicEnvironment]
    num_tasks: int
    budget: Budget
    length_scale: float
    description: str

    def environment(self, seed: int) -> EpisodicEnvironment:
        """The environment of a seed."""
        return self.make(num_tasks=self.num_tasks, seed=seed)


def _cars(**settings: Any) -> EpisodicEnvironment:
    from gfucb.environments.mountain_car import mountain_cars  # needs Gymnasium

    return mountain_cars(**settings)


def _lock(
    horizon: int, num_tasks: int, max_episodes: int, variant: str = "", **settings: Any
) -> Problem:
    return Problem(
        partial(combination_lock, horizon, **settings),
        num_tasks,
        Budget(max_episodes),
        # Two states differ in two coordinates, which the Hadamard matrix multiplies by the root
        # of the dimension.
        length_scale=(2.0 * combination_lock(horizon).observation_dim) ** 0.5,
        description=f"combination lock, H = {horizon}, 10 actions{variant}, M = {num_tasks}",
    )


def _bsuite(
    make: Callable[..., EpisodicEnvironment], max_episodes: int, description: str, **options: Any
) -> Problem:
    budget = Budget(max_episodes, **options)
    return Problem(make, 5, budget, length_scale=1.4, description=f"{description}, M = 5")


PROBLEMS: dict[str, Problem] = {
    "lock-6": _lock(6, 5, 1000),
    "lock-6-alone": _lock(6, 1, 2000),
    "lock-12": _lock(12, 5, 1500),
    "lock-12-alone": _lock(12, 1, 3000),
    "lock-12-ten": _lock(12, 10, 1500),
    "lock-12-noisy": _lock(12, 5, 1000, ", noise 0.2", noise_scale=0.2),
    "lock-12-nonlinear": _lock(12, 5, 1000, ", nonlinear emission", emission="nonlinear"),
    "lock-12-nonlinear-alone": _lock(12, 1, 1000, ", nonlinear emission", emission="nonlinear"),
    "lock-12-dense": _lock(12, 5, 1000, ", dense rewards", dense=True),
    # No policy opens it in every episode: V* is between 0.83 and 0.85.
    "lock-12-simplex": _lock(12, 5, 400, ", simplex emission", temperature=0.2),
    "lock-25": _lock(25, 5, 2500),
    "lock-50": _lock(50, 5, 3000),
    "lock-100": _lock(100, 5, 6000),
    "deep-sea": _bsuite(partial(deep_sea, 10), 500, "deep sea, N = 10"),
    "deep-sea-stochastic": _bsuite(
        partial(deep_sea, 10, stochastic=True), 1000, "stochastic deep sea, N = 10", exact=True
    ),
    "umbrella": _bsuite(partial(umbrella_chain, 10), 500, "umbrella chain, H = 10"),
    "discounting": _bsuite(partial(discounting_chain, 30), 200, "discounting chain, H = 30"),
    "river-swim": _bsuite(river_swim, 500, "river swim, H = 20", exact=True),
    "random-mdp": _bsuite(random_mdps, 500, "random MDPs, 10 states, H = 6", exact=True),
    "gridworld": _bsuite(gridworld, 500, "gridworld, 25 states, H = 14", exact=True),
    "mountain-car": Problem(
        _cars,
        3,
        Budget(300, successful_return=1.0),
        length_scale=0.4,
        description="mountain car, H = 30, M = 3",
    ),
}

# Names for several problems.
GROUPS: dict[str, tuple[str, ...]] = {
    "bsuite": ("deep-sea", "deep-sea-stochastic", "umbrella", "discounting"),
    "finite": ("river-swim", "random-mdp", "gridworld"),
}

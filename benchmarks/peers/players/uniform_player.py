"""Actions chosen uniformly at random, for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from .problem import Floats, Integers, Offer, Problem


class Uniform:
    """Learns nothing."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.shape, self.draws = (
            (problem.num_tasks, problem.num_actions),
            np.random.default_rng(seed),
        )

    def choose(self, offer: Offer) -> Integers:
        """Random actions."""
        return self.draws.integers(self.shape[1], size=self.shape[0])

    def learn(self, offer: Offer, actions: Integers, rewards: Floats) -> None:
        """Nothing."""


def make(problem: Problem, settings: dict[str, Any], seed: int) -> Uniform:
    """The player."""
    return Uniform(problem, seed)

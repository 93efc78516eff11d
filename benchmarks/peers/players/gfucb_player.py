"""The default agent of this library."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import gfucb

from .problem import Floats, Integers, Offer, Problem


class Default:
    """`gfucb.GFUCB` without settings, except for the range of rewards, which all players use."""

    def __init__(self, problem: Problem, seed: int) -> None:
        torch.set_num_threads(1)
        self.problem = problem
        self.agent = gfucb.GFUCB(problem.num_tasks, value_range=(0.0, 1.0), seed=seed)
        self.decision: Any = None

    def choose(self, offer: Offer) -> Integers:
        """The actions of one decision for all tasks."""
        self.decision = self.agent.decide(self._candidates(offer))
        return np.asarray(self.decision.actions)

    def learn(self, offer: Offer, actions: Integers, rewards: Floats) -> None:
        """All rewards at once."""
        self.agent.observe(self.decision, rewards)

    def _candidates(self, offer: Offer) -> Any:
        if offer.contexts is not None:
            return gfucb.with_actions(offer.contexts, self.problem.num_actions)
        if offer.items is not None:
            return torch.from_numpy(offer.items)
        assert offer.vectors is not None
        shape = (*offer.vectors.shape[:2], *self.problem.input_shape)
        return torch.from_numpy(offer.vectors.reshape(shape)).to(torch.float32)


def make(problem: Problem, settings: dict[str, Any], seed: int) -> Default:
    """The player."""
    return Default(problem, seed)

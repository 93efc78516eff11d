"""Tiny finite environments with exact confidence sets."""

from __future__ import annotations

import torch

from gfucb.core.action_sets import ActionSets
from gfucb.core.random import random_stream
from gfucb.environments import SyntheticBandit, finite_bandit
from gfucb.estimation import Exhaustive
from gfucb.models import ConfidenceSet, HeadPenalty, MultiheadFunction, MultitaskDataset


class FiniteCase:
    """Random play in a finite environment, and the exact confidence set around its fit."""

    def __init__(
        self, seed: int, *, num_rounds: int = 6, ridge: float = 0.5, **environment: int
    ) -> None:
        self.environment: SyntheticBandit = finite_bandit(seed=seed, **environment)
        self.penalty = HeadPenalty(ridge)
        self.data = MultitaskDataset(
            self.environment.num_tasks, torch.Size([self.environment.input_dim]), torch.float64
        )
        for index in range(1, num_rounds + 1):
            round_ = self.environment.round(index)
            actions = torch.randint(
                self.environment.num_actions,
                (self.environment.num_tasks,),
                generator=random_stream(seed, "play", index),
            )
            tasks = torch.arange(self.environment.num_tasks)
            self.data.append(tasks, round_.candidates[tasks, actions], round_.rewards(actions))
        members = self.environment.representation_class.members
        heads = torch.zeros_like(self.environment.true_function.heads)
        start = MultiheadFunction(members[0], heads)
        fit = Exhaustive(self.environment.representation_class)
        self.center = fit(self.data, start, self.penalty, random_stream(seed, "fit"))

    def confidence_set(self, squared_radius: float, **changes: object) -> ConfidenceSet:
        options = {
            "ridge": self.penalty.ridge,
            "members": self.environment.representation_class.members,
        }
        return ConfidenceSet(self.center, self.data, squared_radius, **(options | changes))

    def action_sets(self, index: int = 1000) -> ActionSets:
        candidates = self.environment.round(index).candidates
        available = torch.ones(candidates.shape[:2], dtype=torch.bool)
        return ActionSets(candidates, torch.arange(self.environment.num_tasks), available)

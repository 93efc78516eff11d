"""Tiny worlds, as factories that take a seed."""

from __future__ import annotations

import pytest
import torch

from gfucb import ConfidenceSet, Exhaustive, Menu, MultiheadFunction, MultitaskDataset
from gfucb.environments import SyntheticBandit, finite_bandit
from gfucb.functions import HeadPenalty
from gfucb.seeding import random_stream

# Small problems run slower on many threads than on one.
torch.set_num_threads(1)


class FiniteCase:
    """Random play in a finite world, and the exact confidence set around its fit."""

    def __init__(self, seed: int, *, num_rounds: int = 6, ridge: float = 0.5, **world: int) -> None:
        self.world: SyntheticBandit = finite_bandit(seed=seed, **world)
        self.penalty = HeadPenalty(ridge)
        self.data = MultitaskDataset(
            self.world.num_tasks, torch.Size([self.world.input_dim]), torch.float64
        )
        for index in range(1, num_rounds + 1):
            round_ = self.world.round(index)
            actions = torch.randint(
                self.world.num_actions,
                (self.world.num_tasks,),
                generator=random_stream(seed, "play", index),
            )
            tasks = torch.arange(self.world.num_tasks)
            self.data.append(tasks, round_.candidates[tasks, actions], round_.rewards(actions))
        members = self.world.representation_class.members
        heads = torch.zeros_like(self.world.truth.heads)
        start = MultiheadFunction(members[0], heads)
        fit = Exhaustive(self.world.representation_class)
        self.center = fit(self.data, start, self.penalty, random_stream(seed, "fit"))

    def confidence_set(self, squared_radius: float, **changes: object) -> ConfidenceSet:
        options = {"ridge": self.penalty.ridge, "members": self.world.representation_class.members}
        return ConfidenceSet(self.center, self.data, squared_radius, **(options | changes))

    def menu(self, index: int = 1000) -> Menu:
        candidates = self.world.round(index).candidates
        available = torch.ones(candidates.shape[:2], dtype=torch.bool)
        return Menu(candidates, torch.arange(self.world.num_tasks), available)


@pytest.fixture
def finite_case() -> type[FiniteCase]:
    return FiniteCase

"""Environments from data files: mushroom, Jester as arms and as users, school."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gfucb.core.discrete_actions import with_actions
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound
from gfucb.environments.wheel_bandit import arm_interactions

from .arrays import JESTER, MUSHROOM, SCHOOL, find_file, jester_ratings, mushrooms, schools

NUM_JOKE_ARMS, NUM_JOKE_CONTEXT = 8, 32
EDIBLE, POISONOUS = 5.0, -35.0


class Mushroom:
    """Eat or not: +5 for edible mushrooms, +5 or -35 with probability 1/2 for poisonous ones.

    The protocol of Riquelme et al. (2018): 117 one-hot columns as context, arms "eat" and "leave";
    leaving has reward 0. Mushrooms are drawn with replacement.
    """

    num_tasks = 1
    discrete_actions = 2
    value_range = ((EDIBLE + POISONOUS) / 2, EDIBLE)

    def __init__(self, data_dir: str | Path | None, *, seed: int = 0) -> None:
        self.contexts, self.edible = mushrooms(find_file(data_dir, MUSHROOM))
        self.seed = seed

    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1: candidates [1, 2, 119]."""
        generator = random_stream(self.seed, "round", round_index)
        index = torch.randint(len(self.edible), (1,), generator=generator)
        is_harmed = torch.rand(1, generator=generator, dtype=torch.float64) < 0.5
        edible = self.edible[index]
        eaten = torch.where(edible | ~is_harmed, EDIBLE, POISONOUS).to(torch.float64)
        expected = torch.where(edible, EDIBLE, (EDIBLE + POISONOUS) / 2).to(torch.float64)
        zero = torch.zeros_like(eaten)
        return BanditRound(
            candidates=with_actions(self.contexts[index], 2),
            mean_rewards=torch.stack([expected, zero], 1),
            noise=torch.stack([eaten - expected, zero], 1),
            true_features=arm_interactions(torch.stack([edible, ~edible], 1), 2),
        )

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"actions": 2, "mushrooms": len(self.edible)}


class JesterArms:
    """Eight jokes as arms, 32 other ratings of the same user as context, users as rounds.

    The forty jokes with the most ratings, and the users that rated all of them, in random order.
    The reward is (rating + 10) / 20; it has no noise beyond the user.
    """

    num_tasks = 1
    discrete_actions = NUM_JOKE_ARMS
    value_range = (0.0, 1.0)

    def __init__(self, data_dir: str | Path | None, *, seed: int = 0) -> None:
        ratings = jester_ratings(find_file(data_dir, JESTER))
        counts = (~ratings.isnan()).sum(0)
        most_rated = counts.argsort(descending=True, stable=True)
        jokes = most_rated[: NUM_JOKE_ARMS + NUM_JOKE_CONTEXT].sort().values
        dense = ratings[:, jokes]
        dense = dense[~dense.isnan().any(1)]
        generator = random_stream(seed, "users")
        self.seed = seed
        self.ratings = dense[torch.randperm(len(dense), generator=generator)]

    @property
    def num_users(self) -> int:
        """How many users there are; round 1 + this is round 1 again."""
        return len(self.ratings)

    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1: candidates [1, 8, 40]."""
        user = self.ratings[(round_index - 1) % len(self.ratings)]
        context, jokes = user[:NUM_JOKE_CONTEXT] / 10, user[NUM_JOKE_CONTEXT:]
        means = ((jokes + 10) / 20)[None]
        return BanditRound(
            candidates=with_actions(context[None], NUM_JOKE_ARMS),
            mean_rewards=means,
            noise=torch.zeros(1, dtype=torch.float64),
            true_features=means[:, :, None],
        )

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"actions": NUM_JOKE_ARMS, "users": self.num_users}


class JesterUsers:
    """Users as tasks: in each round a user is offered ten jokes that it has not rated yet.

    Users are drawn from those that rated all 100 jokes. An input is the number of a joke, and the
    reward is (rating + 10) / 20. Round t has a random order of the jokes for each user, which
    derives from (seed, t); offered are the first ten that were not chosen before. The order does
    not depend on choices, so runs on one seed are paired.
    """

    value_range = (0.0, 1.0)
    discrete_actions = None

    def __init__(
        self, data_dir: str | Path | None, *, num_tasks: int, num_offered: int = 10, seed: int = 0
    ) -> None:
        ratings = jester_ratings(find_file(data_dir, JESTER))
        complete = ratings[~ratings.isnan().any(1)]
        order = torch.randperm(len(complete), generator=random_stream(seed, "users"))
        self.ratings = (complete[order[:num_tasks]] + 10) / 20  # [user, joke]
        self.num_tasks, self.num_items = self.ratings.shape
        self.num_offered, self.seed = num_offered, seed

    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1, if no joke was chosen before: joke numbers [user, joke]."""
        return self.round_after(round_index, torch.zeros(self.ratings.shape, dtype=torch.bool))

    def round_after(self, round_index: int, chosen: Tensor) -> BanditRound:
        """Round `round_index` after these jokes were chosen, [user, joke] of booleans."""
        generator = random_stream(self.seed, "round", round_index)
        draws = torch.rand(self.ratings.shape, generator=generator, dtype=torch.float64)
        jokes = (draws + chosen).argsort(1)[:, : self.num_offered]
        means = self.ratings.gather(1, jokes)
        return BanditRound(
            candidates=jokes,
            mean_rewards=means,
            noise=torch.zeros(self.num_tasks, dtype=torch.float64),
            true_features=means[:, :, None],
        )

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"actions": self.num_offered, "items": self.num_items}


class School:
    """Schools as tasks: which of ten pupils of the school has the best exam score?

    Pupils are drawn without replacement within a round. The reward is the score / 70.
    """

    value_range = (0.0, 1.0)
    discrete_actions = None

    def __init__(self, data_dir: str | Path | None, *, num_actions: int = 10, seed: int = 0):
        self.pupils, self.scores, schools_of = schools(find_file(data_dir, SCHOOL))
        self.num_tasks = int(schools_of.max()) + 1
        self.num_actions, self.seed = num_actions, seed
        counts = torch.bincount(schools_of)
        order = schools_of.argsort(stable=True)
        # [school, pupil], padded with -1.
        padded = torch.full((self.num_tasks, int(counts.max())), -1)
        for school, own in enumerate(order.split(counts.tolist())):
            padded[school, : len(own)] = own
        self.members = padded

    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1: candidates [school, pupil, 28]."""
        generator = random_stream(self.seed, "round", round_index)
        draws = torch.rand(self.members.shape, generator=generator, dtype=torch.float64)
        drawn = draws.masked_fill(self.members < 0, 2.0).argsort(1)[:, : self.num_actions]
        pupils = self.members.gather(1, drawn)
        means = self.scores[pupils]
        return BanditRound(
            candidates=self.pupils[pupils],
            mean_rewards=means,
            noise=torch.zeros(self.num_tasks, dtype=torch.float64),
            true_features=means[:, :, None],
        )

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"actions": self.num_actions, "pupils": len(self.scores)}

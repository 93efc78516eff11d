"""Regret of the default agent and of LinUCB, on one problem of each type that tables have."""

from collections.abc import Callable
from functools import cached_property

import pytest
import torch
from torch.nn.functional import one_hot

from gfucb import GFUCB, linucb
from gfucb.bandits.linear_baselines import LinearUCB
from gfucb.core.protocols import BanditAgent, BanditEnvironment
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound
from gfucb.environments import WheelBandit, linear_bandit

# Seeds from 2000 on are for tuning; reports use others.
SEEDS = (2000, 2001, 2002)
pytestmark = pytest.mark.slow


class IdenticalTasks:
    """Twenty tasks with the same linear rewards of eight candidates."""

    num_tasks = 20

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @cached_property
    def weights(self) -> torch.Tensor:
        return torch.randn(5, generator=random_stream(self.seed, "weights"), dtype=torch.float64)

    def round(self, round_index: int) -> BanditRound:
        draws = random_stream(self.seed, "round", round_index)
        inputs = torch.randn(self.num_tasks, 8, 5, generator=draws, dtype=torch.float64)
        noise = torch.randn(self.num_tasks, generator=draws, dtype=torch.float64)
        return BanditRound(inputs, inputs @ self.weights, 0.3 * noise, inputs)


class FixedArms:
    """Twenty tasks with ten arms, of which one has a higher mean by 0.2; the noise is 0.5."""

    num_tasks = 20

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def round(self, round_index: int) -> BanditRound:
        best = torch.randint(10, (self.num_tasks,), generator=random_stream(self.seed, "best"))
        draws = random_stream(self.seed, "round", round_index)
        arms = torch.eye(10, dtype=torch.float64).expand(self.num_tasks, -1, -1)
        noise = torch.randn(self.num_tasks, generator=draws, dtype=torch.float64)
        return BanditRound(arms, 0.2 * one_hot(best, 10).double(), 0.5 * noise, arms)


def regret(agent: BanditAgent, environment: BanditEnvironment, num_rounds: int) -> float:
    """The sum of expected regrets over rounds and tasks."""
    total = 0.0
    for index in range(1, num_rounds + 1):
        round_ = environment.round(index)
        decision = agent.decide(round_.candidates)
        agent.observe(decision, round_.rewards(decision.actions))
        total += float(round_.regrets(decision.actions).sum())
    return total


def ratio(make: Callable[[int], BanditEnvironment], num_rounds: int) -> float:
    """Regret of the default agent over that of the better of two LinUCB agents, all seeds."""
    num_tasks = make(SEEDS[0]).num_tasks
    alternatives = (lambda: linucb(num_tasks), lambda: linucb(num_tasks, alpha=1.0))
    best = min(sum(regret(agent(), make(s), num_rounds) for s in SEEDS) for agent in alternatives)
    return sum(regret(GFUCB(num_tasks, seed=s), make(s), num_rounds) for s in SEEDS) / best


def test_identical_tasks_have_less_regret_than_separate_linucb():
    assert ratio(IdenticalTasks, 12) < 0.7


def test_linear_rewards_have_about_the_regret_of_linucb():
    """The ratio is 1.1 with these seeds; regret hardly grows after 25 rounds."""
    assert ratio(lambda seed: linear_bandit(seed=seed), 50) < 1.5


def test_fixed_arms_have_about_the_regret_of_linucb():
    """The ratio is 1.0 with these seeds; that of random choices is 1.3."""
    assert ratio(FixedArms, 150) < 1.2


def test_rare_large_rewards_are_found_where_their_range_is_known():
    environment = WheelBandit([0.9], seed=SEEDS[0])
    default = GFUCB(1, seed=SEEDS[0], value_range=environment.value_range)
    disjoint = LinearUCB(1, num_arms=5, alpha=1.0)
    assert regret(default, environment, 400) < regret(disjoint, environment, 400)

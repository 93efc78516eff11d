"""Vowpal Wabbit: cb_explore_adf, with features of the task crossed with those of actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from vowpalwabbit import Workspace

from .problem import Floats, Integers, Offer, Problem

# Namespaces: Task, Context, Action.
CROSSINGS = {
    ("features", "shared"): "-q TA",
    ("features", "task"): "-q TA --ignore_linear A",
    ("arms", "shared"): "-q CA -q TA --interactions TCA",
    ("arms", "task"): "-q TA --interactions TCA --ignore_linear A",
    ("ids", "shared"): "",
    ("ids", "factors"): "--lrq TA5 --lrqdropout",
}


class VowpalWabbit:
    """One model for all tasks."""

    def __init__(self, problem: Problem, settings: dict[str, Any], seed: int) -> None:
        self.problem, self.draws = problem, np.random.default_rng(seed)
        crossing = CROSSINGS[problem.kind, settings["sharing"]]
        if problem.num_tasks == 1:
            crossing = "-q CA"
        words = f"--cb_explore_adf --cb_type mtr {settings['explore']} -l {settings['rate']} -b 20"
        self.model = Workspace(f"{words} {crossing} --quiet --random_seed {seed + 1}")
        self.probabilities: list[float] = []
        self.lines: list[list[str]] = []

    def choose(self, offer: Offer) -> Integers:
        """Actions drawn from the predicted distribution."""
        self.lines = [self._lines(offer, task) for task in range(self.problem.num_tasks)]
        actions, self.probabilities = [], []
        for own in self.lines:
            distribution = np.clip(self.model.predict(own), 0, None)
            distribution /= distribution.sum()
            action = int(self.draws.choice(len(distribution), p=distribution))
            actions.append(action)
            self.probabilities.append(float(distribution[action]))
        return np.array(actions)

    def learn(self, offer: Offer, actions: Integers, rewards: Floats) -> None:
        """Costs are 1 - reward: the package expects them in [0, 1]."""
        costs = 1 - rewards
        labels = zip(self.lines, actions, costs, self.probabilities, strict=True)
        for own, action, cost, probability in labels:
            chosen = list(own)
            chosen[1 + action] = f"0:{cost:.6f}:{probability:.6f} {chosen[1 + action]}"
            self.model.learn(chosen)

    def _lines(self, offer: Offer, task: int) -> list[str]:
        shared = f"shared |T t{task}"
        if offer.contexts is not None:
            shared += f" |C {_numbers(offer.contexts[task])}"
            return [shared, *(f"|A a{arm}" for arm in range(self.problem.num_actions))]
        if offer.items is not None:
            return [shared, *(f"|A i{item}" for item in offer.items[task])]
        assert offer.vectors is not None
        return [shared, *(f"|A {_numbers(vector)}" for vector in offer.vectors[task])]


def _numbers(vector: Floats) -> str:
    """The columns that are not 0, by number."""
    return " ".join(f"{index}:{vector[index]:.4g}" for index in np.flatnonzero(vector))


def make(problem: Problem, settings: dict[str, Any], seed: int) -> VowpalWabbit:
    """The player."""
    return VowpalWabbit(problem, settings, seed)

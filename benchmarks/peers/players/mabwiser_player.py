"""mabwiser: LinUCB or LinTS, one bandit for each task or one for all tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

from .problem import Floats, Integers, Offer, Problem, first_best, one_hot, with_intercept

ONE = "chosen"


class MABWiser:
    """Arms are mabwiser's arms. Vectors of actions are contexts of a bandit with one arm."""

    def __init__(self, problem: Problem, settings: dict[str, Any], seed: int) -> None:
        self.problem, self.pooled = problem, settings["sharing"] == "pooled"
        self.draws = np.random.default_rng(seed)
        policies = {"LinUCB": LearningPolicy.LinUCB, "LinTS": LearningPolicy.LinTS}
        policy = policies[settings["policy"]](
            alpha=settings["alpha"], l2_lambda=settings.get("l2", 1.0)
        )
        arms: list[Any] = [ONE]
        if problem.kind != "features":
            arms = list(
                range(problem.num_actions if problem.kind == "arms" else problem.num_columns)
            )
        count = 1 if self.pooled else problem.num_tasks
        self.bandits = [MAB(arms, policy, seed=seed + index) for index in range(count)]
        self.is_started = [False] * count

    def choose(self, offer: Offer) -> Integers:
        """The largest expectation, which contains the bonus or the random draw."""
        found = [self._choose(offer, task) for task in range(self.problem.num_tasks)]
        return np.array(found)

    def learn(self, offer: Offer, actions: Integers, rewards: Floats) -> None:
        """One update for each task; one for all tasks if they are pooled."""
        contexts = [self._contexts(offer, task) for task in range(len(actions))]
        arms = [self._arm(offer, task, int(a)) for task, a in enumerate(actions)]
        rows = [c[a] if len(c) > 1 else c[0] for c, a in zip(contexts, actions, strict=True)]
        if self.pooled:
            self._fit(0, arms, rewards, np.array(rows))
            return
        for task, (arm, reward, row) in enumerate(zip(arms, rewards, rows, strict=True)):
            self._fit(task, [arm], np.array([reward]), row[None])

    def _fit(self, index: int, arms: list[Any], rewards: Floats, contexts: Floats) -> None:
        self.bandits[index].partial_fit(arms, rewards, contexts)
        self.is_started[index] = True

    def _choose(self, offer: Offer, task: int) -> int:
        index = 0 if self.pooled else task
        if not self.is_started[index]:
            return int(self.draws.integers(self.problem.num_actions))
        found = self.bandits[index].predict_expectations(self._contexts(offer, task))
        if self.problem.kind == "features":
            values = np.array([own[ONE] for own in found])
        elif offer.items is not None:
            values = np.array([found[int(item)] for item in offer.items[task]])
        else:
            values = np.array([found[arm] for arm in range(self.problem.num_actions)])
        return first_best(values, self.draws)

    def _arm(self, offer: Offer, task: int, action: int) -> Any:
        if self.problem.kind == "features":
            return ONE
        return action if offer.items is None else int(offer.items[task, action])

    def _contexts(self, offer: Offer, task: int) -> Floats:
        """One context for each action, [action, column], or one for all of them, [1, column]."""
        if offer.vectors is not None:
            own = offer.vectors[task]
        elif offer.contexts is not None:
            own = offer.contexts[task][None]
        else:
            return np.ones((1, 1))
        if self.pooled:
            task_columns = one_hot(np.full(len(own), task), self.problem.num_tasks)
            return np.concatenate([own, task_columns], 1)
        return with_intercept(own)


def make(problem: Problem, settings: dict[str, Any], seed: int) -> MABWiser:
    """The player."""
    return MABWiser(problem, settings, seed)

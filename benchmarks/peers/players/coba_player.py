"""coba: its LinUCB learner, one for each task or one for all tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from coba.learners import LinUCBLearner

from .problem import Floats, Integers, Offer, Problem, one_hot


class Coba:
    """Contexts and actions as coba passes them to its learners."""

    def __init__(self, problem: Problem, settings: dict[str, Any], seed: int) -> None:
        self.problem, self.pooled = problem, settings["sharing"] == "pooled"
        features = [1, "a", "ax"] if problem.kind == "arms" else [1, "a"]
        count = 1 if self.pooled else problem.num_tasks
        self.learners = [
            LinUCBLearner(alpha=settings["alpha"], features=features, seed=seed + index)
            for index in range(count)
        ]
        self.arms = [tuple(row) for row in np.eye(problem.num_actions)]

    def choose(self, offer: Offer) -> Integers:
        """The predicted actions."""
        found = []
        for task in range(self.problem.num_tasks):
            actions = self._actions(offer, task)
            action, _ = self._learner(task).predict(self._context(offer, task), actions)
            found.append(actions.index(action))
        return np.array(found)

    def learn(self, offer: Offer, actions: Integers, rewards: Floats) -> None:
        """One update for each task."""
        for task, (action, reward) in enumerate(zip(actions, rewards, strict=True)):
            own = self._actions(offer, task)[int(action)]
            self._learner(task).learn(self._context(offer, task), own, float(reward), 1.0)

    def _learner(self, task: int) -> LinUCBLearner:
        return self.learners[0 if self.pooled else task]

    def _actions(self, offer: Offer, task: int) -> list[tuple[float, ...]]:
        if offer.vectors is not None:
            return [tuple(row) for row in offer.vectors[task]]
        if offer.items is not None:
            return [tuple(row) for row in one_hot(offer.items[task], self.problem.num_columns)]
        return self.arms

    def _context(self, offer: Offer, task: int) -> list[float] | None:
        own = [] if offer.contexts is None else list(offer.contexts[task])
        if self.pooled and self.problem.kind == "arms":
            own += list(one_hot(task, self.problem.num_tasks))
        return own or None


def make(problem: Problem, settings: dict[str, Any], seed: int) -> Coba:
    """The player."""
    return Coba(problem, settings, seed)

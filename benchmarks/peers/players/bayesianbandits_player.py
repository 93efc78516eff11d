"""bayesianbandits: Thompson sampling with a Bayesian linear model, for each task or for all."""

from __future__ import annotations

from typing import Any

import numpy as np
from bayesianbandits import NormalRegressor

from .problem import (
    Floats,
    Integers,
    Offer,
    Problem,
    action_vectors,
    first_best,
    one_hot,
    with_intercept,
)


class BayesianBandits:
    """The learner of a `LipschitzContextualAgent`, with a vector for each action."""

    def __init__(self, problem: Problem, settings: dict[str, Any], seed: int) -> None:
        self.problem, self.pooled = problem, settings["sharing"] == "pooled"
        self.draws = np.random.default_rng(seed)
        count = 1 if self.pooled else problem.num_tasks
        self.learners = [
            NormalRegressor(
                alpha=settings["alpha"], beta=settings["beta"], random_state=seed * 1000 + index
            )
            for index in range(count)
        ]

    def choose(self, offer: Offer) -> Integers:
        """The action with the largest value under a draw of the weights."""
        vectors = self._vectors(offer)
        found = []
        for task, own in enumerate(vectors):
            sampled = np.asarray(self._learner(task).sample(own, size=1)).reshape(-1)
            found.append(first_best(sampled, self.draws))
        return np.array(found)

    def learn(self, offer: Offer, actions: Integers, rewards: Floats) -> None:
        """One update for each task; one for all tasks if they are pooled."""
        chosen = self._vectors(offer)[np.arange(len(actions)), actions]
        if self.pooled:
            self.learners[0].partial_fit(chosen, rewards)
            return
        for task, (vector, reward) in enumerate(zip(chosen, rewards, strict=True)):
            self.learners[task].partial_fit(vector[None], np.array([reward]))

    def _learner(self, task: int) -> NormalRegressor:
        return self.learners[0 if self.pooled else task]

    def _vectors(self, offer: Offer) -> Floats:
        vectors = action_vectors(self.problem, offer)
        if not self.pooled or self.problem.num_tasks == 1:
            return with_intercept(vectors)
        count, actions = vectors.shape[:2]
        tasks = np.repeat(one_hot(np.arange(count), count)[:, None], actions, 1)
        return np.concatenate([vectors, tasks], 2)


def make(problem: Problem, settings: dict[str, Any], seed: int) -> BayesianBandits:
    """The player."""
    return BayesianBandits(problem, settings, seed)

"""Problems as files of arrays, so that all packages see the same contexts and noise.

Three kinds: "features" (a vector describes each action), "arms" (a context and a fixed list of
actions) and "ids" (actions are items without features, and an item is offered to a task until the
task has chosen it). Rewards are scaled: the stated range of the rewards becomes 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Offer:
    """What the tasks can choose from in one round.

    Attributes:
        contexts: [task, column]; of arms only.
        vectors: [task, action, column]; of features only.
        items: [task, action]; of ids only.
    """

    contexts: Floats | None = None
    vectors: Floats | None = None
    items: Integers | None = None


class Player(Protocol):
    """An algorithm of a package."""

    def choose(self, offer: Offer) -> Integers:
        """Return an action for each task."""

    def learn(self, offer: Offer, actions: Integers, rewards: Floats) -> None:
        """Learn from the rewards [task] of the actions [task]."""


class Problem:
    """A problem that is played once."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files}
        self.kind = str(arrays["kind"])
        self.input_shape = tuple(int(size) for size in arrays["input_shape"])
        low, high = arrays["value_range"]
        self.low, self.length = float(low), float(high - low)
        self._arrays = arrays
        self._noise = arrays["noise"]  # [round, task]
        self.num_rounds, self.num_tasks = self._noise.shape
        self.num_actions = int(arrays["num_actions"])
        self.num_columns = int(np.prod(self.input_shape))  # of a vector, a context or a one-hot id
        self._chosen = np.zeros((self.num_tasks, self.num_columns), dtype=bool)

    def offer(self, round_index: int) -> Offer:
        """What is offered in a round, from 0; of ids, after the choices so far."""
        arrays = self._arrays
        if self.kind == "arms":
            return Offer(contexts=arrays["contexts"][round_index])
        if self.kind == "features":
            return Offer(vectors=arrays["inputs"][arrays["candidates"][round_index]])
        order = arrays["orders"][round_index].astype(np.int64)  # [task, item]
        is_chosen = np.take_along_axis(self._chosen, order, 1)
        first = np.argsort(is_chosen, axis=1, kind="stable")[:, : self.num_actions]
        return Offer(items=np.take_along_axis(order, first, 1))

    def play(self, round_index: int, offer: Offer, actions: Integers) -> tuple[Floats, Floats]:
        """Scaled rewards [task] and regrets [task] of actions [task]."""
        tasks = np.arange(self.num_tasks)
        if offer.items is None:
            means = self._arrays["means"][round_index]
        else:
            means = np.take_along_axis(self._arrays["ratings"], offer.items, 1)
            self._chosen[tasks, offer.items[tasks, actions]] = True
        chosen = means[tasks, actions]
        rewards = (chosen + self._noise[round_index] - self.low) / self.length
        return rewards, means.max(1) - chosen


def one_hot(numbers: Any, size: int) -> Floats:
    """One-hot vectors [..., size] of numbers [...]."""
    return np.eye(size)[np.asarray(numbers)]


def action_vectors(problem: Problem, offer: Offer) -> Floats:
    """A vector for each action, [task, action, column], for packages that need one.

    Ids become one-hot vectors. A context and an arm become their product, so that a linear model
    has weights of its own for each arm.
    """
    if offer.vectors is not None:
        return offer.vectors
    if offer.items is not None:
        return one_hot(offer.items, problem.num_columns)
    assert offer.contexts is not None
    contexts = with_intercept(offer.contexts)
    arms = np.eye(problem.num_actions)
    return np.einsum("tc,ab->tabc", contexts, arms).reshape(len(contexts), len(arms), -1)


def with_intercept(vectors: Floats) -> Floats:
    """The vectors [..., column] with a column of ones at the end."""
    return np.concatenate([vectors, np.ones((*vectors.shape[:-1], 1))], -1)


def first_best(values: Floats, draws: np.random.Generator) -> int:
    """The index of the largest value, at random among equal ones."""
    best = np.flatnonzero(values == values.max())
    return int(best[draws.integers(len(best))])

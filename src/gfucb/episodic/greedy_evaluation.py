"""Evaluation of greedy policies by episodes that the agent does not learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gfucb.core.episode_batch import EpisodeBatch
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Episode, EpisodicAgent, EpisodicEnvironment
from gfucb.core.validation.settings import validate_count, validate_seed
from gfucb.episodic.greedy_policy import Policy, greedy_policy

# Evaluation episodes are numbered from here, so that no agent has learned from them.
FIRST_EVALUATION_EPISODE = 2**40
LARGEST_EVALUATION = 2**20


@runtime_checkable
class _HasGoal(Protocol):
    reached_goal: NDArray[np.bool_]  # [task]


@dataclass(frozen=True, eq=False)
class GreedyEvaluation:
    """The results of evaluation episodes.

    Attributes:
        returns: the sum of rewards, [episode, task].
        successes: whether the goal was reached, [episode, task]; None for an environment without
            goals.
    """

    returns: NDArray[np.float64]
    successes: NDArray[np.bool_] | None

    @property
    def mean_return(self) -> float:
        """The mean over episodes and tasks."""
        return float(self.returns.mean())

    @property
    def success_rate(self) -> float:
        """The share of successful episodes, over all tasks."""
        return float(self._require_successes().mean())

    @property
    def perfect_tasks(self) -> NDArray[np.bool_]:
        """The tasks in which every episode succeeded, [task]."""
        return np.asarray(self._require_successes().all(axis=0))

    def _require_successes(self) -> NDArray[np.bool_]:
        if self.successes is None:
            raise InvalidInputError(
                "this environment states no goals; pass successful_return= to evaluate_greedy"
            )
        return self.successes


def evaluate_greedy(
    agent: EpisodicAgent,
    environment: EpisodicEnvironment,
    *,
    episodes: int = 20,
    seed: int = 0,
    successful_return: float | None = None,
) -> GreedyEvaluation:
    """Play the greedy policy of an agent in episodes of all tasks; the agent does not change.

    >>> from gfucb.environments import tabular_lock
    >>> from gfucb.episodic import LSVIUCB
    >>> environment = tabular_lock(horizon=3, num_tasks=2)
    >>> agent = LSVIUCB(num_tasks=2, horizon=3)
    >>> agent.plan(environment.episode(1).offered()[1])
    >>> evaluate_greedy(agent, environment, episodes=20).returns.shape
    (20, 2)

    All episodes run at once, with one call of the policy in each stage. They are never
    those of training: their indices start at 2^40.

    Args:
        agent: an agent that has planned.
        environment: the environment.
        episodes: episodes of each task.
        seed: evaluations with different seeds play different episodes.
        successful_return: an episode succeeds if its sum of rewards is at least this. By default
            the `reached_goal` of its episodes counts, where they have it.
    """
    count = validate_count(episodes, "episodes")
    if count > LARGEST_EVALUATION:
        raise InvalidInputError(f"episodes must be at most {LARGEST_EVALUATION}, got {count}")
    first = FIRST_EVALUATION_EPISODE + validate_seed(seed) * LARGEST_EVALUATION
    policy = greedy_policy(agent)
    size = count if getattr(environment, "concurrent_episodes", True) else 1
    parts = [
        _play(policy, environment, range(first + done, first + min(done + size, count)))
        for done in range(0, count, size)
    ]
    returns = np.concatenate([part.returns for part in parts])
    if successful_return is not None:
        return GreedyEvaluation(returns, returns >= successful_return - 1e-9)
    found = [part.successes for part in parts if part.successes is not None]
    return GreedyEvaluation(returns, np.concatenate(found) if found else None)


def _play(
    policy: Policy, environment: EpisodicEnvironment, indices: Sequence[int]
) -> GreedyEvaluation:
    batch = EpisodeBatch([environment.episode(index) for index in indices])
    returns = np.zeros((len(indices), environment.num_tasks))
    for stage in range(environment.horizon):
        tasks, candidates = batch.offered()
        if not len(tasks):
            break
        rows = (batch.owners.numpy(), tasks.numpy())
        returns[rows] += batch.play(policy(stage, candidates, tasks)).rewards.numpy()
    return GreedyEvaluation(returns, _successes(environment, batch.episodes))


def _successes(
    environment: EpisodicEnvironment, episodes: Sequence[Episode]
) -> NDArray[np.bool_] | None:
    if getattr(environment, "goal", True) is None:  # finite MDPs without a goal
        return None
    goals = [episode.reached_goal for episode in episodes if isinstance(episode, _HasGoal)]
    return np.stack(goals) if len(goals) == len(episodes) else None


class SolvedCriterion:
    """A task is solved by several perfect evaluations in a row.

    >>> criterion = SolvedCriterion(num_tasks=1, in_a_row=2)
    >>> for episode, success in [(10, True), (20, False), (30, True), (40, True)]:
    ...     criterion.add(episode, GreedyEvaluation(np.ones((1, 1)), np.array([[success]])))
    >>> criterion.solved_after.tolist()
    [40.0]

    Args:
        num_tasks: M.
        in_a_row: so many evaluations, in each of which every episode of the task succeeds.

    Attributes:
        solved_after: the number of training episodes at the last of these evaluations, [task];
            infinity for tasks that are not solved.
    """

    def __init__(self, num_tasks: int, in_a_row: int = 5) -> None:
        self.in_a_row = validate_count(in_a_row, "in_a_row")
        self.solved_after = np.full(validate_count(num_tasks, "num_tasks"), np.inf)
        self._perfect = np.zeros(num_tasks, dtype=np.int64)

    @property
    def is_solved(self) -> bool:
        """Whether all tasks are solved."""
        return bool(np.isfinite(self.solved_after).all())

    def add(self, num_episodes: int, evaluation: GreedyEvaluation) -> None:
        """Count an evaluation after so many training episodes of each task."""
        perfect = evaluation.perfect_tasks
        if perfect.shape != self._perfect.shape:
            raise InvalidInputError(
                f"the evaluation has {len(perfect)} tasks, expected {len(self._perfect)}"
            )
        self._perfect = np.where(perfect, self._perfect + 1, 0)
        first_time = (self._perfect >= self.in_a_row) & np.isinf(self.solved_after)
        self.solved_after[first_time] = num_episodes

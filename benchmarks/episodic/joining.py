"""A task that joins an agent which has solved other tasks with the same emission."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gfucb.core.protocols import EpisodicEnvironment
from gfucb.core.records import Decision
from gfucb.core.validation.arrays import ArrayLike
from gfucb.environments import RichObservationMDPs, combination_lock
from gfucb.episodic import EpisodicGFUCB
from gfucb.episodic.greedy_policy import Policy, greedy_policy

from .solving import Budget, solve

FOUNDERS = 5
# Seeds of the codes of the tasks that were there before.
FOUNDER_SEED = 500_000


class JoiningTask(EpisodicGFUCB):
    """One task of an agent, as an agent for this task alone.

    Args:
        agent: the agent, which learns from what this one observes.
        task: its number of the task; for the environment it is 0.
    """

    def __init__(self, agent: EpisodicGFUCB, task: int) -> None:
        self.num_tasks, self.horizon, self.learner = 1, agent.horizon, agent.learner
        self._agent, self._task = agent, task

    def plan(self, candidates: ArrayLike, tasks: ArrayLike | None = None) -> None:
        """Prepare an episode."""
        super().plan(candidates, self._tasks(candidates))

    def decide(self, stage: int, candidates: ArrayLike, tasks: ArrayLike | None = None) -> Decision:
        """Choose actions."""
        return super().decide(stage, candidates, self._tasks(candidates))

    def greedy_policy(self) -> Policy:
        """That of the agent for its task."""
        policy = greedy_policy(self._agent)
        return lambda stage, candidates, tasks: policy(stage, candidates, self._tasks(candidates))

    def _tasks(self, candidates: ArrayLike) -> Tensor:
        return torch.full((len(np.asarray(candidates)),), self._task)


def after_founders(environment: EpisodicEnvironment, seed: int) -> JoiningTask:
    """The default agent after it has solved five locks with other codes and this emission."""
    assert isinstance(environment, RichObservationMDPs)
    emission = environment.emission
    founders = combination_lock(
        environment.horizon,
        environment.num_actions,
        num_tasks=FOUNDERS,
        emission=emission.mixing,
        noise_scale=emission.noise_scale,
        seed=FOUNDER_SEED + seed,
        emission_seed=emission.seed,
    )
    agent = EpisodicGFUCB(FOUNDERS + 1, environment.horizon, seed=seed)
    solve(agent, founders, Budget(100 * environment.horizon))
    return JoiningTask(agent, FOUNDERS)

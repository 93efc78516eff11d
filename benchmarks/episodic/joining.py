"""A task that joins an agent which has solved other tasks with the same emission."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gfucb.core.protocols import EpisodicEnvironment
from gfucb.core.records import Decision, Row
from gfucb.core.validation.arrays import ArrayLike
from gfucb.environments import RichObservationMDPs, combination_lock
from gfucb.episodic import EpisodicGFUCB
from gfucb.episodic.greedy_policy import Policy, greedy_policy

from .solving import Budget, solve

FOUNDERS = 5
# Seeds of the codes of the tasks that were there before.
FOUNDER_SEED = 500_000


@dataclass(frozen=True)
class JoiningTask:
    """One task of an agent, as an agent for this task alone.

    Attributes:
        agent: the agent.
        task: its number of the task; for the environment it is 0.
    """

    agent: EpisodicGFUCB
    task: int
    num_tasks: int = 1

    @property
    def horizon(self) -> int:
        """H."""
        return self.agent.horizon

    @property
    def plan_index(self) -> int:
        """The number of plans of the agent."""
        return self.agent.plan_index

    @property
    def is_markov(self) -> bool:
        """As the agent."""
        return self.agent.is_markov

    def diagnostics(self) -> Row:
        """Those of the agent."""
        return self.agent.diagnostics()

    def settings(self) -> dict[str, str]:
        """Those of the agent."""
        return self.agent.settings()

    def state(self) -> dict[str, Tensor]:
        """That of the agent."""
        return self.agent.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from a state of the agent."""
        self.agent.load_state(state)

    def plan(self, candidates: ArrayLike, tasks: ArrayLike | None = None) -> None:
        """Prepare an episode."""
        self.agent.plan(candidates, self._tasks(candidates))

    def decide(self, stage: int, candidates: ArrayLike, tasks: ArrayLike | None = None) -> Decision:
        """Choose actions."""
        return self.agent.decide(stage, candidates, self._tasks(candidates))

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: ArrayLike,
        next_candidates: ArrayLike | None = None,
        ended: ArrayLike | None = None,
    ) -> None:
        """Learn."""
        self.agent.observe(stage, decision, rewards, next_candidates, ended)

    def greedy_policy(self) -> Policy:
        """That of the agent for its task."""
        policy = greedy_policy(self.agent)
        return lambda stage, candidates, tasks: policy(stage, candidates, self._tasks(candidates))

    def _tasks(self, candidates: ArrayLike) -> Tensor:
        return torch.full((len(np.asarray(candidates)),), self.task)


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

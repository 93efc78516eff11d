"""Exact values of the policies an episodic agent follows in finite MDPs."""

from __future__ import annotations

from dataclasses import replace
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import EpisodicAgent, EpisodicEnvironment
from gfucb.core.records import Decision
from gfucb.environments import RichObservationMDPs, TabularEpisode, TabularMDPs

# An optimistic value this far below the optimal value counts as a violation.
TOLERANCE = 1e-9


@overload
def with_true_features(environment: TabularMDPs) -> TabularMDPs: ...


@overload
def with_true_features(environment: EpisodicEnvironment) -> EpisodicEnvironment: ...


def with_true_features(environment: EpisodicEnvironment) -> EpisodicEnvironment:
    """The same environment with the true features as inputs, for oracle agents."""
    if isinstance(environment, RichObservationMDPs):
        return environment.with_true_features()
    if not isinstance(environment, TabularMDPs) or environment.true_features is None:
        raise InvalidInputError(
            "this environment has no true features, so an oracle agent cannot run in it; "
            "use a linear MDP or a lock"
        )
    return replace(environment, inputs=environment.true_features)


class PolicyEvaluator:
    """Plays episodes in finite MDPs and computes the value of the agent's policy.

    The policy of a Markov agent is tabulated once for each plan: an action for every task, stage
    and state. Its value is computed exactly from the table, and decisions are looked up in the
    table until the agent plans again. For other agents the regret of an episode is the sum of
    V* - Q* along it, which has the same expectation.

    Attributes:
        reached_goal: which tasks reached the goal in the last episode, [task].
    """

    def __init__(self, agent: EpisodicAgent, environment: TabularMDPs) -> None:
        self.agent, self.environment = agent, environment
        self.reached_goal = np.zeros(environment.num_tasks, dtype=bool)
        self._plan_index = -1
        self._policy: NDArray[np.int64] = np.zeros(0, dtype=np.int64)  # [task, stage, state]
        self._values = np.zeros(0)  # [task, state], at the first stage
        self._optimistic_values = np.zeros(0)  # [task, state], at the first stage
        self._tasks = np.arange(environment.num_tasks)
        self._task_tensor = torch.arange(environment.num_tasks)
        # All states of task 0, then all states of task 1, and so on: [task * state, ...].
        self._all_candidates = environment.inputs.repeat(
            environment.num_tasks, *[1] * (environment.inputs.ndim - 1)
        )
        self._all_tasks = self._task_tensor.repeat_interleave(environment.num_states)
        self._pairs = environment.inputs.flatten(0, 1).numpy()  # [state * action, *input]

    def play(self, episode_index: int) -> dict[str, float | int]:
        """Play one episode; return its columns of the row, means over the tasks."""
        episode = self.environment.episode(episode_index)
        tasks, candidates = episode.offered()
        self.agent.plan(candidates, tasks)
        first = (self._tasks, episode.first_states)
        optimal = self.environment.optimal_values[:, 0][first]
        if self.agent.is_markov:
            self._tabulate_policy()
            optimistic_values = self._optimistic_values[first]
            rewards = self._play_tabulated(episode)
            regret = optimal - self._values[first]
        else:
            rewards, optimistic_values = self._play_decided(episode)
            regret = episode.gaps
        self.reached_goal = episode.reached_goal
        return {
            "reward": float(rewards.mean()),
            "regret": float(regret.mean()),
            "optimism_violations": float((optimistic_values < optimal - TOLERANCE).mean()),
            "goals": float(episode.reached_goal.mean()),
        }

    def _tabulate_policy(self) -> None:
        if self._plan_index == self.agent.plan_index:
            return
        environment = self.environment
        shape = (environment.num_tasks, environment.num_states)
        table = []
        for stage in range(environment.horizon):
            decision = self.agent.decide(stage, self._all_candidates, self._all_tasks)
            table.append(decision.actions.reshape(shape).numpy())
            if stage == 0:
                self._optimistic_values = decision.optimistic_values.reshape(shape).numpy()
        self._policy = np.stack(table, axis=1)
        self._values = environment.policy_values(self._policy)
        self._plan_index = self.agent.plan_index

    def _play_tabulated(self, episode: TabularEpisode) -> NDArray[np.float64]:
        """Follow the table through an episode; the sum of rewards, [task]."""
        rewards = np.zeros(self.environment.num_tasks)
        no_values = torch.zeros(self.environment.num_tasks, dtype=torch.float64)
        for stage in range(self.environment.horizon):
            states = episode.states
            actions = self._policy[self._tasks, stage, states]
            inputs = torch.from_numpy(self._pairs[states * self.environment.num_actions + actions])
            decision = Decision(self._task_tensor, torch.from_numpy(actions), inputs, no_values)
            rewards += self._step(episode, stage, decision)
        return rewards

    def _play_decided(
        self, episode: TabularEpisode
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Decide at every stage; the sum of rewards and the first optimistic values, [task]."""
        rewards = np.zeros(self.environment.num_tasks)
        optimistic_values = np.zeros(self.environment.num_tasks)
        for stage in range(self.environment.horizon):
            tasks, candidates = episode.offered()
            decision = self.agent.decide(stage, candidates, tasks)
            if stage == 0:
                optimistic_values = decision.optimistic_values.numpy()
            rewards += self._step(episode, stage, decision)
        return rewards, optimistic_values

    def _step(self, episode: TabularEpisode, stage: int, decision: Decision) -> NDArray[np.float64]:
        outcome = episode.play(decision.actions)
        self.agent.observe(stage, decision, outcome.rewards, outcome.next_candidates, outcome.ended)
        return np.asarray(outcome.rewards.numpy())

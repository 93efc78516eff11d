"""The loop over episodes: a generator of rows, one an episode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Episode, EpisodicAgent, EpisodicEnvironment
from gfucb.core.records import Decision, Row
from gfucb.environments import TabularEpisode, TabularMDPs

# An optimistic value this far below the optimal one is counted as a violation.
ROUNDING = 1e-9


def play_episodes(
    agent: EpisodicAgent,
    environment: EpisodicEnvironment,
    *,
    num_episodes: int,
    reads_truth: bool = False,
    episodes_done: int = 0,
    cumulative_regret: float = 0.0,
) -> Iterator[Row]:
    """Play episodes `episodes_done` + 1 .. `num_episodes` and yield a row after each.

    Rewards and regrets are means over the tasks. In a finite environment the regret is exact: V* - V of
    the policy played, from the first state. Where actions depend on more than their own state, it
    is the sum of V* - Q* along the episode, whose expectation is the same. Without optimal values
    there is only the return.
    """
    if isinstance(environment, TabularMDPs):
        seen = true_environment(environment) if reads_truth else environment
        evaluator = PolicyEvaluator(agent, seen)
        for index in range(episodes_done + 1, num_episodes + 1):
            row = evaluator.play(index)
            cumulative_regret += float(row["regret"])
            yield {"round": index, **row, "cumulative_regret": cumulative_regret} | dict(
                agent.diagnostics()
            )
        return
    for index in range(episodes_done + 1, num_episodes + 1):
        returns = play_episode(
            agent, environment.episode(index), environment.horizon, environment.num_tasks
        )
        yield {"round": index, "reward": float(returns.mean()), **agent.diagnostics()}


def play_episode(
    agent: EpisodicAgent, episode: Episode, horizon: int, num_tasks: int
) -> NDArray[np.float64]:
    """Plan, then decide and learn stage by stage; return the sum of rewards, [task]."""
    returns = np.zeros(num_tasks)
    tasks, candidates = episode.offered()
    agent.plan(candidates, tasks)
    for stage in range(horizon):
        tasks, candidates = episode.offered()
        if not len(tasks):
            break
        decision = agent.decide(stage, candidates, tasks)
        outcome = episode.play(decision.actions)
        agent.observe(stage, decision, outcome.rewards, outcome.next_candidates, outcome.ended)
        returns[tasks.numpy()] += outcome.rewards.numpy()
    return returns


def true_environment(environment: TabularMDPs) -> TabularMDPs:
    """The same environment, with the true features in place of the inputs."""
    if environment.true_features is None:
        raise InvalidInputError("this environment has no true features to show to an oracle")
    return replace(environment, inputs=environment.true_features)


class PolicyEvaluator:
    """Plays an agent in a finite environment and knows what its policies are worth.

    `reached_goal` says which tasks reached the goal in the last episode, [task].

    The policy of a Markov agent is written down once a plan, for all tasks, stages and states,
    and its value computed exactly; until the next plan a decision is a look into that table.
    """

    def __init__(self, agent: EpisodicAgent, environment: TabularMDPs) -> None:
        self.agent, self.environment = agent, environment
        self.reached_goal = np.zeros(environment.num_tasks, dtype=bool)
        self._plan_index = -1
        self._policy: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._optimistic_values = np.zeros(0)
        self._values = np.zeros(0)
        self._tasks = np.arange(environment.num_tasks)
        self._task_tensor = torch.arange(environment.num_tasks)
        self._everywhere = environment.inputs.repeat(
            environment.num_tasks, *[1] * (environment.inputs.ndim - 1)
        )
        self._everyone = self._task_tensor.repeat_interleave(environment.num_states)
        self._pairs = environment.inputs.flatten(0, 1).numpy()  # [state * action, *input]

    def play(self, index: int) -> dict[str, float | int]:
        """Play one episode; return what happened, as means over the tasks."""
        episode = self.environment.episode(index)
        tasks, candidates = episode.offered()
        self.agent.plan(candidates, tasks)
        first = (self._tasks, episode.first_states)
        optimal = self.environment.optimal_values[:, 0][first]
        if self.agent.is_markov:
            self._write_down()
            optimistic_values = self._optimistic_values[first]
            rewards = self._follow_the_table(episode)
            regret = optimal - self._values[first]
        else:
            rewards, optimistic_values = self._ask_every_time(episode)
            regret = episode.gaps
        self.reached_goal = episode.reached_goal
        return {
            "reward": float(rewards.mean()),
            "regret": float(regret.mean()),
            "optimism_violations": float((optimistic_values < optimal - ROUNDING).mean()),
            "goals": float(episode.reached_goal.mean()),
        }

    def _write_down(self) -> None:
        if self._plan_index == self.agent.plan_index:
            return
        environment = self.environment
        shape = (environment.num_tasks, environment.num_states)
        table = []
        for stage in range(environment.horizon):
            decision = self.agent.decide(stage, self._everywhere, self._everyone)
            table.append(decision.actions.reshape(shape).numpy())
            if stage == 0:
                self._optimistic_values = decision.optimistic_values.reshape(shape).numpy()
        self._policy = np.stack(table, axis=1)
        self._values = environment.policy_values(self._policy)
        self._plan_index = self.agent.plan_index

    def _follow_the_table(self, episode: TabularEpisode) -> NDArray[np.float64]:
        rewards = np.zeros(self.environment.num_tasks)
        nothing = torch.zeros(self.environment.num_tasks, dtype=torch.float64)
        for stage in range(self.environment.horizon):
            states = episode.states
            actions = self._policy[self._tasks, stage, states]
            inputs = torch.from_numpy(self._pairs[states * self.environment.num_actions + actions])
            decision = Decision(self._task_tensor, torch.from_numpy(actions), inputs, nothing)
            rewards += self._step(episode, stage, decision)
        return rewards

    def _ask_every_time(
        self, episode: TabularEpisode
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rewards, optimistic_values = (
            np.zeros(self.environment.num_tasks),
            np.zeros(self.environment.num_tasks),
        )
        for stage in range(self.environment.horizon):
            tasks, candidates = episode.offered()
            decision = self.agent.decide(stage, candidates, tasks)
            if stage == 0:
                optimistic_values = decision.optimistic_values.numpy()
            rewards += self._step(episode, stage, decision)
        return rewards, optimistic_values

    def _step(self, episode: TabularEpisode, stage: int, decision: Decision) -> NDArray[np.float64]:
        outcome = episode.play(decision.actions)
        following: Tensor = outcome.next_candidates
        self.agent.observe(stage, decision, outcome.rewards, following, outcome.ended)
        return np.asarray(outcome.rewards.numpy())

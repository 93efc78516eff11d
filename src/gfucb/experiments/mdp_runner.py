"""The loop over episodes: a generator of rows, one an episode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.contracts import Decision, Episode, EpisodicAgent, EpisodicEnvironment, Row
from gfucb.environments import TabularEpisode, TabularMDPs
from gfucb.errors import InvalidInputError

# An optimistic value this far below the optimal one is counted as a violation.
ROUNDING = 1e-9


def play_episodes(
    agent: EpisodicAgent,
    world: EpisodicEnvironment,
    *,
    num_episodes: int,
    reads_truth: bool = False,
    episodes_done: int = 0,
    cumulative_regret: float = 0.0,
) -> Iterator[Row]:
    """Play episodes `episodes_done` + 1 .. `num_episodes` and yield a row after each.

    Rewards and regrets are means over the tasks. In a finite world the regret is exact: V* - V of
    the policy played, from the first state. Where actions depend on more than their own state, it
    is the sum of V* - Q* along the episode, whose expectation is the same. Without optimal values
    there is only the return.
    """
    if isinstance(world, TabularMDPs):
        seen = true_world(world) if reads_truth else world
        referee = Referee(agent, seen)
        for index in range(episodes_done + 1, num_episodes + 1):
            row = referee.play(index)
            cumulative_regret += float(row["regret"])
            yield {"round": index, **row, "cumulative_regret": cumulative_regret} | dict(
                agent.diagnostics()
            )
        return
    for index in range(episodes_done + 1, num_episodes + 1):
        returns = play_episode(agent, world.episode(index), world.horizon, world.num_tasks)
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


def true_world(world: TabularMDPs) -> TabularMDPs:
    """The same world, with the true features in place of the inputs."""
    if world.true_features is None:
        raise InvalidInputError("this world has no true features to show to an oracle")
    return replace(world, inputs=world.true_features)


class Referee:
    """Plays an agent in a finite world and knows what its policies are worth.

    `reached_goal` says which tasks reached the goal in the last episode, [task].

    The policy of a Markov agent is written down once a plan, for all tasks, stages and states,
    and its value computed exactly; until the next plan a decision is a look into that table.
    """

    def __init__(self, agent: EpisodicAgent, world: TabularMDPs) -> None:
        self.agent, self.world = agent, world
        self.reached_goal = np.zeros(world.num_tasks, dtype=bool)
        self._plan_index = -1
        self._policy: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._hopes = np.zeros(0)
        self._values = np.zeros(0)
        self._tasks = np.arange(world.num_tasks)
        self._task_tensor = torch.arange(world.num_tasks)
        self._everywhere = world.inputs.repeat(world.num_tasks, *[1] * (world.inputs.ndim - 1))
        self._everyone = self._task_tensor.repeat_interleave(world.num_states)
        self._pairs = world.inputs.flatten(0, 1).numpy()  # [state * action, *input]

    def play(self, index: int) -> dict[str, float | int]:
        """Play one episode; return what happened, as means over the tasks."""
        episode = self.world.episode(index)
        tasks, candidates = episode.offered()
        self.agent.plan(candidates, tasks)
        first = (self._tasks, episode.first_states)
        optimal = self.world.optimal_values[:, 0][first]
        if self.agent.is_markov:
            self._write_down()
            hopes = self._hopes[first]
            rewards = self._follow_the_table(episode)
            regret = optimal - self._values[first]
        else:
            rewards, hopes = self._ask_every_time(episode)
            regret = episode.gaps
        self.reached_goal = episode.reached_goal
        return {
            "reward": float(rewards.mean()),
            "regret": float(regret.mean()),
            "optimism_violations": float((hopes < optimal - ROUNDING).mean()),
            "goals": float(episode.reached_goal.mean()),
        }

    def _write_down(self) -> None:
        if self._plan_index == self.agent.plan_index:
            return
        world = self.world
        shape = (world.num_tasks, world.num_states)
        table = []
        for stage in range(world.horizon):
            decision = self.agent.decide(stage, self._everywhere, self._everyone)
            table.append(decision.actions.reshape(shape).numpy())
            if stage == 0:
                self._hopes = decision.optimistic_values.reshape(shape).numpy()
        self._policy = np.stack(table, axis=1)
        self._values = world.policy_values(self._policy)
        self._plan_index = self.agent.plan_index

    def _follow_the_table(self, episode: TabularEpisode) -> NDArray[np.float64]:
        rewards = np.zeros(self.world.num_tasks)
        nothing = torch.zeros(self.world.num_tasks, dtype=torch.float64)
        for stage in range(self.world.horizon):
            states = episode.states
            actions = self._policy[self._tasks, stage, states]
            inputs = torch.from_numpy(self._pairs[states * self.world.num_actions + actions])
            decision = Decision(self._task_tensor, torch.from_numpy(actions), inputs, nothing)
            rewards += self._step(episode, stage, decision)
        return rewards

    def _ask_every_time(
        self, episode: TabularEpisode
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rewards, hopes = np.zeros(self.world.num_tasks), np.zeros(self.world.num_tasks)
        for stage in range(self.world.horizon):
            tasks, candidates = episode.offered()
            decision = self.agent.decide(stage, candidates, tasks)
            if stage == 0:
                hopes = decision.optimistic_values.numpy()
            rewards += self._step(episode, stage, decision)
        return rewards, hopes

    def _step(self, episode: TabularEpisode, stage: int, decision: Decision) -> NDArray[np.float64]:
        outcome = episode.play(decision.actions)
        following: Tensor = outcome.next_candidates
        self.agent.observe(stage, decision, outcome.rewards, following, outcome.ended)
        return np.asarray(outcome.rewards.numpy())

"""Playing one episode with an agent that learns from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gfucb.core.protocols import Episode, EpisodicAgent
from gfucb.core.records import Row
from gfucb.environments import RichObservationMDPs


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


def play_with_gaps(agent: EpisodicAgent, environment: RichObservationMDPs, index: int) -> Row:
    """Play an episode; its regret is the sum of V* - Q* of the actions taken.

    A policy over observations cannot be tabulated. The expectation of the sum is its regret.
    """
    episode = environment.episode(index)
    returns = play_episode(agent, episode, environment.horizon, environment.num_tasks)
    return {
        "reward": float(returns.mean()),
        "regret": float(episode.gaps.mean()),
        "goals": float(episode.reached_goal.mean()),
    }

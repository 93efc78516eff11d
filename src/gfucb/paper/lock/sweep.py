"""The runs on combination locks: environments, agents, jobs, and the functions that make rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gfucb.core.protocols import EpisodicAgent, EpisodicEnvironment
from gfucb.core.records import Row
from gfucb.environments import TabularEpisode, combination_lock, tabular_lock
from gfucb.environments.rich_observations import RichObservationEpisode
from gfucb.paper.common import Job, Options
from gfucb.runs.build_run import make_agent
from gfucb.runs.config import EpisodicAgentConfig
from gfucb.runs.episode_loop import play_episode
from gfucb.runs.policy_evaluator import PolicyEvaluator, with_true_features

SEEDS = tuple(range(20))
NUM_EPISODES = 2000
STRIDE = 50  # episodes between two rows of a regret curve
HORIZONS = (4, 8, 12, 16)
LONGEST = 20
# EpisodicGFUCB with default arguments; Algorithm 2 on the given features, repaired and as printed.
DEFAULT, OPTIMISTIC, PRINTED = "gfucb-cells", "gfucb-mdp", "gfucb-mdp-literal"

# Observations with fresh noise: the lock of the literature.
NUM_TASKS = (1, 5, 10)
RICH_SEEDS = tuple(range(20))
RICH_EPISODES = 1000
RICH_ENVIRONMENT = {"horizon": 12, "num_actions": 10}
RICH_AGENT = EpisodicAgentConfig(name=DEFAULT)
# Its bonus was chosen on seeds from 2000 on.
ORACLE = EpisodicAgentConfig(name="oracle-lsvi-ucb", bonus_scale=0.02, ridge=0.0004)


def config(options: Options) -> dict[str, Any]:
    """Settings stored with the results."""
    return {"rich_environment": RICH_ENVIRONMENT, "rich_agent": RICH_AGENT, "oracle": ORACLE}


def jobs(options: Options) -> list[Job]:
    """One job for each run: tabular locks first, then locks with rich observations."""
    return [*_tabular_jobs(options), *_rich_jobs(options)]


def _tabular_jobs(options: Options) -> list[Job]:
    seeds = options.seeds or ((0, 1) if options.quick else SEEDS)
    longest, *shorter = (6, 3) if options.quick else (LONGEST, *HORIZONS)
    num_episodes = 60 if options.quick else NUM_EPISODES
    # Shorter locks show the trend; half of the seeds suffice.
    some = seeds[: max(1, len(seeds) // 2)]
    return [
        Job(
            f"{agent}-H={horizon}-seed={seed}",
            partial(tabular_rows, agent, horizon, seed, num_episodes, horizon == longest),
        )
        for seed in seeds
        for horizon in (longest, *(shorter if seed in some else ()))
        for agent in (DEFAULT, OPTIMISTIC, PRINTED)
    ]


def _rich_jobs(options: Options) -> list[Job]:
    seeds = options.seeds or ((0, 1) if options.quick else RICH_SEEDS)
    changes = {"horizon": 3, "num_actions": 3} if options.quick else {}
    num_episodes = 40 if options.quick else RICH_EPISODES
    return [
        Job(
            f"rich-{agent}-M={num_tasks}-seed={seed}",
            partial(rich_rows, agent, num_tasks, seed, num_episodes, changes),
        )
        for seed in seeds
        for num_tasks in ((1, 2) if options.quick else NUM_TASKS)
        for agent in (RICH_AGENT.name, ORACLE.name)
    ]


def tabular_rows(
    agent_name: str, horizon: int, seed: int, num_episodes: int, is_curve: bool
) -> Sequence[Row]:
    """A regret curve, or only the row of the episode that reached the goal."""
    environment = tabular_lock(horizon=horizon, seed=seed)
    agent = make_agent(EpisodicAgentConfig(name=agent_name), environment, seed)
    key = {"part": "tabular", "agent": agent_name, "horizon": horizon, "num_tasks": 1}
    return _run(PolicyEvaluator(agent, environment), 1, seed, num_episodes, is_curve, key)


def rich_rows(
    agent_name: str, num_tasks: int, seed: int, num_episodes: int, changes: dict[str, Any]
) -> Sequence[Row]:
    """The row of the episode in which the last task reached the goal; the oracle has the states.

    Policies over observations cannot be tabulated; regret is the sum of V* - Q* along episodes.
    """
    environment: EpisodicEnvironment = combination_lock(
        num_tasks=num_tasks, seed=seed, **(RICH_ENVIRONMENT | changes)
    )
    agent_config = RICH_AGENT
    if agent_name == ORACLE.name:
        environment, agent_config = with_true_features(environment), ORACLE
    agent = make_agent(agent_config, environment, seed)
    key = {
        "part": "rich",
        "agent": agent_name,
        "horizon": environment.horizon,
        "num_tasks": num_tasks,
    }
    return _run(_Gaps(agent, environment), num_tasks, seed, num_episodes, False, key)


class _Gaps:
    """Plays episodes, like `PolicyEvaluator`, with the regret of the actions taken."""

    def __init__(self, agent: EpisodicAgent, environment: EpisodicEnvironment) -> None:
        self.agent, self.environment = agent, environment
        self.reached_goal = np.zeros(environment.num_tasks, dtype=bool)

    def play(self, index: int) -> Row:
        """Play an episode; the optimistic value is not compared with V*."""
        environment, episode = self.environment, self.environment.episode(index)
        assert isinstance(episode, TabularEpisode | RichObservationEpisode)
        play_episode(self.agent, episode, environment.horizon, environment.num_tasks)
        self.reached_goal = episode.reached_goal
        return {"regret": float(episode.gaps.mean()), "optimism_violations": np.nan}


def _run(
    evaluator: PolicyEvaluator | _Gaps,
    num_tasks: int,
    seed: int,
    num_episodes: int,
    is_curve: bool,
    key: dict[str, Any],
) -> Sequence[Row]:
    """Run all episodes with a row every `STRIDE`, or stop when all tasks have reached the goal.

    `first_goal` is the mean over tasks of the first episode that reached the goal; a task that
    never reached it counts with the number of episodes.
    """
    first_goals = np.full(num_tasks, np.nan)
    regret = violations = 0.0
    rows: list[Row] = []
    for episode in range(1, num_episodes + 1):
        result = evaluator.play(episode)
        regret += float(result["regret"])
        violations += float(result["optimism_violations"])
        first_goals[np.isnan(first_goals) & evaluator.reached_goal] = episode
        have_reached = ~np.isnan(first_goals)
        is_last = episode == num_episodes or (have_reached.all() and not is_curve)
        if is_last or (is_curve and episode % STRIDE == 0):
            rows.append(
                key
                | {
                    "seed": seed,
                    "episode": episode,
                    "cumulative_regret": round(regret, 6),
                    "violations": round(violations / episode, 6),
                    "first_goal": float(np.where(have_reached, first_goals, num_episodes).mean()),
                    "tasks_there": int(have_reached.sum()),
                }
            )
        if is_last:
            break
    return rows

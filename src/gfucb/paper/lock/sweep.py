"""The runs on combination locks: environments, agents, jobs, and the functions that make rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gfucb.core.protocols import EpisodicAgent
from gfucb.core.records import Row
from gfucb.environments import TabularMDPs, rich_lock, tabular_lock
from gfucb.paper.common import Job, Options
from gfucb.runs.build_run import make_agent
from gfucb.runs.config import EpisodicAgentConfig
from gfucb.runs.policy_evaluator import PolicyEvaluator, with_true_features

SEEDS = tuple(range(20))
NUM_EPISODES = 5000
STRIDE = 50  # episodes between two rows of a regret curve
HORIZONS = (4, 8, 12, 16)
LONGEST = 20
DEFAULT, PRINTED = "gfucb-mdp", "gfucb-mdp-literal"

# Settings for rich observations were chosen on seeds from 1000 on.
NUM_TASKS = (1, 5, 10)
RICH_SEEDS = tuple(range(10))
RICH_EPISODES = 1000
# Few observations occur twice, and 61 of their 64 coordinates are large and carry no information,
# so learning the emission takes more samples than opening the lock. With 16 coordinates and small
# distractors a single task decodes the emission in time, and sharing does not help.
RICH_ENVIRONMENT = {
    "horizon": 10,
    "num_actions": 4,
    "observation_dim": 64,
    "bank_size": 64,
    "noise_scale": 0.1,
    "distractor_scale": 1.0,
}
RICH_AGENT = EpisodicAgentConfig(
    representation="network",
    share_stages=True,
    next_targets=3,
    reward_weight=3.0,
    warm_start=False,
    fit_steps=200,
    fit_window=32,
    # One more than the number of states. With eight features, states were split in two and each
    # half was explored: ten locks took 136 episodes instead of 86 (one seed, smaller distractors).
    feature_dim=4,
)
ORACLE = EpisodicAgentConfig(name="oracle-lsvi-ucb")
# Samples of each task in a step of the fit: 32 of every stage.
BATCH_PER_TASK = 320


def config(options: Options) -> dict[str, Any]:
    """Settings stored with the results."""
    described: dict[str, Any] = {"fit_batch": f"{BATCH_PER_TASK} a task"}
    agent = replace(RICH_AGENT, **described)
    return {"rich_environment": RICH_ENVIRONMENT, "rich_agent": agent}


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
        for agent in (DEFAULT, PRINTED)
    ]


def _rich_jobs(options: Options) -> list[Job]:
    seeds = options.seeds or ((0, 1) if options.quick else RICH_SEEDS)
    changes = {"horizon": 3, "bank_size": 6} if options.quick else {}
    num_episodes = 15 if options.quick else RICH_EPISODES
    return [
        Job(
            f"rich-{agent}-M={num_tasks}-seed={seed}",
            partial(rich_rows, agent, num_tasks, seed, num_episodes, changes, options.quick),
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
    return _run(agent, environment, seed, num_episodes, is_curve, key)


def rich_rows(
    agent_name: str,
    num_tasks: int,
    seed: int,
    num_episodes: int,
    changes: dict[str, Any],
    quick: bool,
) -> Sequence[Row]:
    """The row of the episode in which the last task reached the goal; the oracle has the states."""
    environment = rich_lock(num_tasks=num_tasks, seed=seed, **(RICH_ENVIRONMENT | changes))
    agent_config = replace(RICH_AGENT, fit_batch=BATCH_PER_TASK * num_tasks)
    if agent_name == ORACLE.name:
        environment, agent_config = with_true_features(environment), ORACLE
    if quick:
        agent_config = replace(agent_config, fit_steps=5)
    agent = make_agent(agent_config, environment, seed)
    key = {
        "part": "rich",
        "agent": agent_config.name,
        "horizon": environment.horizon,
        "num_tasks": num_tasks,
    }
    return _run(agent, environment, seed, num_episodes, False, key)


def _run(
    agent: EpisodicAgent,
    environment: TabularMDPs,
    seed: int,
    num_episodes: int,
    is_curve: bool,
    key: dict[str, Any],
) -> Sequence[Row]:
    """Run all episodes with a row every `STRIDE`, or stop when all tasks have reached the goal.

    `first_goal` is the mean over tasks of the first episode that reached the goal; a task that
    never reached it counts with the number of episodes.
    """
    evaluator = PolicyEvaluator(agent, environment)
    first_goals = np.full(environment.num_tasks, np.nan)
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

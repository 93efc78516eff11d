"""The runs on linear MDPs: environment, agents, jobs, and the function that makes their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gfucb.core.records import Row
from gfucb.environments import linear_mdps
from gfucb.paper.common import Job, Options
from gfucb.runs import registry
from gfucb.runs.build_run import make_agent
from gfucb.runs.config import EpisodicAgentConfig
from gfucb.runs.loop import play

SEEDS = tuple(range(10))
INDEPENDENT_SEEDS = SEEDS[:3]  # ten agents each
NUM_EPISODES = 500
STRIDE = 10  # episodes between two rows
ENVIRONMENT = {
    "num_tasks": 10,
    "horizon": 5,
    "num_states": 30,
    "num_actions": 10,
    "feature_dim": 5,
    "input_dim": 20,
    "num_representations": 64,
    "sharpness": 6.0,
    "concentration": 0.1,
    "noise_scale": 0.1,
}
QUICK_ENVIRONMENT = ENVIRONMENT | {
    "num_tasks": 3,
    "horizon": 3,
    "num_states": 8,
    "num_actions": 4,
    "input_dim": 6,
    "num_representations": 8,
}
QUICK_EPISODES = 40
# Settings were chosen on seeds from 1000 on.
FINITE = EpisodicAgentConfig(bonus_scale=0.2)
# The default agent: a softmax regression on the inputs, fitted to next states and rewards.
LEARNED = replace(FINITE, representation="learned")
PARTS = {"finite class": FINITE, "default": LEARNED}
SHARED, ORACLE, INDEPENDENT = "gfucb-mdp", "oracle-lsvi-ucb", "independent-mdp"
# The oracle is the same in both parts.
AGENTS = {"finite class": (ORACLE, SHARED, INDEPENDENT), "default": (SHARED, INDEPENDENT)}


def config(options: Options) -> dict[str, Any]:
    """Settings stored with the results."""
    environment, num_episodes = _environment(options.quick)
    return {"environment": environment, "num_episodes": num_episodes, "agents": PARTS}


def jobs(options: Options) -> list[Job]:
    """One job for each run."""
    seeds = options.seeds or ((0, 1) if options.quick else SEEDS)
    return [
        Job(
            f"{part.split()[0]}-{agent}-seed={seed}",
            partial(run_rows, part, agent, seed, options.quick),
        )
        for seed in seeds
        for part in PARTS
        for agent in AGENTS[part]
        if agent != INDEPENDENT or options.seeds or options.quick or seed in INDEPENDENT_SEEDS
    ]


def _environment(quick: bool) -> tuple[dict[str, Any], int]:
    """Settings of the environment, and the number of episodes."""
    return (QUICK_ENVIRONMENT, QUICK_EPISODES) if quick else (ENVIRONMENT, NUM_EPISODES)


def run_rows(part: str, agent_name: str, seed: int, quick: bool) -> Sequence[Row]:
    """One run: a row every `STRIDE` episodes."""
    settings, num_episodes = _environment(quick)
    environment = linear_mdps(seed=seed, **settings)
    agent_config = replace(PARTS[part], name=agent_name)
    rows: list[Row] = []
    violations = 0.0
    for result in play(
        make_agent(agent_config, environment, seed),
        environment,
        num_rounds=num_episodes,
        uses_true_features=registry.AGENTS[agent_name].uses_true_features,
    ):
        violations += float(result["optimism_violations"])
        episode = int(result["round"])
        if episode % STRIDE == 0:
            rows.append(
                {
                    "part": part,
                    "agent": agent_name,
                    "seed": seed,
                    "episode": episode,
                    "cumulative_regret": round(float(result["cumulative_regret"]), 6),
                    "violations": round(violations / episode, 6),
                }
            )
    return rows

"""Train an agent until its greedy policy solves all tasks."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch

from gfucb.core.protocols import EpisodicAgent, EpisodicEnvironment
from gfucb.core.records import Row
from gfucb.environments import TabularMDPs
from gfucb.episodic import GreedyEvaluation, SolvedCriterion, evaluate_greedy, greedy_policy
from gfucb.runs.episode_loop import play_episode

# A policy whose exact value is this share of the optimal one counts as successful, in problems in
# which no policy reaches the goal in every episode.
NEAR_OPTIMAL = 0.95


@dataclass(frozen=True)
class Budget:
    """How long to train, and how to evaluate.

    Attributes:
        max_episodes: training episodes of each task.
        evaluate_every: training episodes between evaluations.
        evaluation_episodes: episodes of each task in an evaluation.
        in_a_row: a task is solved by so many perfect evaluations.
        successful_return: see `evaluate_greedy`.
        exact: evaluate by the exact value of the greedy policy, in finite MDPs.
    """

    max_episodes: int
    evaluate_every: int = 10
    evaluation_episodes: int = 20
    in_a_row: int = 5
    successful_return: float | None = None
    exact: bool = False


def solve(agent: EpisodicAgent, environment: EpisodicEnvironment, budget: Budget) -> list[Row]:
    """Train until all tasks are solved or the budget is spent; a row for each evaluation.

    Seconds are those of training; evaluations are left out.
    """
    criterion = SolvedCriterion(environment.num_tasks, budget.in_a_row)
    rows: list[Row] = []
    cpu_seconds = seconds = earned = 0.0
    for index in range(1, budget.max_episodes + 1):
        cpu, wall = time.process_time(), time.perf_counter()
        episode = environment.episode(index)
        returns = play_episode(agent, episode, environment.horizon, environment.num_tasks)
        cpu_seconds += time.process_time() - cpu
        seconds += time.perf_counter() - wall
        earned += float(returns.mean())
        if index % budget.evaluate_every:
            continue
        evaluation = evaluate(agent, environment, budget, seed=index // budget.evaluate_every)
        criterion.add(index, evaluation)
        solved = criterion.solved_after[np.isfinite(criterion.solved_after)]
        rows.append(
            {
                "episodes": index,
                "greedy_return": evaluation.mean_return,
                "success": evaluation.success_rate,
                "training_return": earned / index,
                "solved_tasks": len(solved),
                # Tasks that are not solved yet count with the episodes so far.
                "mean_solved_after": float(np.minimum(criterion.solved_after, index).mean()),
                "cpu_seconds": cpu_seconds,
                "seconds": seconds,
            }
        )
        if criterion.is_solved:
            break
    return rows


def evaluate(
    agent: EpisodicAgent, environment: EpisodicEnvironment, budget: Budget, seed: int
) -> GreedyEvaluation:
    """The greedy policy by episodes of its own, or by its exact value."""
    if budget.exact:
        return exact_evaluation(agent, environment)
    return evaluate_greedy(
        agent,
        environment,
        episodes=budget.evaluation_episodes,
        seed=seed,
        successful_return=budget.successful_return,
    )


def exact_evaluation(agent: EpisodicAgent, environment: EpisodicEnvironment) -> GreedyEvaluation:
    """One row with the expected return of each task; a success is a value near the optimum."""
    assert isinstance(environment, TabularMDPs)
    tasks = torch.arange(environment.num_tasks).repeat_interleave(environment.num_states)
    candidates = environment.inputs.repeat(environment.num_tasks, 1, 1)
    policy = greedy_policy(agent)
    shape = (environment.num_tasks, environment.num_states)
    actions = [
        policy(stage, candidates, tasks).reshape(shape).numpy()
        for stage in range(environment.horizon)
    ]
    values = environment.policy_values(np.stack(actions, axis=1))
    expected, optimal = (
        (environment.start * found).sum(1)[None]
        for found in (values, environment.optimal_values[:, 0])
    )
    return GreedyEvaluation(expected, expected >= NEAR_OPTIMAL * optimal)

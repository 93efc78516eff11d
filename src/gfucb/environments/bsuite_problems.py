"""Problems of bsuite (Osband et al., 2020) as finite MDPs with exact values, for several tasks.

Observations leave out the time: every stage has values of its own. Inputs are (observation,
one-hot action); the true features are one-hot vectors of (state, action).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gfucb.core.discrete_actions import with_actions
from gfucb.core.memory import memory_of_environment
from gfucb.core.random import random_stream
from gfucb.core.validation.settings import validate_count, validate_flag, validate_seed
from gfucb.core.validation.tables import Array
from gfucb.environments.tabular_episode import Integers
from gfucb.environments.tabular_mdp import TabularMDPs, one_hot_inputs

MOVE_COST = 0.01
# When the chains of `discounting_chain` pay, as shares of the horizon.
DELAYS = (0.01, 0.03, 0.1, 0.3, 1.0)
BONUS = 0.1


@memory_of_environment
def deep_sea(
    size: int = 10, *, num_tasks: int = 1, stochastic: bool = False, seed: int = 0
) -> TabularMDPs:
    """Deep sea: only the action "right" in all `size` stages finds the treasure, which pays 1.

    >>> environment = deep_sea(10)
    >>> round(float(environment.optimal_values[0, 0, 0]), 3)
    0.99

    The state is a column of a grid, from 0, and a stage one of its rows. Which action is "right"
    depends on task, stage and column. It costs 0.01 / size; the other one leads left and is free.

    Args:
        size: N, also the horizon.
        num_tasks: M; tasks differ in which action is right.
        stochastic: "right" fails with probability 1 / size, and rewards in both corners of the
            last row have standard normal noise.
        seed: action maps and episodes derive from it.
    """
    validate_count(size, "size", at_least=2)
    is_stochastic = validate_flag(stochastic, "stochastic")
    right = _random_choices((validate_count(num_tasks, "num_tasks"), size, size), 2, seed)
    success = 1 - 1 / size if is_stochastic else 1.0
    columns = np.arange(size)
    to_right, to_left = np.minimum(columns + 1, size - 1), np.maximum(columns - 1, 0)
    moves = np.zeros((2, size, size))  # [left or right, column, next column]
    moves[0, columns, to_left] = 1.0
    moves[1, columns, columns] += 1 - success
    moves[1, columns, to_right] += success
    is_right = right[..., None] == np.arange(2)  # [task, stage, column, action]
    transitions = np.where(is_right[..., None], moves[1][:, None], moves[0][:, None])
    rewards = np.where(is_right, -MOVE_COST / size, 0.0)
    treasure = is_right & (columns == size - 1)[:, None]
    treasure[:, :-1] = False  # the last column cannot be reached earlier
    noisy = np.zeros_like(treasure)
    noisy[:, -1, [0, size - 1]] = True
    return TabularMDPs(
        transitions,
        rewards + treasure,
        _first_state(num_tasks, size),
        with_actions(torch.eye(size), 2),
        reward_range=(-MOVE_COST / size, 1.0),
        value_range=(-MOVE_COST, 1.0),
        reward_noise="gaussian" if is_stochastic else "none",
        noise_scale=1.0 if is_stochastic else 0.0,
        noisy=noisy,
        goal=treasure,
        **_common(size, 2, seed),
    )


@memory_of_environment
def umbrella_chain(horizon: int = 10, *, num_tasks: int = 1, seed: int = 0) -> TabularMDPs:
    """Umbrella chain: the first action decides the last reward, all rewards between are noise.

    An episode begins with or without need of an umbrella, and with or without one. The first
    action takes it or leaves it; which action takes it depends on the task. The last stage pays 1
    if there is an umbrella just when it is needed, and -1 otherwise. All stages before pay 1 or
    -1 at random. V* = 1.

    Args:
        horizon: H, at least 2.
        num_tasks: M.
        seed: action maps and episodes derive from it.
    """
    validate_count(horizon, "horizon", at_least=2)
    taking = _random_choices((validate_count(num_tasks, "num_tasks"),), 2, seed)
    need, have = np.divmod(np.arange(4), 2)  # state = 2 need + have
    transitions = np.zeros((num_tasks, horizon, 4, 2, 4))
    for action in range(2):
        following = 2 * need + (taking == action)[:, None]  # [task, state]
        transitions[np.arange(num_tasks)[:, None], 0, np.arange(4), action, following] = 1.0
        transitions[:, 1:, np.arange(4), action, np.arange(4)] = 1.0
    rewards = np.zeros((num_tasks, horizon, 4, 2))
    rewards[:, -1] = np.where(need == have, 1.0, -1.0)[:, None]
    noisy = np.ones_like(rewards, dtype=bool)
    noisy[:, -1] = False
    return TabularMDPs(
        transitions,
        rewards,
        np.full((num_tasks, 4), 0.25),
        with_actions(torch.from_numpy(np.stack([need, have], 1)).float(), 2),
        reward_range=(-1.0, 1.0),
        value_range=(-1.0, 1.0),
        reward_noise="bernoulli",
        noisy=noisy,
        goal=rewards > 0,
        **_common(4, 2, seed),
    )


@memory_of_environment
def discounting_chain(horizon: int = 30, *, num_tasks: int = 1, seed: int = 0) -> TabularMDPs:
    """Discounting chain: the first action chooses one of five chains, which pay 1 once.

    They pay after 1%, 3%, 10%, 30% and 100% of the stages, at least one stage. One chain, another
    one in each task, pays 1.1; the others are tempting because most of them pay earlier. V* = 1.1.

    Args:
        horizon: H; bsuite has 100.
        num_tasks: M.
        seed: bonus chains and episodes derive from it.
    """
    validate_count(horizon, "horizon")
    best = _random_choices((validate_count(num_tasks, "num_tasks"),), len(DELAYS), seed)
    chains = np.arange(len(DELAYS))
    times = np.array([max(1, round(delay * horizon)) for delay in DELAYS]) - 1  # [chain]
    size = len(DELAYS) + 1  # state 0 is before the choice, state 1 + chain after it
    transitions = np.zeros((num_tasks, horizon, size, len(DELAYS), size))
    transitions[:, 0, 0, chains, 1 + chains] = 1.0
    transitions[:, 1:, 0, :, 0] = 1.0
    transitions[:, :, 1 + chains, :, 1 + chains] = 1.0
    pays = np.where(chains == best[:, None], 1 + BONUS, 1.0)  # [task, chain]
    rewards = np.zeros((num_tasks, horizon, size, len(DELAYS)))
    goal = np.zeros_like(rewards, dtype=bool)
    for chain, time in enumerate(times.tolist()):
        # In the first stage the chain is the action, afterwards it is the state.
        pairs = (0, chain) if time == 0 else (1 + chain, slice(None))
        rewards[:, time, *pairs] = pays[:, chain].reshape(-1, *[1] * (time > 0))
        goal[:, time, *pairs] = (best == chain).reshape(-1, *[1] * (time > 0))
    return TabularMDPs(
        transitions,
        rewards,
        _first_state(num_tasks, size),
        with_actions(torch.eye(size), len(DELAYS)),
        reward_range=(0.0, 1 + BONUS),
        value_range=(0.0, 1 + BONUS),
        goal=goal,
        **_common(size, len(DELAYS), seed),
    )


def _random_choices(shape: tuple[int, ...], number: int, seed: int) -> Integers:
    """Random choices that distinguish the tasks."""
    generator = random_stream(validate_seed(seed), "tasks")
    return np.asarray(torch.randint(number, shape, generator=generator).numpy())


def _first_state(num_tasks: int, num_states: int) -> Array:
    return np.eye(num_states)[np.zeros(num_tasks, dtype=np.int64)]


def _common(num_states: int, num_actions: int, seed: int) -> dict[str, Any]:
    """Arguments of all problems."""
    return {
        "seed": seed,
        "true_features": one_hot_inputs(num_states, num_actions),
        "decoding": np.arange(num_states),
    }

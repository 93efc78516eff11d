"""Combination locks: one wrong action loses the goal of the episode (Misra et al., 2020).

There are three latent states: two good ones and a dead one. In a good state one action is right. It
leads to either good state with probability 0.5; every other action pays a small reward and leads to
the dead state, which pays nothing and is never left. The right action of the last stage opens the
lock, which pays 1 with probability 0.5. Tasks differ in their right actions (their codes); the
observations of states are shared.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import hadamard
from torch import Tensor

from gfucb.core.discrete_actions import with_actions
from gfucb.core.errors import InvalidInputError
from gfucb.core.memory import memory_of_environment
from gfucb.core.random import random_stream
from gfucb.core.validation.settings import (
    validate_count,
    validate_not_negative,
    validate_number,
    validate_seed,
)
from gfucb.core.validation.tables import Array
from gfucb.environments.tabular_episode import Integers
from gfucb.environments.tabular_mdp import TabularMDPs, one_hot_inputs

NUM_LATENT = 3
DEAD = 2
MEAN_GOAL_REWARD = 0.5

LatentTables = tuple[Array, Array, NDArray[np.bool_]]


@memory_of_environment
def tabular_lock(
    *,
    horizon: int = 20,
    num_tasks: int = 1,
    num_actions: int = 2,
    anti_reward: float = 0.1,
    seed: int = 0,
) -> TabularMDPs:
    """Locks whose latent states are observed, as one-hot vectors of (state, action); V* = 0.5.

    A wrong action pays `anti_reward` immediately and with certainty, so a learner without
    exploration prefers it to a goal that it has never reached. Uniform play opens a lock with
    probability num_actions^-horizon.
    """
    tables = _latent_tables(horizon, num_tasks, num_actions, anti_reward, seed)
    features = one_hot_inputs(NUM_LATENT, num_actions)
    return _environment(tables, np.arange(NUM_LATENT), features, features, seed)


@memory_of_environment
def rich_lock(
    *,
    horizon: int = 10,
    num_tasks: int = 5,
    num_actions: int = 4,
    anti_reward: float = 0.1,
    observation_dim: int = 16,
    bank_size: int = 16,
    noise_scale: float = 0.1,
    distractor_scale: float = 0.1,
    seed: int = 0,
) -> TabularMDPs:
    """Locks with rich observations: an unknown emission, shared by all tasks, hides the state.

    An observation is R ((one-hot latent state, zeros) + noise) with R a Hadamard matrix of unit
    columns, so no single coordinate identifies the state. Each latent state has `bank_size`
    observations, drawn once; all are equally likely whenever the state is reached. The environment
    is therefore a finite MDP over observations and its values are exact. Inputs are (observation,
    one-hot action).

    Args:
        horizon: H.
        num_tasks: M.
        num_actions: A.
        anti_reward: the reward of a wrong action.
        observation_dim: a power of two of at least 4.
        bank_size: observations per latent state.
        noise_scale: standard deviation of the noise on the three coordinates of the state.
        distractor_scale: standard deviation of the noise on all other coordinates.
        seed: codes, emission and episodes derive from it.
    """
    validate_count(bank_size, "bank_size")
    if validate_count(observation_dim, "observation_dim", at_least=4) & (observation_dim - 1):
        raise InvalidInputError(f"observation_dim must be a power of two, got {observation_dim}")
    validate_not_negative(noise_scale, "noise_scale")
    validate_not_negative(distractor_scale, "distractor_scale")
    tables = _latent_tables(horizon, num_tasks, num_actions, anti_reward, seed)
    decoding = np.repeat(np.arange(NUM_LATENT), bank_size)
    generator = random_stream(seed, "emission")
    coordinates = torch.randn(
        len(decoding), observation_dim, generator=generator, dtype=torch.float64
    )
    coordinates[:, :NUM_LATENT] *= noise_scale
    coordinates[:, NUM_LATENT:] *= distractor_scale
    coordinates[torch.arange(len(decoding)), torch.from_numpy(decoding)] += 1
    rotation = torch.from_numpy(hadamard(observation_dim).astype(np.float64))
    observations = coordinates @ rotation.T / observation_dim**0.5
    inputs = with_actions(observations.to(torch.float32), num_actions)
    true_features = one_hot_inputs(NUM_LATENT, num_actions)[torch.from_numpy(decoding)]
    return _environment(tables, decoding, inputs, true_features, seed)


def _latent_tables(
    horizon: int, num_tasks: int, num_actions: int, anti_reward: float, seed: int
) -> LatentTables:
    """Transitions, mean rewards and goals over latent states, with one random code per task."""
    validate_count(horizon, "horizon")
    validate_count(num_tasks, "num_tasks")
    validate_count(num_actions, "num_actions", at_least=2)
    if not 0 <= validate_number(anti_reward, "anti_reward") < MEAN_GOAL_REWARD:
        raise InvalidInputError(
            f"anti_reward must be at least 0 and below {MEAN_GOAL_REWARD}, the mean reward of "
            f"opening the lock, got {anti_reward}"
        )
    generator = random_stream(validate_seed(seed), "codes")
    codes = torch.randint(num_actions, (num_tasks, horizon, DEAD), generator=generator).numpy()
    right = codes[..., None] == np.arange(num_actions)  # [task, stage, good state, action]
    shape = (num_tasks, horizon, NUM_LATENT, num_actions)
    transitions, rewards = np.zeros((*shape, NUM_LATENT)), np.zeros(shape)
    transitions[:, :, :DEAD, :, :DEAD] = 0.5 * right[..., None]
    transitions[:, :, :DEAD, :, DEAD] = ~right
    transitions[:, :, DEAD, :, DEAD] = 1.0
    rewards[:, :, :DEAD] = anti_reward * ~right
    goal = np.zeros(shape, dtype=bool)
    goal[:, -1, :DEAD] = right[:, -1]
    rewards[goal] = MEAN_GOAL_REWARD
    return transitions, rewards, goal


def _environment(
    tables: LatentTables, decoding: Integers, inputs: Tensor, true_features: Tensor, seed: int
) -> TabularMDPs:
    """Lift the latent tables to observations; those of one latent state are equally likely.

    `decoding` [state] is the latent state of each observation.
    """
    transitions, rewards, goal = tables
    num_tasks = len(rewards)
    share = 1 / np.bincount(decoding)[decoding]
    start = np.where(decoding == DEAD, 0.0, 0.5) * share
    opening = goal[:, :, decoding]
    return TabularMDPs(
        transitions[:, :, decoding][..., decoding] * share,
        rewards[:, :, decoding],
        np.broadcast_to(start, (num_tasks, len(start))).copy(),
        inputs,
        seed=seed,
        value_range=(0.0, 1.0),
        reward_noise="bernoulli",
        noisy=opening,
        true_features=true_features,
        goal=opening,
        decoding=decoding,
    )

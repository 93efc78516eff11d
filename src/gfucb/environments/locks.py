"""Combination locks: one wrong action anywhere and the goal is lost (Misra et al., 2020).

Three latent states: two good ones and a dead one. In a good state one action is right: it leads to
either good state with equal chance; every other one pays a little and leads to the dead state,
which pays nothing and is never left. The right action in the last stage opens the lock, which then
pays 1 with probability 0.5. Tasks differ in their codes, the right actions; what is seen of the
states is shared.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import hadamard
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.environments.tabular_mdp import Integers, TabularMDPs, one_hot_inputs
from gfucb.theory.small_mdp import Array

NUM_LATENT = 3
DEAD = 2
OPENING_PAYS = 0.5

LatentTables = tuple[Array, Array, NDArray[np.bool_]]


def tabular_lock(
    *,
    horizon: int = 20,
    num_tasks: int = 1,
    num_actions: int = 2,
    anti_reward: float = 0.1,
    seed: int = 0,
) -> TabularMDPs:
    """Locks whose latent states are seen, as one-hot vectors of (state, action); V* = 0.5.

    A wrong action pays `anti_reward` at once, for sure: a learner that goes by what it got prefers
    it to a goal it has never seen. Uniform play opens a lock with probability
    num_actions^-horizon.
    """
    tables = _latent_tables(horizon, num_tasks, num_actions, anti_reward, seed)
    features = one_hot_inputs(NUM_LATENT, num_actions)
    return _environment(tables, np.arange(NUM_LATENT), features, features, seed)


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
    """Locks seen through an emission that all tasks share and no agent is told.

    An observation is R (one-hot latent state, zeros + noise) with R a Hadamard matrix of unit
    columns: no single coordinate tells anything. Each latent state has `bank_size` observations,
    drawn once and then equally likely whenever the state is entered, so the environment is a finite
    MDP over observations and all values are exact. Inputs are (observation, one-hot action).

    `observation_dim` is a power of two of at least 4; `noise_scale` is that of the noise on the
    three coordinates of the latent state, `distractor_scale` that on all others.
    """
    if observation_dim < 4 or observation_dim & (observation_dim - 1) or bank_size < 1:
        raise InvalidInputError(
            "observation_dim must be a power of two of at least 4 and bank_size at least 1, "
            f"got {observation_dim} and {bank_size}"
        )
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
    truth = one_hot_inputs(NUM_LATENT, num_actions)[torch.from_numpy(decoding)]
    return _environment(tables, decoding, inputs, truth, seed)


def with_actions(observations: Tensor, num_actions: int) -> Tensor:
    """(observation, one-hot action) for every action: [n, x] -> [n, action, x + action]."""
    num_states = len(observations)
    repeated = observations[:, None].expand(-1, num_actions, -1)
    actions = torch.eye(num_actions, dtype=observations.dtype).expand(num_states, -1, -1)
    return torch.cat([repeated, actions], dim=-1)


def _latent_tables(
    horizon: int, num_tasks: int, num_actions: int, anti_reward: float, seed: int
) -> LatentTables:
    """Transitions, mean rewards and the goal over latent states, with a random code a task."""
    for name, count, least in (
        ("horizon", horizon, 1),
        ("num_tasks", num_tasks, 1),
        ("num_actions", num_actions, 2),
    ):
        if count < least:
            raise InvalidInputError(f"a lock needs {name} of at least {least}, got {count}")
    if not 0 <= anti_reward < OPENING_PAYS:
        raise InvalidInputError(
            f"anti_reward must be at least 0 and below {OPENING_PAYS}, which opening the lock "
            f"pays on average, got {anti_reward}"
        )
    generator = random_stream(seed, "codes")
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
    rewards[goal] = OPENING_PAYS
    return transitions, rewards, goal


def _environment(
    tables: LatentTables, decoding: Integers, inputs: Tensor, truth: Tensor, seed: int
) -> TabularMDPs:
    """The latent tables seen through `decoding` [state]; observations of a state equally likely."""
    transitions, rewards, goal = tables
    num_tasks = len(rewards)
    share = 1 / np.bincount(decoding)[decoding]
    start = np.where(decoding == DEAD, 0.0, 0.5) * share
    opened = goal[:, :, decoding]
    return TabularMDPs(
        transitions[:, :, decoding][..., decoding] * share,
        rewards[:, :, decoding],
        np.broadcast_to(start, (num_tasks, len(start))).copy(),
        inputs,
        seed=seed,
        value_range=(0.0, 1.0),
        reward_noise="bernoulli",
        noisy=opened,
        true_features=truth,
        goal=opened,
        decoding=decoding,
    )

"""The combination lock of the literature on rich observations: fresh noise in every step.

It is the benchmark of HOMER (Misra et al., 2020) and BRIEE (Zhang et al., 2022); as in Agarwal et
al. (2022) several tasks have codes of their own behind one emission.
"""

from __future__ import annotations

import numpy as np
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.memory import memory_of_environment
from gfucb.core.random import random_stream
from gfucb.core.validation.settings import validate_count, validate_number, validate_seed
from gfucb.core.validation.tables import Array
from gfucb.environments.emissions import Emission, MixingKind
from gfucb.environments.locks import DEAD, NUM_LATENT, LatentTables
from gfucb.environments.rich_observations import RichObservationMDPs
from gfucb.environments.tabular_mdp import TabularMDPs, one_hot_inputs

GOAL_REWARD = 1.0
DENSE_REWARD = 0.1


@memory_of_environment
def combination_lock(
    horizon: int = 12,
    num_actions: int = 10,
    *,
    num_tasks: int = 1,
    switch_probability: float = 0.5,
    anti_reward: float = 0.1,
    anti_reward_probability: float = 0.5,
    dense: bool = False,
    emission: MixingKind = "hadamard",
    noise_scale: float = 0.1,
    temperature: float | None = None,
    seed: int = 0,
    emission_seed: int | None = None,
) -> RichObservationMDPs:
    """Combination locks with fresh observation noise; V* = 1.

    >>> environment = combination_lock(horizon=12, num_tasks=5)
    >>> tasks, candidates = environment.episode(1).offered()
    >>> tuple(candidates.shape)  # tasks, actions, 16 coordinates and a one-hot action
    (5, 10, 26)

    There are two good latent states and a dead one. In a good state one action is right; which
    one depends on task, stage and state. It leads to either good state; in the last stage it pays
    1. Every other action leads to the dead state, which is never left, and may pay `anti_reward`
    immediately. Uniform play opens a lock with probability num_actions^-horizon. An observation is
    a one-hot state and a one-hot stage with noise, mixed; see `Emission`. The sum of rewards of an
    episode lies in [0, 1], or in [0, 1 + 0.1 (H - 1)] with dense rewards.

    Args:
        horizon: H.
        num_actions: A.
        num_tasks: M; the codes of tasks differ, the emission is shared.
        switch_probability: of the other good state, after a right action.
        anti_reward: what a wrong action in a good state may pay.
        anti_reward_probability: with which probability it does.
        dense: right actions before the last stage pay 0.1, wrong ones nothing.
        emission: `hadamard` as in the literature, `nonlinear` or `identity`.
        noise_scale: standard deviation of the noise on every coordinate of state and stage.
        temperature: for observations that do not determine the latent state (no block structure);
            the literature uses 0.2.
        seed: codes and episodes derive from it.
        emission_seed: of the `nonlinear` emission; by default `seed`. Environments with the same
            one share their emission, for transfer to new tasks.
    """
    rewards_of_wrong_actions = None if dense else (anti_reward, anti_reward_probability)
    codes = _codes(horizon, num_tasks, num_actions, validate_seed(seed))
    latent = _latent(codes, num_actions, switch_probability, rewards_of_wrong_actions, seed)
    own_seed = seed if emission_seed is None else emission_seed
    shown = Emission(NUM_LATENT, horizon, emission, noise_scale, temperature, own_seed)
    return RichObservationMDPs(latent, shown)


def _latent(
    codes: Array,
    num_actions: int,
    switch_probability: float,
    anti_rewards: tuple[float, float] | None,
    seed: int,
) -> TabularMDPs:
    """The MDPs over latent states; without `anti_rewards` right actions are paid."""
    num_tasks, horizon = codes.shape[:2]
    transitions, rewards, goal = _tables(codes, num_actions, switch_probability)
    wrong = np.zeros_like(goal)
    wrong[:, :, :DEAD] = transitions[:, :, :DEAD, :, DEAD] > 0
    high_rewards = np.full_like(rewards, GOAL_REWARD)
    if anti_rewards is None:
        rewards[:, :-1, :DEAD][~wrong[:, :-1, :DEAD]] = DENSE_REWARD
        largest_sum = GOAL_REWARD + DENSE_REWARD * (horizon - 1)
    else:
        high_rewards[wrong] = _fraction(anti_rewards[0], "anti_reward")
        probability = _fraction(anti_rewards[1], "anti_reward_probability")
        rewards[wrong] = anti_rewards[0] * probability
        largest_sum = GOAL_REWARD
    start = np.zeros((num_tasks, NUM_LATENT))
    start[:, :DEAD] = 1 - switch_probability, switch_probability
    pairs = one_hot_inputs(NUM_LATENT, num_actions)
    return TabularMDPs(
        transitions,
        rewards,
        start,
        pairs,
        seed=seed,
        value_range=(0.0, largest_sum),
        reward_noise="bernoulli",
        noisy=wrong,
        high_rewards=high_rewards,
        true_features=pairs,
        goal=goal,
    )


def _codes(horizon: int, num_tasks: int, num_actions: int, seed: int) -> Array:
    """The right action of each task, stage and good state."""
    validate_count(horizon, "horizon")
    validate_count(num_tasks, "num_tasks")
    validate_count(num_actions, "num_actions", at_least=2)
    shape = (num_tasks, horizon, DEAD)
    codes = torch.randint(num_actions, shape, generator=random_stream(seed, "codes"))
    return np.asarray(codes.numpy())


def _tables(codes: Array, num_actions: int, switch_probability: float) -> LatentTables:
    """Transitions, goal rewards and goals over latent states."""
    switch = _fraction(switch_probability, "switch_probability")
    right = codes[..., None] == np.arange(num_actions)  # [task, stage, good state, action]
    shape = (*codes.shape[:2], NUM_LATENT, num_actions)
    transitions, goal = np.zeros((*shape, NUM_LATENT)), np.zeros(shape, dtype=bool)
    for state in range(DEAD):
        transitions[:, :, state, :, state] = (1 - switch) * right[:, :, state]
        transitions[:, :, state, :, 1 - state] = switch * right[:, :, state]
    transitions[:, :, :DEAD, :, DEAD] = ~right
    transitions[:, :, DEAD, :, DEAD] = 1.0
    goal[:, -1, :DEAD] = right[:, -1]
    return transitions, GOAL_REWARD * goal, goal


def _fraction(value: float, name: str) -> float:
    if not 0 <= validate_number(value, name) <= 1:
        raise InvalidInputError(f"{name} must lie between 0 and 1, got {value}")
    return value

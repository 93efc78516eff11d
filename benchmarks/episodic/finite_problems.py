"""Finite environments whose dynamics do not depend on the stage."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from gfucb.core.discrete_actions import with_actions
from gfucb.core.random import random_stream
from gfucb.environments import TabularMDPs, tabular_mdps
from gfucb.environments.tabular_mdp import one_hot_inputs

Tables = tuple[NDArray[np.float64], NDArray[np.float64]]
# Of the Dirichlet distribution of next states in random MDPs.
CONCENTRATION = 0.3


def river_swim(
    size: int = 6, horizon: int = 20, *, num_tasks: int = 1, seed: int = 0
) -> TabularMDPs:
    """River swim (Strehl and Littman, 2008): a current drives back from the large reward.

    Which action swims upstream depends on task and place.
    """
    upstream = _integers((num_tasks, size), 2, seed, "upstream")
    return _environment([_river(own) for own in upstream], horizon, seed)


def _river(upstream: NDArray[np.int64]) -> Tables:
    size = len(upstream)
    transitions, rewards = np.zeros((size, 2, size)), np.zeros((size, 2))
    for place, up in enumerate(upstream):
        before, after = max(place - 1, 0), min(place + 1, size - 1)
        transitions[place, 1 - up, before] = 1.0
        stays, back = (0.6, 0.1) if place < size - 1 else (0.3, 0.7)
        for following, probability in ((place, stays), (before, back)):
            transitions[place, up, following] += probability
        transitions[place, up, after] += 1 - stays - back
    rewards[0, 1 - upstream[0]], rewards[-1, upstream[-1]] = 0.005, 1.0
    return transitions, rewards


def random_mdps(
    num_states: int = 10,
    num_actions: int = 3,
    horizon: int = 6,
    *,
    num_tasks: int = 1,
    seed: int = 0,
) -> TabularMDPs:
    """MDPs with random transitions and Bernoulli rewards."""
    generator = np.random.default_rng(random_stream(seed, "random MDPs").initial_seed())
    shape, prior = (num_states, num_actions), np.full(num_states, CONCENTRATION)
    tables = [
        (generator.dirichlet(prior, size=shape), generator.random(shape)) for _ in range(num_tasks)
    ]
    return _environment(tables, horizon, seed)


def gridworld(
    size: int = 5, horizon: int = 14, *, num_tasks: int = 1, seed: int = 0
) -> TabularMDPs:
    """A square with a goal at the far side; moves fail with probability 0.1. Goals pay once."""
    goals = size**2 - 1 - _integers((num_tasks,), size, seed, "goals")
    places = [[*divmod(place, size)] for place in range(size**2)] + [[size, size]]
    observations = torch.tensor(places, dtype=torch.float64)
    tables = [_grid(size, int(goal)) for goal in goals]
    return _environment(tables, horizon, seed, observations, largest_sum=1.0)


def _grid(size: int, goal: int) -> Tables:
    number = size**2
    transitions, rewards = np.zeros((number + 1, 4, number + 1)), np.zeros((number + 1, 4))
    for place in range(number):
        row, column = divmod(place, size)
        for action, (down, right) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
            moved = np.clip([row + down, column + right], 0, size - 1)
            transitions[place, action, moved[0] * size + moved[1]] += 0.9
            transitions[place, action, place] += 0.1
    transitions[[goal, number]] = 0.0
    transitions[[goal, number], :, number] = 1.0  # the end
    rewards[goal] = 1.0
    return transitions, rewards


def _environment(
    tables: list[Tables],
    horizon: int,
    seed: int,
    observations: torch.Tensor | None = None,
    largest_sum: float | None = None,
) -> TabularMDPs:
    num_states, num_actions = tables[0][1].shape
    shown = torch.eye(num_states) if observations is None else observations
    return tabular_mdps(
        [transitions for transitions, _ in tables],
        [rewards for _, rewards in tables],
        horizon=horizon,
        inputs=with_actions(shown, num_actions),
        seed=seed,
        reward_noise="bernoulli",
        value_range=(0.0, float(horizon) if largest_sum is None else largest_sum),
        true_features=one_hot_inputs(num_states, num_actions),
        decoding=np.arange(num_states),
    )


def _integers(shape: tuple[int, ...], number: int, seed: int, name: str) -> NDArray[np.int64]:
    drawn = torch.randint(number, shape, generator=random_stream(seed, name))
    return np.asarray(drawn.numpy())

"""Problems for tests of Bellman errors, and a second implementation, as plain as possible."""

import itertools

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.spatial import HalfspaceIntersection

from gfucb.core.random import random_stream
from gfucb.theory.linear_values import LinearValueClass
from gfucb.theory.small_mdp import MDPStage, linear_mdp_stage


def table(values) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def normal(seed: int, *shape: int) -> np.ndarray:
    generator = random_stream(seed, "test bellman", *shape)
    return torch.randn(shape, generator=generator, dtype=torch.float64).numpy()


def random_problem(
    seed: int, *, num_states=3, num_actions=2, feature_dim=2, num_tasks=1, bounded=False
):
    """Arbitrary stages, and classes that represent neither values nor backups."""
    sizes = {"num_states": num_states, "num_actions": num_actions, "feature_dim": feature_dim}
    stages = linear_mdp_stage(**sizes, num_tasks=num_tasks, mix=1.0, seed=seed).tasks
    shape = (num_states, num_actions, feature_dim)
    features, next_features = normal(seed, *shape), normal(seed + 1000, *shape)
    if not bounded:
        return stages, LinearValueClass(features), LinearValueClass(next_features, 1.0)
    # Features are positive: with signs, 0 <= Q gives a class without interior points, often {0}.
    current = LinearValueClass(np.abs(features), 0.7, 1.3)
    return stages, current, LinearValueClass(np.abs(next_features), 1.0, 0.8)


def naive_distance(value_class: LinearValueClass, target: np.ndarray) -> float:
    rows = value_class.features.reshape(target.size, -1)
    column = np.ones((target.size, 1))
    matrix = [np.hstack([rows, -column]), np.hstack([-rows, -column])]
    sides = [target.ravel(), -target.ravel()]
    if value_class.value_range is not None:
        matrix += [np.hstack([rows, 0 * column]), np.hstack([-rows, 0 * column])]
        sides += [np.full(target.size, value_class.value_range), np.zeros(target.size)]
    bound = value_class.head_bound
    box = (None, None) if bound is None else (-bound, bound)
    bounds = [box] * rows.shape[1] + [(0, None)]
    cost = np.eye(rows.shape[1] + 1)[-1]
    return linprog(cost, np.vstack(matrix), np.concatenate(sides), bounds=bounds).fun


def naive_backup(stage: MDPStage, following: LinearValueClass, next_head: np.ndarray) -> np.ndarray:
    return stage.rewards + stage.transitions @ (following.features @ next_head).max(axis=1)


def rays(following: LinearValueClass, seed: int, count: int) -> np.ndarray:
    """The origin, and the points where random rays from it leave the class."""
    directions = normal(seed, count, following.feature_dim)
    heads = [np.zeros(following.feature_dim)]
    for direction in directions:
        reach = following.head_bound / np.abs(direction).max()
        if following.value_range is not None:
            values = following.features.reshape(-1, len(direction)) @ direction
            if values.min() < 0:
                continue
            reach = min(reach, following.value_range / max(values.max(), 1e-12))
        heads.append(reach * direction)
    return np.stack(heads)


def error_by_greedy_policies(stage, current, following) -> float:
    """Vertices of each of the A^S regions by qhull, one linear program for each."""
    num_states, num_actions, feature_dim = following.features.shape
    normals, limits = following.constraints()
    worst = 0.0
    for policy in itertools.product(range(num_actions), repeat=num_states):
        chosen = following.features[np.arange(num_states), list(policy)]
        ties = (following.features - chosen[:, None]).reshape(-1, feature_dim)
        ties = ties[np.abs(ties).max(axis=1) > 0]
        matrix = np.vstack([normals, ties])
        sides = np.concatenate([limits, np.zeros(len(ties))])
        norms = np.linalg.norm(matrix, axis=1)[:, None]
        cost = -np.eye(feature_dim + 1)[-1]
        free = [(None, None)] * feature_dim + [(0, None)]
        center = linprog(cost, np.hstack([matrix, norms]), sides, bounds=free).x
        if center[-1] < 1e-7:
            continue
        halfspaces = np.hstack([matrix, -sides[:, None]])
        for vertex in HalfspaceIntersection(halfspaces, center[:-1]).intersections:
            worst = max(worst, naive_distance(current, naive_backup(stage, following, vertex)))
    return worst

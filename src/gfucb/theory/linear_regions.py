"""Linear regions of theta -> max_a phi(s, a)^T theta for a class of linear values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.tables import Array
from gfucb.theory.linear_values import LinearValueClass

# Largest number of combinations of hyperplanes; 6 states, 3 actions and 4 features are below it.
MAX_COMBINATIONS = 2_000_000
# Planes whose unit normals span a smaller volume count as dependent.
SMALLEST_VOLUME = 1e-9
# Largest distance at which a point of size one counts as on a plane.
ON_PLANE = 1e-9
_BATCH = 50_000


@dataclass(frozen=True, eq=False)
class LinearRegions:
    """Polytopes on each of which theta -> max_a phi(s, a)^T theta is linear for every s.

    Attributes:
        vertices: the vertices of all regions, [vertex, feature].
        members: which vertices belong to which region, [region, vertex].
    """

    vertices: Array
    members: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Planes:
    """Hyperplanes <normal, theta> = offset with unit normals.

    A tie (s, a, b) counts only where a is a best action in s. Planes that are no ties have
    `state` -1.
    """

    normals: Array
    offsets: Array
    states: NDArray[np.int64]
    actions: NDArray[np.int64]


def region_vertices(value_class: LinearValueClass, cuts: Array | None = None) -> Array:
    """All vertices of all regions of the class: [vertex, feature].

    A vertex is a member of the class at which k independent planes meet, out of those that bound
    the class and the ties phi(s, a)^T theta = phi(s, b)^T theta between best actions. All
    combinations of k planes are solved: comb(num_planes, k) systems of size k, with
    2 k + 2 S A + S A (A - 1) / 2 planes before duplicates are dropped. Additional planes
    theta_j = cuts[j] ([feature, cut]) make the regions smaller.
    """
    require_bounded_heads(value_class)
    cuts = np.zeros((value_class.feature_dim, 0)) if cuts is None else cuts
    planes = _planes_of(value_class, cuts)
    count = comb(len(planes.normals), value_class.feature_dim)
    if count > MAX_COMBINATIONS:
        raise InvalidInputError(
            f"{count} combinations of planes are more than the limit of {MAX_COMBINATIONS} for an "
            "exact value; use bellman_error_lower_bound, or fewer states, actions or features"
        )
    choices = combinations(range(len(planes.normals)), value_class.feature_dim)
    found = []
    while batch := list(islice(choices, _BATCH)):
        found.append(_meeting_points(value_class, planes, np.array(batch)))
    return _distinct(np.concatenate(found))


def require_bounded_heads(value_class: LinearValueClass) -> None:
    """Refuse a class of next values that may be unbounded."""
    if value_class.head_bound is None:
        raise InvalidInputError("the class of next values needs a head_bound, got None")


def linear_regions(value_class: LinearValueClass, cuts_per_axis: int = 0) -> LinearRegions:
    """The regions of the class: one for each greedy policy of a member, optionally cut further.

    `cuts_per_axis` evenly spaced planes per feature make the regions smaller. The regions are
    split state by state and cut by cut, and empty ones are dropped. The cost is the number of
    regions (at most A^S, and of order num_planes^k) times the number of vertices.
    """
    if cuts_per_axis < 0:
        raise InvalidInputError(f"cuts_per_axis must not be negative, got {cuts_per_axis}")
    vertices = region_vertices(value_class)
    cuts = np.linspace(vertices.min(axis=0), vertices.max(axis=0), cuts_per_axis + 2)[1:-1].T
    if cuts_per_axis > 0:
        vertices = region_vertices(value_class, cuts)
    members = np.ones((1, len(vertices)), dtype=np.bool_)
    for split in _splits(value_class, vertices, cuts):
        finer = (members[:, None] & split[None]).reshape(-1, len(vertices))
        members = np.unique(finer[finer.any(axis=1)], axis=0)
    return LinearRegions(vertices, members)


def _splits(
    value_class: LinearValueClass, vertices: Array, cuts: Array
) -> Iterator[NDArray[np.bool_]]:
    """For each state the greedy actions, for each cut the two sides: [side, vertex] each."""
    values = value_class.values(vertices)
    slack = _value_tolerances(value_class, vertices)[:, None, None]
    greedy = values >= values.max(axis=2, keepdims=True) - slack
    for state in range(greedy.shape[1]):
        yield greedy[:, state].T
    for coordinates, axis_cuts in zip(vertices.T, cuts, strict=True):
        near = ON_PLANE * np.maximum(1.0, np.abs(coordinates))
        for cut in axis_cuts:
            yield np.stack([coordinates <= cut + near, coordinates >= cut - near])


def _value_tolerances(value_class: LinearValueClass, points: Array) -> Array:
    """Largest difference by rounding of the values of two equally good actions: [point]."""
    largest = np.maximum(1.0, np.abs(points).max(axis=1))
    tolerances: Array = ON_PLANE * largest * max(1.0, float(np.abs(value_class.features).max()))
    return tolerances


def _planes_of(value_class: LinearValueClass, cuts: Array) -> _Planes:
    """Bounds of the class, cuts, and ties between two actions of one state."""
    features = value_class.features
    num_states, num_actions, feature_dim = features.shape
    normals, offsets = value_class.constraints()
    cut_normals = np.repeat(np.eye(feature_dim), cuts.shape[1], axis=0)
    pairs = list(combinations(range(num_actions), 2))
    ties = [(state, a, b) for state in range(num_states) for a, b in pairs]
    tie_normals = [features[state, a] - features[state, b] for state, a, b in ties]
    plain = len(normals) + len(cut_normals)
    return _distinct_planes(
        np.concatenate([normals, cut_normals, np.reshape(tie_normals, (-1, feature_dim))]),
        np.concatenate([offsets, cuts.reshape(-1), np.zeros(len(ties))]),
        np.array([-1] * plain + [state for state, _, _ in ties], dtype=np.int64),
        np.array([0] * plain + [a for _, a, _ in ties], dtype=np.int64),
    )


def _distinct_planes(
    normals: Array, offsets: Array, states: NDArray[np.int64], actions: NDArray[np.int64]
) -> _Planes:
    """Normalise the normals; drop planes without a direction and duplicates."""
    lengths = np.linalg.norm(normals, axis=1)
    valid = np.flatnonzero(lengths > SMALLEST_VOLUME)
    normals, offsets = normals[valid] / lengths[valid, None], offsets[valid] / lengths[valid]
    states, actions = states[valid], actions[valid]
    first = np.argmax(np.abs(normals) > SMALLEST_VOLUME, axis=1)
    signs = np.sign(np.take_along_axis(normals, first[:, None], axis=1))
    keys = np.column_stack([normals * signs, offsets * signs[:, 0], states, actions])
    _, chosen = np.unique(np.round(keys, 12) + 0.0, axis=0, return_index=True)
    return _Planes(normals[chosen], offsets[chosen], states[chosen], actions[chosen])


def _meeting_points(
    value_class: LinearValueClass, planes: _Planes, batch: NDArray[np.int64]
) -> Array:
    """Members of the class where the planes of a row of `batch` meet: [row, k] -> [point, k]."""
    matrices, offsets = planes.normals[batch], planes.offsets[batch]
    regular = np.abs(np.linalg.det(matrices)) > SMALLEST_VOLUME
    batch = batch[regular]
    points = np.linalg.solve(matrices[regular], offsets[regular][..., None])[..., 0]
    inside = _inside(value_class, points)
    points, batch = points[inside], batch[inside]
    values = value_class.values(points)
    best = values.max(axis=2) - _value_tolerances(value_class, points)[:, None]
    rows = np.arange(len(points))[:, None]
    states, actions = planes.states[batch], planes.actions[batch]
    ties_are_best = values[rows, states, actions] >= best[rows, states]
    return points[((states < 0) | ties_are_best).all(axis=1)]


def _inside(value_class: LinearValueClass, points: Array) -> NDArray[np.bool_]:
    """Which points belong to the class, up to rounding: [point, feature] -> [point]."""
    normals, limits = value_class.constraints()
    scales = np.maximum(np.linalg.norm(normals, axis=1), 1.0)
    largest = np.maximum(1.0, np.abs(points).max(axis=1))
    slack = ON_PLANE * largest[:, None] * scales
    return np.asarray((points @ normals.T <= limits + slack).all(axis=1))


def _distinct(points: Array) -> Array:
    """One point of each group that agrees to nine decimals."""
    _, chosen = np.unique(np.round(points, 9) + 0.0, axis=0, return_index=True)
    return points[np.sort(chosen)]

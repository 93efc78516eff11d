"""Inherent Bellman error of one stage: how far backups of linear values are from linear.

    I_h = sup_{Q' in Q_{h+1}}  inf_{Q in Q_h}  sup_{s,a} | Q(s, a) - r(s, a) - E max_a' Q'(s', a') |

(Lu et al., 2022, section 3.3, after Zanette et al., 2020.) Exact for small problems, and a
certified lower bound for larger ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.validation.tables import Array
from gfucb.theory.linear_programs import solve_program
from gfucb.theory.linear_regions import region_vertices, require_bounded_heads
from gfucb.theory.linear_values import LinearValueClass, NearestMember
from gfucb.theory.small_mdp import MDPStage

# An ascent stops when a step gains less than this.
SMALLEST_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class WorstNextValues:
    """Next values whose backup is far from the class, and the member nearest to that backup.

    Attributes:
        error: sup-norm distance of the backup of `next_head` to the class of stage h.
        next_head: theta' of the next values, [feature of the next class].
        head: theta of the nearest member, [feature of the class].
    """

    error: float
    next_head: Array
    head: Array


def inherent_bellman_error(
    stage: MDPStage, current: LinearValueClass, following: LinearValueClass
) -> WorstNextValues:
    """I_h = max over theta' in `following` of the distance of its backup to `current`.

    The backup r + P max_a' phi'^T theta' is linear on each region where the greedy policy is
    constant. The distance to a convex set is convex, so the supremum is attained at a vertex of a
    region. All vertices are enumerated (see `region_vertices` for the cost and the limit) and
    their distances computed (see `LinearValueClass.distances`): about one second for 6 states,
    3 actions and 4 features. The value is exact up to rounding, of the order of 1e-9.

    Args:
        stage: transitions and mean rewards from stage h to stage h + 1.
        current: Q_h; bounds are optional.
        following: Q_{h+1}; needs a head_bound.

    The distance of a constant feature to rewards 0 and 1 is one half:

    >>> stage = MDPStage(np.ones((2, 1, 1)), np.array([[0.0], [1.0]]))
    >>> constant = LinearValueClass(np.ones((2, 1, 1)))
    >>> next_values = LinearValueClass(np.ones((1, 1, 1)), head_bound=1.0)
    >>> round(inherent_bellman_error(stage, constant, next_values).error, 9)
    0.5
    """
    check_shapes(stage, current, following)
    next_heads = region_vertices(following)
    errors = current.distances(backup_tables(stage, following, next_heads))
    return _worst_at(stage, current, following, next_heads[int(errors.argmax())])


def bellman_error_lower_bound(
    stage: MDPStage,
    current: LinearValueClass,
    following: LinearValueClass,
    *,
    num_restarts: int = 16,
    max_steps: int = 100,
    seed: int = 0,
) -> WorstNextValues:
    """The largest distance found by ascents from random theta': a lower bound of I_h, at any size.

    Any theta' certifies the distance of its backup as a lower bound; see `ascend` for a step.
    Costs at most 2 * num_restarts * max_steps linear programs with k + 1 variables and about
    4 S A constraints.
    """
    check_shapes(stage, current, following)
    if num_restarts < 1 or max_steps < 0:
        raise InvalidInputError(
            "num_restarts must be at least 1 and max_steps at least 0, "
            f"got {num_restarts} and {max_steps}"
        )
    ends = [
        ascend(stage, current, following, start, max_steps)
        for start in random_next_heads(following, num_restarts, seed)
    ]
    return max(ends, key=lambda end: end.error)


def ascend(
    stage: MDPStage,
    current: LinearValueClass,
    following: LinearValueClass,
    next_head: Array,
    max_steps: int = 100,
) -> WorstNextValues:
    """Ascend from theta' to a local maximum of the distance; no step decreases it.

    The multipliers of the inner program give a linear function of theta' that equals the distance
    at the current point. It is a lower bound wherever the greedy actions with a negative weight
    remain greedy. Each step maximises that function there, by one more linear program.
    """
    member = current.nearest(backup_tables(stage, following, next_head[None])[0])
    for _ in range(max_steps):
        candidate = _maximise_minorant(stage, following, next_head, member)
        reached = current.nearest(backup_tables(stage, following, candidate[None])[0])
        if reached.error <= member.error + SMALLEST_GAIN:
            break
        next_head, member = candidate, reached
    return WorstNextValues(member.error, next_head, member.head)


def random_next_heads(following: LinearValueClass, num_heads: int, seed: int) -> Array:
    """Members of a class: vertices in random directions, shrunk at random, [head, feature].

    One linear program each. Shrinking keeps them inside, because theta = 0 is a member.
    """
    require_bounded_heads(following)
    generator = random_stream(seed, "next heads")
    shape = (num_heads, following.feature_dim)
    directions = torch.randn(shape, generator=generator, dtype=torch.float64).numpy()
    lengths = torch.rand(num_heads, 1, generator=generator, dtype=torch.float64).numpy()
    normals, limits = following.constraints()
    return lengths * np.stack([_maximise(each, normals, limits) for each in directions])


def backup_tables(stage: MDPStage, following: LinearValueClass, next_heads: Array) -> Array:
    """Backups r + P max_a' phi'^T theta' as flat tables: [choice, feature] -> [choice, row]."""
    return stage.backups(following.values(next_heads)).reshape(len(next_heads), -1)


def check_shapes(stage: MDPStage, current: LinearValueClass, following: LinearValueClass) -> None:
    """Refuse classes whose states or actions are not those of the stage."""
    require_bounded_heads(following)
    if current.features.shape[:2] != stage.rewards.shape:
        raise InvalidInputError(
            f"features of stage h must have the states and actions of the stage, "
            f"{stage.rewards.shape}, got {current.features.shape[:2]}"
        )
    if following.features.shape[0] != stage.num_next_states:
        raise InvalidInputError(
            f"features of stage h + 1 must have one row per next state, "
            f"{stage.num_next_states}, got {following.features.shape[0]}"
        )


def _worst_at(
    stage: MDPStage, current: LinearValueClass, following: LinearValueClass, next_head: Array
) -> WorstNextValues:
    member = current.nearest(backup_tables(stage, following, next_head[None])[0])
    return WorstNextValues(member.error, next_head, member.head)


def _maximise_minorant(
    stage: MDPStage, following: LinearValueClass, next_head: Array, member: NearestMember
) -> Array:
    """The theta' with the largest linear minorant of the distance at `next_head`.

    The minorant is sum_s' weight(s') phi'(s', greedy(s'))^T theta' + constant, with
    weight = P^T slope. Where a weight is positive, max_a' can only add to it; where it is
    negative, theta' must keep the greedy action.
    """
    weights = np.einsum("sat,sa->t", stage.transitions, member.slope.reshape(stage.rewards.shape))
    greedy = following.values(next_head[None])[0].argmax(axis=1)
    chosen = following.features[np.arange(len(greedy)), greedy]
    keeps_greedy = (following.features - chosen[:, None])[weights < 0]
    keeps_greedy = keeps_greedy.reshape(-1, following.feature_dim)
    normals, limits = following.constraints()
    return _maximise(
        weights @ chosen,
        np.concatenate([normals, keeps_greedy]),
        np.concatenate([limits, np.zeros(len(keeps_greedy))]),
    )


def _maximise(direction: Array, normals: Array, limits: Array) -> Array:
    """The theta with the largest <direction, theta> subject to normals theta <= limits."""
    return solve_program(-direction, normals, limits).point

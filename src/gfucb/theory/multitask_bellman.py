"""Inherent Bellman error of several tasks that must share one representation per stage.

    I_h = sup_{phi', theta'_1..M}  min_{phi in Phi}  max_i  e_i(phi, phi'^T theta'_i),
    e_i(phi, Q') = inf_theta  sup_{s,a} | phi(s, a)^T theta - (T_i Q')(s, a) |

(Lu et al., 2022, Assumption 2.1, after Hu et al., 2021), for a finite class Phi. The shared phi is
chosen after all next values, so this is neither the largest single-task error nor a minimum over
phi of suprema. A minimum of convex functions may also have its maximum away from all vertices. The
functions therefore return a certified interval, which is a single number in many cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.tables import Array
from gfucb.theory.bellman import ascend, backup_tables, check_shapes, random_next_heads
from gfucb.theory.linear_regions import linear_regions
from gfucb.theory.linear_values import LinearValueClass
from gfucb.theory.small_mdp import MDPStage

# Sets of representations are bits of an integer, and the search may visit all of them.
MAX_REPRESENTATIONS = 12
EXACT_GAP = 1e-9


@dataclass(frozen=True, eq=False)
class BellmanErrorInterval:
    """lower <= I_h <= upper, with next values that attain the lower end.

    Attributes:
        lower: attained by `next_heads`, so certified.
        upper: certified by convexity on linear regions; infinite for a lower bound alone.
        next_representation: which of the next classes the lower end uses.
        next_heads: theta'_i of that class, [task, feature].
    """

    lower: float
    upper: float
    next_representation: int
    next_heads: Array

    @property
    def is_exact(self) -> bool:
        """Whether both ends agree to 1e-9."""
        return self.upper - self.lower <= EXACT_GAP


def multitask_bellman_error(
    tasks: Sequence[MDPStage],
    current: Sequence[LinearValueClass],
    following: Sequence[LinearValueClass],
    *,
    cuts_per_axis: int = 0,
) -> BellmanErrorInterval:
    """A certified interval for the multitask I_h; `is_exact` says when it is one number.

    For fixed phi' let e_i(phi, theta') be the distance of task i, convex in theta' on a region.
    Lower end: the worst choice of one vertex per task, max min_phi max_i e_i(phi, vertex_i).
    Upper end: the worst choice of one region per task, with e_i replaced by its maximum over the
    vertices of the region, which bounds it by convexity. `worst_joint_choice` solves both exactly.
    The ends are equal with one representation, and often when different tasks make different
    representations bad. Otherwise `cuts_per_axis` makes the regions smaller and the interval
    narrower, about in proportion. Grids of 0, 1, 3, 7 cuts are nested, and so are their intervals.

    Costs the enumeration of `region_vertices` for each phi', then one family of distances per
    (phi', task, phi).

    Args:
        tasks: one stage per task.
        current: Phi at stage h with its bounds, one class per representation.
        following: the same at stage h + 1; each needs a head_bound.
        cuts_per_axis: number of planes per feature that cut the regions.
    """
    _check(tasks, current, following)
    intervals = [
        _interval_for(tasks, current, following[index], index, cuts_per_axis)
        for index in range(len(following))
    ]
    return _union_of(intervals)


def multitask_bellman_error_lower_bound(
    tasks: Sequence[MDPStage],
    current: Sequence[LinearValueClass],
    following: Sequence[LinearValueClass],
    *,
    num_restarts: int = 8,
    seed: int = 0,
) -> BellmanErrorInterval:
    """A lower bound of the multitask I_h at any size; `upper` is infinite.

    Candidates are the ends of single-task ascents, for every task and representation, and their
    random starts; the worst choice of one candidate per task is exact. Costs
    num_restarts * len(following) * len(current) * len(tasks) ascents.
    """
    _check(tasks, current, following)
    if num_restarts < 1:
        raise InvalidInputError(f"num_restarts must be at least 1, got {num_restarts}")
    intervals = []
    for index, next_class in enumerate(following):
        starts = random_next_heads(next_class, num_restarts, seed)
        ends = [
            ascend(task, representation, next_class, start).next_head
            for task in tasks
            for representation in current
            for start in starts
        ]
        candidates = np.concatenate([starts, np.stack(ends)])
        lower, choice = worst_joint_choice(_error_tables(tasks, current, next_class, candidates))
        intervals.append(BellmanErrorInterval(lower, np.inf, index, candidates[choice]))
    return _union_of(intervals)


def worst_joint_choice(errors: Sequence[Array]) -> tuple[float, list[int]]:
    """The choices, one per task, with the largest min_phi max_i errors[i][choice_i, phi].

    A level is reached when the sets { phi : errors >= level } of the chosen rows cover Phi. The
    reachable unions are found task by task, and the largest level by bisection over all values.
    Costs O(log(values) * tasks * 4^representations) at worst. Each table of errors is
    [choice, representation]; the largest level comes first in the answer.
    """
    levels = np.unique(np.concatenate([table.reshape(-1) for table in errors]))
    low, high = 0, len(levels) - 1
    choices = _choices_reaching(errors, levels[0])
    while low < high:
        middle = (low + high + 1) // 2
        better = _choices_reaching(errors, levels[middle])
        if better:
            low, choices = middle, better
        else:
            high = middle - 1
    return float(levels[low]), choices


def _choices_reaching(errors: Sequence[Array], level: float) -> list[int]:
    """One row per task such that every representation errs at least `level`; empty if none."""
    bits = 1 << np.arange(errors[0].shape[1])
    reached: dict[int, list[int]] = {0: []}
    for table in errors:
        covers, rows = np.unique((table >= level) @ bits, return_index=True)
        options = list(zip(covers.tolist(), rows.tolist(), strict=True))
        reached = {
            have | cover: [*chosen, row]
            for have, chosen in reached.items()
            for cover, row in options
        }
    return reached.get(int(bits.sum()), [])


def _interval_for(
    tasks: Sequence[MDPStage],
    current: Sequence[LinearValueClass],
    next_class: LinearValueClass,
    index: int,
    cuts_per_axis: int,
) -> BellmanErrorInterval:
    """The interval for one representation of the next stage."""
    regions = linear_regions(next_class, cuts_per_axis)
    errors = _error_tables(tasks, current, next_class, regions.vertices)
    lower, choice = worst_joint_choice(errors)
    upper, _ = worst_joint_choice([_largest_per_region(table, regions.members) for table in errors])
    return BellmanErrorInterval(lower, upper, index, regions.vertices[choice])


def _error_tables(
    tasks: Sequence[MDPStage],
    current: Sequence[LinearValueClass],
    next_class: LinearValueClass,
    next_heads: Array,
) -> list[Array]:
    """Distances [choice, representation] of each task."""
    tables = [backup_tables(task, next_class, next_heads) for task in tasks]
    return [np.column_stack([each.distances(table) for each in current]) for table in tables]


def _largest_per_region(errors: Array, members: NDArray[np.bool_]) -> Array:
    """[vertex, representation], [region, vertex] -> [region, representation]."""
    return np.stack([errors[inside].max(axis=0) for inside in members])


def _union_of(intervals: Sequence[BellmanErrorInterval]) -> BellmanErrorInterval:
    """The interval of the largest of several errors."""
    best = max(intervals, key=lambda interval: interval.lower)
    upper = max(interval.upper for interval in intervals)
    return BellmanErrorInterval(best.lower, upper, best.next_representation, best.next_heads)


def _check(
    tasks: Sequence[MDPStage],
    current: Sequence[LinearValueClass],
    following: Sequence[LinearValueClass],
) -> None:
    for name, members in (("tasks", tasks), ("current", current), ("following", following)):
        if not members:
            raise InvalidInputError(f"{name} must not be empty")
    if len(current) > MAX_REPRESENTATIONS:
        raise InvalidInputError(
            f"at most {MAX_REPRESENTATIONS} representations at stage h, got {len(current)}"
        )
    for stage in tasks:
        for value_class in current:
            check_shapes(stage, value_class, following[0])
        for next_class in following:
            check_shapes(stage, current[0], next_class)

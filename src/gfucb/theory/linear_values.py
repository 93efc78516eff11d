"""The class of linear action values at one stage, and the distance of a table to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.tables import Array, validate_table
from gfucb.theory.linear_programs import solve_program

# Distances are computed until their certified bounds agree to this tolerance.
DISTANCE_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class NearestMember:
    """The member phi^T head nearest to one table in the sup norm, with its certificate.

    Attributes:
        error: the distance.
        head: [feature].
        slope: a subgradient of the distance in the table, [row]; sum |slope| <= 1.
        intercept: distance(any table) >= <slope, table> + intercept, with equality here.
        active: which of the constraints of the linear program carry a multiplier, [constraint].
    """

    error: float
    head: Array
    slope: Array
    intercept: float
    active: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LinearValueClass:
    """{ Q = phi^T theta :  |theta_j| <= head_bound,  0 <= Q(s, a) <= value_range }.

    A polytope in theta that contains theta = 0. Boxes instead of Euclidean balls make the
    suprema exactly computable.

    Attributes:
        features: phi(s, a), [state, action, feature].
        head_bound: largest |theta_j|, or None for no bound.
        value_range: largest value (0 is the smallest), or None for no range at all.
    """

    features: Array
    # Paper: theta ranges over R^k; the error is then infinite unless P max_a' Q' is exactly linear.
    head_bound: float | None = None
    value_range: float | None = None

    def __post_init__(self) -> None:
        validate_table(self.features, "features", "state action feature")
        for name in ("head_bound", "value_range"):
            bound = getattr(self, name)
            if bound is not None and not (math.isfinite(bound) and bound > 0):
                raise InvalidInputError(f"{name} must be positive and finite or None, got {bound}")

    @property
    def feature_dim(self) -> int:
        """Width k of the representation."""
        return int(self.features.shape[2])

    @property
    def feature_rows(self) -> Array:
        """The features with states and actions in one axis: [row, feature]."""
        return self.features.reshape(-1, self.feature_dim)

    def values(self, heads: Array) -> Array:
        """phi^T theta: [choice, feature] -> [choice, state, action]."""
        values: Array = np.einsum("saf,cf->csa", self.features, heads)
        return values

    def constraints(self) -> tuple[Array, Array]:
        """(G, g) with { theta : G theta <= g } the class: [constraint, feature], [constraint]."""
        normals, limits = [np.zeros((0, self.feature_dim))], [np.zeros(0)]
        if self.head_bound is not None:
            axes = np.eye(self.feature_dim)
            normals += [axes, -axes]
            limits += [np.full(2 * self.feature_dim, self.head_bound)]
        if self.value_range is not None:
            rows = self.feature_rows
            normals += [rows, -rows]
            limits += [np.full(len(rows), self.value_range), np.zeros(len(rows))]
        return np.concatenate(normals), np.concatenate(limits)

    def nearest(self, table: Array) -> NearestMember:
        """The theta with the smallest max_(s,a) |phi^T theta - table|, for a table [row].

        Variables (theta, e): minimise e subject to |phi^T theta - table| <= e and G theta <= g.
        One program with k + 1 variables and 2 states * actions + len(g) constraints. Its dual
        maximises <slope, table> + intercept over sum |slope| <= 1, so the multipliers bound the
        distance of every other table from below.
        """
        matrix, sides = self._program(table[None])
        cost = np.append(np.zeros(self.feature_dim), 1.0)
        solution = solve_program(cost, matrix, sides[0])
        head, multipliers = solution.point[:-1], solution.multipliers
        num_rows = len(table)
        slope = multipliers[num_rows : 2 * num_rows] - multipliers[:num_rows]
        _, limits = self.constraints()
        return NearestMember(
            error=float(np.abs(self.feature_rows @ head - table).max()),
            head=head,
            slope=slope,
            intercept=-float(multipliers[2 * num_rows :] @ limits),
            active=np.flatnonzero(multipliers > DISTANCE_TOLERANCE),
        )

    def distances(self, tables: Array) -> Array:
        """Sup-norm distance of each table to the class: [choice, row] -> [choice], to 1e-10.

        The solution of one program also bounds the other distances (multiparametric programming).
        Its multipliers bound every distance from below. Heads that keep the same constraints
        tight are affine in the table and, where they are in the class, bound the distance from
        above. One program is solved per combination of tight constraints, at most one per table.
        """
        tables, inverse = np.unique(tables, axis=0, return_inverse=True)
        least_squares = tables @ np.linalg.pinv(self.feature_rows).T
        lower, upper = np.zeros(len(tables)), self._errors_if_inside(least_squares, tables)
        while (gaps := upper - lower).max() > DISTANCE_TOLERANCE:
            index = int(gaps.argmax())
            member = self.nearest(tables[index])
            lower = np.maximum(lower, tables @ member.slope + member.intercept)
            heads = self._heads_with_same_tight_constraints(member, tables[index], tables)
            upper = np.minimum(upper, self._errors_if_inside(heads, tables))
            lower[index] = upper[index] = member.error
        return upper[inverse.reshape(-1)]

    def _program(self, tables: Array) -> tuple[Array, Array]:
        """Matrix [row, feature + 1] and right-hand sides [choice, row] of the distance program."""
        rows, (normals, limits) = self.feature_rows, self.constraints()
        ones, zeros = np.ones((len(rows), 1)), np.zeros((len(normals), 1))
        matrix = np.block([[rows, -ones], [-rows, -ones], [normals, zeros]])
        repeated = np.broadcast_to(limits, (len(tables), len(limits)))
        return matrix, np.concatenate([tables, -tables, repeated], axis=1)

    def _heads_with_same_tight_constraints(
        self, member: NearestMember, table: Array, tables: Array
    ) -> Array:
        """Heads [choice, feature] that keep the active constraints of `member` tight."""
        matrix, sides = self._program(np.concatenate([table[None], tables]))
        tight = sides[:, member.active]
        moves = (tight[1:] - tight[0]) @ np.linalg.pinv(matrix[member.active]).T
        heads: Array = member.head + moves[:, :-1]
        return heads

    def _errors_if_inside(self, heads: Array, tables: Array) -> Array:
        """Largest |phi^T theta - table| where theta is in the class, infinite where it is not."""
        normals, limits = self.constraints()
        inside = (heads @ normals.T <= limits + DISTANCE_TOLERANCE).all(axis=1)
        errors = np.abs(heads @ self.feature_rows.T - tables).max(axis=1)
        return np.where(inside, errors, np.inf)

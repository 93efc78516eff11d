"""Linear programs in free variables, solved by HiGHS with its tightest tolerances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gfucb.core.validation.tables import Array


@dataclass(frozen=True, eq=False)
class ProgramSolution:
    """A minimiser and the multipliers that prove it: cost = -matrix^T multipliers."""

    point: Array
    multipliers: Array


def solve_program(cost: Array, matrix: Array, sides: Array) -> ProgramSolution:
    """Minimise <cost, x> subject to matrix x <= sides: [n], [row, n], [row].

    One call of scipy's HiGHS, about a millisecond for the sizes of this package. A program that
    is not solved to optimality raises an error.
    """
    # Runs load this module for their radii; few of them solve programs.
    from scipy.optimize import linprog

    solution = linprog(
        cost,
        A_ub=matrix,
        b_ub=sides,
        bounds=(None, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solution.status != 0:
        raise ArithmeticError(f"HiGHS did not solve a linear program: {solution.message}")
    return ProgramSolution(
        np.asarray(solution.x, dtype=np.float64),
        -np.asarray(solution.ineqlin.marginals, dtype=np.float64),
    )

"""Closed-form upper bounds on eluder dimensions, and independence in balls of linear functions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.theory.finite_classes import Floats, Table, finite_table
from gfucb.theory.requirements import require_positive

# Negative eigenvalues up to this share of the largest count as rounding.
ROUNDING = 1e-10


def finite_inputs_bound(num_inputs: int) -> int:
    """dim_E <= |X|: no input is independent of predecessors that include it. O(1).

    Source: Russo and Van Roy 2013, section 4.
    """
    require_positive(num_inputs=num_inputs)
    return num_inputs


def linear_eluder_bound(
    input_dim: int, scale: float, *, norm_bound: float, input_bound: float = 1.0
) -> float:
    """dim_E <= 3 d e/(e-1) ln(3 + 3 (2 S gamma / eps)^2) + 1 for x -> <theta, phi(x)>. O(1).

    Here |theta| <= S = `norm_bound` and |phi(x)| <= gamma = `input_bound` in d = `input_dim`
    dimensions. Source: Russo and Van Roy 2013, proposition 6 (constants as recalled).
    """
    return generalised_linear_eluder_bound(
        input_dim, scale, norm_bound=norm_bound, input_bound=input_bound
    )


def generalised_linear_eluder_bound(
    input_dim: int,
    scale: float,
    *,
    norm_bound: float,
    input_bound: float = 1.0,
    largest_slope: float = 1.0,
    slope_ratio: float = 1.0,
) -> float:
    """dim_E <= 3 d r^2 e/(e-1) ln(3 r^2 + 3 r^2 (2 S gamma h / eps)^2) + 1. O(1).

    For x -> link(<theta, phi(x)>) with slopes in [h / r, h]: h = `largest_slope`, r =
    `slope_ratio` >= 1, the rest as in `linear_eluder_bound`. Source: Russo and Van Roy 2013,
    proposition 7 (constants as recalled), with features scaled to norm gamma.
    """
    require_positive(
        input_dim=input_dim,
        scale=scale,
        norm_bound=norm_bound,
        input_bound=input_bound,
        largest_slope=largest_slope,
        slope_ratio=slope_ratio,
    )
    if slope_ratio < 1:
        raise InvalidInputError(
            f"slope_ratio is the largest over the smallest slope, at least 1, got {slope_ratio}"
        )
    squared_range = (2 * norm_bound * input_bound * largest_slope / scale) ** 2
    weight = 3 * slope_ratio**2
    return input_dim * weight * E_RATIO * math.log(weight * (1 + squared_range)) + 1


def quadratic_eluder_bound(
    feature_dim: int, scale: float, *, norm_bound: float, input_bound: float = 1.0
) -> float:
    """dim_E <= p (4p-1) e/(e-1) ln((1 + (2 p C^2 S / eps)^2) (4p-1)) + 1. O(1).

    For x -> phi(x)^T Theta phi(x) with |Theta| <= S = `norm_bound`, |phi(x)| <= C =
    `input_bound` in p = `feature_dim` dimensions. Source: Osband and Van Roy 2014
    (arXiv 1406.1853), constants as recalled.
    """
    require_positive(
        feature_dim=feature_dim, scale=scale, norm_bound=norm_bound, input_bound=input_bound
    )
    weight = 4 * feature_dim - 1
    squared_range = (2 * feature_dim * input_bound**2 * norm_bound / scale) ** 2
    return feature_dim * weight * E_RATIO * math.log(weight * (1 + squared_range)) + 1


E_RATIO = math.e / (math.e - 1)


@dataclass(frozen=True)
class LinearIndependence:
    """Largest difference of two linear functions at an input, and whether it exceeds the scale."""

    largest_difference: float
    is_independent: bool


def is_independent_linear(
    x: Tensor | Floats | list[float], gram: Table, scale: float, norm_bound: float
) -> LinearIndependence:
    """Whether `x` is `scale`-independent of inputs with Gram matrix V, in a ball of linear maps.

    The largest difference  max |<rho, x>|  s.t.  rho^T V rho <= eps^2, |rho| <= 2 S  is, by the
    S-lemma,  min over l in [0, 1] of  sqrt(x^T (l V / eps^2 + (1 - l) I / (4 S^2))^-1 x):
    a convex function of one variable. Source: Lagrange duality. O(d^3).

    Args:
        x: the input, [input dim].
        gram: V = sum of x x^T over the predecessors, [input dim, input dim].
        scale: eps.
        norm_bound: S, the radius of the ball of functions; differences have radius 2 S.
    """
    require_positive(scale=scale, norm_bound=norm_bound)
    vector = finite_table(x, "input dim")
    eigenvalues, basis = np.linalg.eigh(semidefinite(gram, len(vector)))
    weights = (basis.T @ vector) ** 2
    data, ball = eigenvalues.clip(min=0) / scale**2, 1 / (4 * norm_bound**2)
    largest = math.sqrt(smallest_dual(weights, data, ball))
    return LinearIndependence(largest, largest > scale)


def smallest_dual(weights: Floats, data: Floats, ball: float) -> float:
    """Minimum over l in [0, 1] of  sum_j weights_j / (l data_j + (1 - l) ball)."""
    # Components of the input that are only rounding would make the dual diverge near l = 1.
    real = weights > ROUNDING**2 * weights.sum()
    weights, data = weights[real], data[real]
    if not len(weights):
        return 0.0
    # As in `linear_programs`: runs load this module and rarely call this function.
    from scipy.optimize import brentq

    def slope(share: float) -> float:
        return float((weights * (ball - data) / (share * data + (1 - share) * ball) ** 2).sum())

    if slope(0.0) >= 0:
        share = 0.0
    elif data.min() > 0 and slope(1.0) <= 0:
        share = 1.0
    else:
        end = 1.0 if data.min() > 0 else 1 - 1e-15
        share = end if slope(end) <= 0 else brentq(slope, 0.0, end, xtol=1e-16)
    return float((weights / (share * data + (1 - share) * ball)).sum())


def semidefinite(gram: Table, input_dim: int) -> Floats:
    """The Gram matrix as an array; refuses other sizes, asymmetry and negative eigenvalues."""
    matrix = finite_table(gram, "input dim", "input dim")
    if matrix.shape != (input_dim, input_dim) or not np.allclose(matrix, matrix.T):
        raise InvalidInputError(
            f"gram must be a symmetric matrix [{input_dim}, {input_dim}], like the input, "
            f"got shape {list(matrix.shape)}"
        )
    eigenvalues = np.linalg.eigvalsh(matrix)
    if eigenvalues[0] < -ROUNDING * max(1.0, eigenvalues[-1]):
        raise InvalidInputError(
            f"gram must have no negative eigenvalue, the smallest is {eigenvalues[0]:.3g}"
        )
    return matrix

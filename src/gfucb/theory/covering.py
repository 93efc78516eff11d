"""Covering numbers in the sup norm: greedy nets and packings of finite classes, closed forms.

N(scale) is the least number of balls of radius `scale`, centred in the class, that cover it;
a packing is a set of functions more than `scale` apart. Packing(2 scale) <= N(scale) <=
packing(scale) for the largest packings (Kolmogorov and Tikhomirov 1959).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.theory.finite_classes import Floats, Table, finite_table
from gfucb.theory.requirements import require_counts, require_not_negative, require_positive


@dataclass(frozen=True)
class CoverBounds:
    """Bounds on the covering number of a finite class at `scale`, with their certificates.

    Attributes:
        scale: the radius of the balls.
        net: indices of functions; every function is within `scale` of one of them.
        packing: indices of functions more than 2 `scale` apart, so that no ball contains two.
    """

    scale: float
    net: tuple[int, ...]
    packing: tuple[int, ...]

    @property
    def upper(self) -> int:
        """Size of the net: the covering number is at most this."""
        return len(self.net)

    @property
    def lower(self) -> int:
        """Size of the packing: the covering number is at least this."""
        return len(self.packing)


def greedy_net(values: Table, scale: float) -> tuple[int, ...]:
    """Functions such that every function is within `scale` of one: greedy set cover.

    Each step adds the ball that covers most uncovered functions. The net has at most
    1 + ln(functions) times the smallest size (Chvatal 1979). O(functions^2 inputs).

    Args:
        values: [function, input] (sup over inputs of |f - g|), or features
            [function, input, feature] (sup over inputs of the l2 norm).
        scale: the radius of the balls.
    """
    close = sup_distances(values, scale) <= scale
    uncovered = np.ones(len(close), dtype=bool)
    net = []
    while uncovered.any():
        net.append(int((close & uncovered).sum(axis=1).argmax()))
        uncovered &= ~close[net[-1]]
    return tuple(net)


def greedy_packing(values: Table, scale: float) -> tuple[int, ...]:
    """Functions more than `scale` apart to which none can be added: farthest point first.

    A maximal packing is also a net of the same scale (Gonzalez 1985). O(functions^2 inputs).
    The arguments are those of `greedy_net`.
    """
    distances = sup_distances(values, scale)
    packing, nearest = [0], distances[0]
    while nearest.max() > scale:
        packing.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, distances[packing[-1]])
    return tuple(packing)


def covering_bounds(values: Table, scale: float) -> CoverBounds:
    """Greedy bounds  packing(2 scale) <= N(scale) <= min(net, packing(scale)).

    Source, cost and arguments: see `greedy_net` and `greedy_packing`.
    """
    nets = greedy_net(values, scale), greedy_packing(values, scale)
    return CoverBounds(scale, min(nets, key=len), greedy_packing(values, 2 * scale))


def linear_log_covering(
    feature_dim: int, input_dim: int, scale: float, *, norm_bound: float, input_bound: float = 1.0
) -> float:
    """Logarithm of N: log N <= k d log(1 + 2 R C / scale) for x -> B x, |B|_F <= R, |x| <= C. O(1).

    The volume bound for a ball of radius R in k d dimensions (Vershynin 2018, corollary
    4.2.13): a change of B by scale / C in Frobenius norm changes no feature by more than scale.
    """
    require_counts(feature_dim=feature_dim, input_dim=input_dim)
    return lipschitz_log_covering(
        feature_dim * input_dim, scale, norm_bound=norm_bound, lipschitz=input_bound
    )


def lipschitz_log_covering(
    num_parameters: int, scale: float, *, norm_bound: float, lipschitz: float
) -> float:
    """Logarithm of N: log N <= P log(1 + 2 L R / scale), P parameters in a ball of radius R. O(1).

    For classes with sup_x |f_a(x) - f_b(x)| <= L |a - b|. Source: the volume bound, Vershynin
    2018, corollary 4.2.13, at radius scale / L.
    """
    require_positive(num_parameters=num_parameters, scale=scale)
    require_not_negative(norm_bound=norm_bound, lipschitz=lipschitz)
    return num_parameters * math.log1p(2 * lipschitz * norm_bound / scale)


def sup_distances(values: Table, scale: float) -> Floats:
    """Distances [function, function] in the sup norm; refuses a scale that is not positive."""
    require_positive(scale=scale)
    rank = values.ndim if isinstance(values, Tensor) else np.ndim(values)
    if rank not in (2, 3):
        raise InvalidInputError(
            f"a class is a table [function, input] or [function, input, feature], got {rank} axes"
        )
    table = finite_table(values, *("function", "input", "feature")[:rank])
    table = table.reshape(*table.shape[:2], -1)
    # Row by row: a table of all differences would need too much memory for large classes.
    return np.stack([np.linalg.norm(table - row, axis=2).max(axis=1) for row in table])

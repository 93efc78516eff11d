"""Regret bounds as numbers with their constants: Theorems 1 and 2, as printed and repaired.

All of them bound the regret summed over the M tasks. Each function is O(1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gfucb.core.errors import InvalidInputError
from gfucb.theory.requirements import (
    require_counts,
    require_not_negative,
    require_positive,
    require_probability,
)


@dataclass(frozen=True)
class BanditSize:
    """The size of a multitask bandit problem."""

    num_tasks: int
    """M."""
    feature_dim: int
    """k."""
    num_rounds: int
    """T."""

    def __post_init__(self) -> None:
        require_counts(
            num_tasks=self.num_tasks, feature_dim=self.feature_dim, num_rounds=self.num_rounds
        )

    @property
    def cover_scale(self) -> float:
        """Alpha = 1 / (k M T), the paper's choice."""
        return 1 / (self.feature_dim * self.num_tasks * self.num_rounds)


def printed_theorem_1(size: BanditSize, *, eluder_dimension: float, squared_radius: float) -> float:
    """Theorem 1 as printed (appendix A, (1)): 1/T + min(d, T) + 4 sqrt(M d beta_T T).

    d is the eluder dimension of the single-task class. This is not a bound for M >= 2: Lemma 2
    counts wide rounds of the *sum* class with the dimension of one task (see `theory.eluder`), and
    the second term lacks the range 2 M of a sum of M values.
    """
    require_not_negative(eluder_dimension=eluder_dimension, squared_radius=squared_radius)
    rounds = size.num_rounds
    root = math.sqrt(size.num_tasks * eluder_dimension * squared_radius * rounds)
    return 1 / rounds + min(eluder_dimension, rounds) + 4 * root


def sum_class_theorem_1(
    size: BanditSize, *, eluder_dimension: float, squared_radius: float, scale: float
) -> float:
    """T alpha + 2 M min(d, T) + 4 sqrt(M d beta_T T), d the dimension of the sum class.

    The printed argument with its range restored. With d of the sum class it holds for every M
    (Russo and Van Roy 2013). For linear classes that dimension is at least M times the dimension
    of one task, so `repaired_theorem_1` is the better bound.
    """
    require_positive(scale=scale)
    require_not_negative(eluder_dimension=eluder_dimension, squared_radius=squared_radius)
    rounds, tasks = size.num_rounds, size.num_tasks
    root = math.sqrt(tasks * eluder_dimension * squared_radius * rounds)
    return rounds * scale + 2 * tasks * min(eluder_dimension, rounds) + 4 * root


def repaired_theorem_1(
    size: BanditSize,
    *,
    generalised_dimension: float,
    squared_radius: float,
    regulariser: float = 1.0,
    value_bound: float = 1.0,
) -> float:
    """Theorem 1 with the generalised eluder dimension of one task.

        sqrt(T M d (M lambda + 4 beta_T)) + 2 B M d,   d >= sum_t min(1, D_t^2) for every task

    D_t^2 = sup_{f, g} (f - g)^2(x_t) / (lambda + sum_{s<t} (f - g)^2(x_s)). The squared
    distance of two members of a set of squared radius beta is at most 4 beta. If the set contains
    the true function f*, then sum_i (f_t - f*)_i <= sqrt(sum_i D_i^2) sqrt(M lambda + 4 beta).
    Cauchy-Schwarz over t gives the first term. The second counts inputs with D > 1, which cost at
    most 2 B each when members satisfy |f| <= B. D^2 is that of Gentile et al. 2022 and Agarwal et
    al. 2023; the sum over tasks is ours.
    """
    require_positive(regulariser=regulariser, value_bound=value_bound)
    require_not_negative(generalised_dimension=generalised_dimension, squared_radius=squared_radius)
    total = size.num_tasks * generalised_dimension
    spread = size.num_tasks * regulariser + 4 * squared_radius
    return math.sqrt(size.num_rounds * total * spread) + 2 * value_bound * total


def known_representation_theorem_1(
    size: BanditSize, *, squared_radius: float, ridge: float
) -> float:
    """2 sqrt(beta_T T M d) + 2 M d,  d = 2 k log(1 + T / (k ridge)): one known representation.

    For the confidence sets of this library, whose norm V = Phi^T Phi + ridge I also bounds the
    heads. In that norm the optimistic heads and the true heads are within 2 sqrt(beta), and the
    elliptical potential of a task is at most d (Abbasi-Yadkori, Pal and Szepesvari 2011, constants
    as recalled). Assumes |phi| <= 1 and mean rewards in [-1, 1].
    """
    require_positive(ridge=ridge)
    require_not_negative(squared_radius=squared_radius)
    k, rounds = size.feature_dim, size.num_rounds
    total = size.num_tasks * 2 * k * math.log1p(rounds / (k * ridge))
    return 2 * math.sqrt(squared_radius * rounds * total) + 2 * total


def linear_generalised_dimension(
    *, input_dim: int, num_rounds: int, norm_bound: float, input_bound: float, regulariser: float
) -> float:
    """2 d log(1 + 4 S^2 T B^2 / (d lambda)): the elliptical potential of theta with |theta| <= S.

    For differences |theta| <= 2 S the supremum in D^2 is at most x^T (G + lambda / (4 S^2))^-1 x.
    Abbasi-Yadkori, Pal and Szepesvari 2011, Lemma 11, with inputs |x| <= B.
    """
    require_positive(
        input_dim=input_dim,
        num_rounds=num_rounds,
        norm_bound=norm_bound,
        input_bound=input_bound,
        regulariser=regulariser,
    )
    growth = 4 * norm_bound**2 * num_rounds * input_bound**2 / (input_dim * regulariser)
    return 2 * input_dim * math.log1p(growth)


def finite_generalised_dimension(
    *, num_representations: int, feature_dim: int, num_rounds: int, regulariser: float
) -> float:
    """N (N + 1) / 2 times the linear bound in 2 k dimensions, for N representations.

    A difference of two functions is linear in [phi ; phi'] for one of the N (N + 1) / 2 pairs, with
    heads of norm at most sqrt(2 k) and features of norm at most sqrt(2); the supremum over a union
    is at most the sum. The bound is loose; it is valid for heads with |w| <= sqrt(k) and
    |phi| <= 1.
    """
    require_positive(num_representations=num_representations, feature_dim=feature_dim)
    pairs = num_representations * (num_representations + 1) / 2
    one = linear_generalised_dimension(
        input_dim=2 * feature_dim,
        num_rounds=num_rounds,
        # The pair (w, -w') is itself the difference: 2 S = sqrt(2 k).
        norm_bound=math.sqrt(2 * feature_dim) / 2,
        input_bound=math.sqrt(2),
        regulariser=regulariser,
    )
    return pairs * one


@dataclass(frozen=True)
class MDPSize:
    """The size of a multitask episodic problem."""

    num_tasks: int
    """M."""
    num_episodes: int
    """T."""
    horizon: int
    """H."""

    def __post_init__(self) -> None:
        require_counts(
            num_tasks=self.num_tasks, num_episodes=self.num_episodes, horizon=self.horizon
        )


def printed_theorem_2(
    size: MDPSize,
    *,
    eluder_dimension: float,
    squared_radius: float,
    scale: float,
    bellman_error: float = 0.0,
    failure_probability: float = 0.05,
) -> float:
    """Theorem 2 with the constants of its proof, (40) to (44), as printed.

        2 M H T I + 2 H (4 M beta / alpha^2 + 1) d + 4 M H sqrt(2 T log(2 T / delta))

    The middle term uses (43), a bound on the *number* of wide rounds at scale alpha, as a bound
    on the *sum* of the widths. With alpha = 1 / (k M T) it exceeds the trivial bound.
    """
    _require_episodic(eluder_dimension, squared_radius, scale, bellman_error, failure_probability)
    tasks, episodes, stages = size.num_tasks, size.num_episodes, size.horizon
    widths = (4 * tasks * squared_radius / scale**2 + 1) * eluder_dimension
    martingale = 4 * math.sqrt(2 * episodes * math.log(2 * episodes / failure_probability))
    bias = 2 * tasks * stages * episodes * bellman_error
    return bias + 2 * stages * widths + tasks * stages * martingale


def repaired_theorem_2(
    size: MDPSize,
    *,
    generalised_dimension: float,
    squared_radius: float,
    bellman_error: float = 0.0,
    regulariser: float = 1.0,
    failure_probability: float = 0.05,
) -> float:
    """Theorem 2 for backups of optimistic values, with widths summed as in `repaired_theorem_1`.

        2 M H T I + 2 H [ sqrt(T M d (M lambda + 4 beta)) + 2 M d ] + 4 sqrt(2 M H T log(2 / delta))

    One martingale over all tasks, stages and episodes replaces M H of them.
    """
    _require_episodic(
        generalised_dimension, squared_radius, regulariser, bellman_error, failure_probability
    )
    tasks, episodes, stages = size.num_tasks, size.num_episodes, size.horizon
    widths = repaired_theorem_1(
        BanditSize(tasks, 1, episodes),
        generalised_dimension=generalised_dimension,
        squared_radius=squared_radius,
        regulariser=regulariser,
    )
    martingale = 4 * math.sqrt(2 * tasks * stages * episodes * math.log(2 / failure_probability))
    return 2 * tasks * stages * episodes * bellman_error + 2 * stages * widths + martingale


@dataclass(frozen=True)
class LinearRates:
    """Rates for a linear representation of rank k in d dimensions, without logarithms.

    Upper: `gfucb` (Theorem 1, sqrt(M T d (M k + d k))), the same rate as MTLR-OFUL (Hu et al.
    2021); `independent`, OFUL for each task, M d sqrt(T). Lower: Hu et al. 2021,
    k M sqrt(T) + d sqrt(k M T). Upper and lower meet when d > M, not otherwise.
    """

    gfucb: float
    independent: float
    lower: float

    @property
    def gain(self) -> float:
        """The bound for separate tasks over the bound for shared tasks."""
        return self.independent / self.gfucb


def linear_rates(size: BanditSize, *, input_dim: int) -> LinearRates:
    """The rates of `LinearRates` for a problem of this size."""
    require_counts(input_dim=input_dim)
    if size.feature_dim > input_dim:
        raise InvalidInputError(
            f"a linear representation has at most as many features as inputs, got feature_dim="
            f"{size.feature_dim} and input_dim={input_dim}"
        )
    tasks, k, rounds = size.num_tasks, size.feature_dim, size.num_rounds
    shared = math.sqrt(tasks * rounds * input_dim * (tasks * k + input_dim * k))
    lower = k * tasks * math.sqrt(rounds) + input_dim * math.sqrt(k * tasks * rounds)
    return LinearRates(shared, tasks * input_dim * math.sqrt(rounds), lower)


def sharing_gain(size: BanditSize, *, log_covering_number: float) -> float:
    """sqrt((k + L) / (k + L / M)): Theorem 1 for M separate tasks over M shared tasks.

    L = log N(Phi). One task alone has beta of order k + L, so M of them have regret of order
    M sqrt(d T (k + L)); together it is sqrt(M d T (M k + L)). At most sqrt(M). Source: the
    remark after Theorem 1.
    """
    require_not_negative(log_covering_number=log_covering_number)
    k, complexity = size.feature_dim, log_covering_number
    return math.sqrt((k + complexity) / (k + complexity / size.num_tasks))


def _require_episodic(
    dimension: float,
    squared_radius: float,
    scale: float,
    bellman_error: float,
    failure_probability: float,
) -> None:
    require_positive(scale=scale)
    require_not_negative(
        dimension=dimension, squared_radius=squared_radius, bellman_error=bellman_error
    )
    require_probability(failure_probability=failure_probability)

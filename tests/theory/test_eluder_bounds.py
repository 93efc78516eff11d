import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.theory.eluder_bounds import (
    finite_inputs_bound,
    generalised_linear_eluder_bound,
    is_independent_linear,
    linear_eluder_bound,
    quadratic_eluder_bound,
)


def test_the_closed_forms_at_points_computed_by_hand():
    ratio = math.e / (math.e - 1)
    assert finite_inputs_bound(7) == 7
    assert linear_eluder_bound(5, 2.0, norm_bound=1.0) == pytest.approx(
        15 * ratio * math.log(6) + 1
    )
    assert generalised_linear_eluder_bound(
        5, 2.0, norm_bound=0.5, largest_slope=2.0, slope_ratio=2.0
    ) == pytest.approx(60 * ratio * math.log(24) + 1)
    assert quadratic_eluder_bound(1, 2.0, norm_bound=1.0) == pytest.approx(
        3 * ratio * math.log(6) + 1
    )


def test_a_link_of_slope_one_gives_the_linear_bound_and_bounds_decrease_with_the_scale():
    linear = [linear_eluder_bound(4, s, norm_bound=2.0, input_bound=3.0) for s in (0.1, 1, 10)]
    general = [
        generalised_linear_eluder_bound(4, s, norm_bound=2.0, input_bound=3.0) for s in (0.1, 1, 10)
    ]
    assert linear == general == sorted(linear, reverse=True)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_invalid_norms_and_scales_are_refused(bad):
    for bound in (linear_eluder_bound, generalised_linear_eluder_bound, quadratic_eluder_bound):
        with pytest.raises(InvalidInputError, match="scale must be a finite number above 0"):
            bound(3, bad, norm_bound=1.0)
        with pytest.raises(InvalidInputError, match="norm_bound must be a finite number above 0"):
            bound(3, 1.0, norm_bound=bad)
    with pytest.raises(InvalidInputError, match="num_inputs"):
        finite_inputs_bound(0)
    with pytest.raises(InvalidInputError, match="at least 1"):
        generalised_linear_eluder_bound(3, 1.0, norm_bound=1.0, slope_ratio=0.5)


def ball_problem(seed: int, num_predecessors: int, dim: int = 4):
    generator = random_stream(seed, "ball")
    past = torch.randn(num_predecessors, dim, generator=generator, dtype=torch.float64).numpy()
    x = torch.randn(dim, generator=generator, dtype=torch.float64).numpy()
    return past.T @ past, x


@pytest.mark.parametrize("num_predecessors", [0, 2, 4, 9])
@pytest.mark.parametrize("seed", range(4))
def test_the_largest_difference_equals_that_of_a_general_solver(seed, num_predecessors):
    gram, x = ball_problem(seed, num_predecessors)
    scale, norm_bound = 0.7, 0.6
    found = is_independent_linear(x, gram, scale, norm_bound)
    constraints = [
        {"type": "ineq", "fun": lambda r: scale**2 - r @ gram @ r},
        {"type": "ineq", "fun": lambda r: 4 * norm_bound**2 - r @ r},
    ]
    result = minimize(
        lambda r: -r @ x, 0.01 * x, constraints=constraints, method="SLSQP", tol=1e-13
    )
    assert found.largest_difference == pytest.approx(-result.fun, rel=1e-6)
    assert found.is_independent == (-result.fun > scale)


def test_the_ball_limits_the_difference_without_data_and_the_data_with_much_data():
    _, x = ball_problem(0, 1)
    free = is_independent_linear(x, np.zeros((4, 4)), 0.1, 2.0)
    assert free.largest_difference == pytest.approx(4.0 * np.linalg.norm(x))
    assert free.is_independent
    known = is_independent_linear(torch.as_tensor(x), 1e6 * np.eye(4), 0.1, 2.0)
    assert known.largest_difference == pytest.approx(0.1 * np.linalg.norm(x) / 1e3)
    assert not known.is_independent
    assert is_independent_linear(np.zeros(4), np.eye(4), 0.1, 2.0).largest_difference == 0


def test_a_predecessor_is_dependent_and_an_orthogonal_input_is_not():
    x, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    gram = np.outer(x, x)
    assert not is_independent_linear(x, gram, 0.5, 1.0).is_independent
    assert is_independent_linear(other, gram, 0.5, 1.0).largest_difference == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (np.eye(3), r"symmetric matrix \[2, 2\]"),
        (np.array([[1.0, 1.0], [0.0, 1.0]]), "symmetric"),
        (-np.eye(2), "negative eigenvalue"),
        (np.full((2, 2), np.nan), "finite"),
    ],
)
def test_matrices_that_are_not_gram_matrices_are_refused(gram, message):
    with pytest.raises(InvalidInputError, match=message):
        is_independent_linear(np.ones(2), gram, 0.5, 1.0)
    with pytest.raises(InvalidInputError, match="norm_bound"):
        is_independent_linear(np.ones(2), np.eye(2), 0.5, -1.0)


@pytest.mark.parametrize("seed", range(50))
def test_an_input_is_not_independent_of_itself(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=4)
    found = is_independent_linear(x, np.outer(x, x), 0.1, 10.0)
    assert found.largest_difference == pytest.approx(0.1, rel=1e-6)
    assert is_independent_linear(np.zeros(4), np.outer(x, x), 0.1, 10.0).largest_difference == 0

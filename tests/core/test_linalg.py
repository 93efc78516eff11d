"""Ridge algebra: factors, ties, sums by task."""

import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.linalg import FEW_ROWS, first_best, ridge_cholesky, task_grams

FINE = torch.diag(torch.tensor([3.0, 8.0], dtype=torch.float64))
NEGATIVE = torch.diag(torch.tensor([3.0, -9.0], dtype=torch.float64))


def test_a_matrix_without_a_factor_raises_an_error_or_is_nan():
    with pytest.raises(InvalidInputError, match="not positive definite"):
        ridge_cholesky(torch.stack([FINE, NEGATIVE]), 1.0)
    factors = ridge_cholesky(torch.stack([FINE, NEGATIVE]), 1.0, is_checked=False)
    assert torch.equal(factors[0], torch.diag(torch.tensor([2.0, 3.0], dtype=torch.float64)))
    assert bool(factors[1].isnan().all())


def test_each_matrix_may_have_a_ridge_of_its_own():
    ridges = torch.tensor([1.0, 6.0], dtype=torch.float64)[:, None, None]
    factors = ridge_cholesky(torch.stack([FINE, FINE]), ridges)
    squares = factors.square().sum(-1)
    expected = torch.tensor([[4.0, 9.0], [9.0, 14.0]], dtype=torch.float64)
    torch.testing.assert_close(squares, expected)


@pytest.mark.parametrize("level", [-1e9, -5.0, 0.0, 5.0, 1e9])
def test_the_first_of_equal_values_is_best_whatever_their_sign(level):
    """Values that differ by rounding count as equal."""
    rounding = 1e-13 * abs(level)
    values = [level - 1.0, level, level + rounding, level - rounding]
    assert int(first_best(torch.tensor(values, dtype=torch.float64))) == 1


def test_unavailable_options_are_never_best():
    values = torch.tensor([[-torch.inf, -3.0], [-3.0, -torch.inf]], dtype=torch.float64)
    assert first_best(values).tolist() == [1, 0]


@pytest.mark.parametrize("num_rows", [3 * FEW_ROWS, 3 * FEW_ROWS + 1])
def test_gram_matrices_by_few_or_many_rows_are_those_of_each_task(num_rows):
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(num_rows, 2, generator=generator, dtype=torch.float64)
    tasks = torch.randint(3, (num_rows,), generator=generator)
    grams = task_grams(features, tasks, 3)
    for task in range(3):
        own = features[tasks == task]
        torch.testing.assert_close(grams[task], own.T @ own)


@pytest.mark.parametrize("wrong", [torch.inf, torch.nan])
def test_a_matrix_that_is_not_finite_is_refused(wrong):
    """Some libraries factor a matrix with an infinite diagonal element without a failure."""
    matrix = FINE.clone()
    matrix[1, 1] = wrong
    with pytest.raises(InvalidInputError, match="not finite"):
        ridge_cholesky(matrix, 1.0)

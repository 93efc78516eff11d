"""Directions of columns: their prior, their scale, and when they are used."""

import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.shards import ONE_SHARD
from gfucb.models.column_directions import ColumnDirections
from gfucb.models.table_features import TableColumns
from gfucb.models.table_layout import TableLayout

ROWS, COLUMNS = 4000, 6


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=random_stream(0, "columns"), dtype=torch.float64)


def alike() -> torch.Tensor:
    """Four columns that share a factor, and two that share nothing."""
    table = normal(ROWS, COLUMNS + 1)
    table[:, :4] = (2 * table[:, -1:] + table[:, :4]) / 5**0.5
    return table[:, :COLUMNS]


def directions_of(table: torch.Tensor, most: int = COLUMNS) -> ColumnDirections:
    return ColumnDirections.of(table, most, ONE_SHARD)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_effects_of_directions_have_a_power_of_the_correlations_as_their_prior(power):
    table = alike()
    projection = directions_of(table).projection(power)
    correlations = table.T @ table / ROWS
    values, axes = torch.linalg.eigh(correlations)
    expected = axes * values**power @ axes.T
    found = projection @ projection.T
    torch.testing.assert_close(
        found / found.trace(), expected / expected.trace(), atol=2e-3, rtol=0
    )
    # The symmetric root: a small change of the columns is a small change of the directions.
    torch.testing.assert_close(projection, projection.T)


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("most", [COLUMNS, 3])
def test_the_mean_square_stays(power, most):
    table = alike()
    projected = table @ directions_of(table, most).projection(power)
    found, expected = (float(x.square().mean()) for x in (projected, table))
    assert found == pytest.approx(expected, rel=0.01)


def test_power_zero_is_the_columns_as_they_are_or_orthonormal_directions():
    assert directions_of(alike()).projection(0.0) is None
    few = directions_of(alike(), 3).projection(0.0)
    products = few.T @ few
    torch.testing.assert_close(products / products[0, 0], torch.eye(3).double())


def test_fewer_directions_are_those_with_the_largest_variance():
    first = directions_of(alike(), 1).axes[:, 0].abs()
    torch.testing.assert_close(
        first, torch.tensor([0.5] * 4 + [0.0] * 2).double(), atol=0.03, rtol=0
    )


def test_a_constant_column_changes_nothing():
    table = alike()
    more = torch.cat([table, torch.zeros(ROWS, 1).double()], dim=1)
    found = directions_of(more, COLUMNS + 1).projection(1.0)
    torch.testing.assert_close(found[-1, :-1], torch.zeros(COLUMNS).double())
    expected = directions_of(table).projection(1.0)
    torch.testing.assert_close(found[:-1, :-1], expected, atol=0.01, rtol=0)


def test_few_samples_show_hardly_any_correlation():
    few, many = (directions_of(alike()[:rows]).projection(1.0) for rows in (3, ROWS))
    eye = torch.eye(COLUMNS).double()
    assert float((few - eye).norm()) < float((many - eye).norm()) / 2


def test_columns_that_are_not_finite_are_refused():
    table = alike()
    table[0, 0] = torch.inf
    with pytest.raises(InvalidInputError, match="too large"):
        directions_of(table)


def columns_of(table: torch.Tensor, **settings) -> TableColumns:
    generator = random_stream(0, "frequencies")
    return TableColumns.of(TableLayout(table.shape[1], **settings), table, 2, generator)


@pytest.mark.parametrize(
    ("size", "is_used"), [(15, False), (16, True), (1000, True), (1001, False)]
)
def test_are_used_for_sixteen_to_a_thousand_columns(size, is_used):
    table = normal(5, size)
    columns = columns_of(table)
    assert columns.has_directions == is_used == (columns.directions(table) is not None)


def test_are_not_used_for_a_context_of_one_hot_actions():
    one_hot = torch.eye(3).double().repeat(40, 1)
    table = torch.cat([normal(120, 20), one_hot], dim=1)
    columns = columns_of(table, first_action=20, num_actions=3)
    assert not columns.has_directions and columns.directions(table) is None

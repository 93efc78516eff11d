"""Prices, doses and times among the columns of candidates: what is found, and its features."""

import math

import pytest
import torch

from gfucb.core.random import random_stream
from gfucb.models.continuous_actions import EXPLORED_LENGTH, ContinuousActions

PRICES = torch.linspace(2.0, 6.0, 9).double()


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=random_stream(0, "continuous"), dtype=torch.float64)


def with_context(values: torch.Tensor) -> torch.Tensor:
    """Three rows of values [action, continuous] between two columns of the context."""
    context = normal(3, 1, 2).expand(-1, len(values), -1)
    return torch.cat([context[..., :1], values.expand(3, -1, -1), context[..., 1:]], dim=2)


class TestColumns:
    def test_in_which_candidates_differ_are_found_with_their_ranges(self):
        found = ContinuousActions.of_candidates(with_context(PRICES[:, None]))
        assert found.columns.tolist() == [1]
        assert (found.center.tolist(), found.half_range.tolist()) == ([4.0], [2.0])

    def test_are_at_most_two_if_candidates_are_drawn(self):
        assert len(ContinuousActions.of_candidates(with_context(normal(5, 2))).columns) == 2
        assert ContinuousActions.of_candidates(with_context(normal(5, 3))) is None

    def test_are_at_most_four_if_they_are_settings(self):
        grid = torch.cartesian_prod(*[PRICES[:3]] * 4)
        assert len(ContinuousActions.of_candidates(with_context(grid)).columns) == 4
        grid = torch.cartesian_prod(*[PRICES[:2]] * 5)
        assert ContinuousActions.of_candidates(with_context(grid)) is None

    def test_are_none_with_one_candidate(self):
        assert ContinuousActions.of_candidates(with_context(PRICES[:1, None])) is None


class TestFeatures:
    @pytest.mark.parametrize("count", [1, 2, 3, 4])
    def test_products_are_a_gaussian_kernel_on_scaled_columns(self, count):
        values = 2 * torch.rand(40, count, generator=random_stream(1, "values")).double() - 1
        unit = 10.0
        center, half_range = torch.zeros(count).double(), torch.full((count,), unit).double()
        found = ContinuousActions(torch.arange(count), center, half_range)
        features = found.features(unit * values)
        assert features.shape == (40, found.num_features)
        kernel = (-torch.cdist(values, values).square() / (2 * EXPLORED_LENGTH**2)).exp()
        error = (features @ features.T - kernel).abs()
        assert float(error.max()) < (0.05 if count == 1 else 0.5)
        assert float(error.mean()) < (0.05 if count < 3 else 0.1)
        torch.testing.assert_close(features.square().sum(1), torch.ones(40).double())

    def test_do_not_depend_on_unit_and_origin(self):
        one = ContinuousActions.of_candidates(with_context(PRICES[:, None]))
        other = ContinuousActions.of_candidates(with_context(100 * PRICES[:, None] - 7))
        inputs = with_context(PRICES[:, None])[0]
        moved = inputs.clone()
        moved[:, 1] = 100 * inputs[:, 1] - 7
        torch.testing.assert_close(one.features(inputs), other.features(moved))

    def test_far_values_are_those_of_the_nearest_known_ones(self):
        found = ContinuousActions.of_candidates(PRICES[None, :, None])
        far = found.features(torch.tensor([[8.0], [9.0], [math.inf]]).double())
        torch.testing.assert_close(far[0], far[1])
        torch.testing.assert_close(far[0], far[2])

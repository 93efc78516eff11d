"""The learning rate of variable projection grows with the data."""

import pytest

from gfucb import VariableProjection


@pytest.mark.parametrize(
    ("samples", "share"), [(0, 1 / 3), (300, 1 / 3), (500, 0.5), (1000, 1.0), (10**6, 1.0)]
)
def test_small_data_sets_use_a_share_of_the_learning_rate(samples, share):
    fit = VariableProjection(learning_rate=0.01, samples_at_full_rate=1000)
    assert fit.learning_rate_for(samples) == pytest.approx(0.01 * share)


def test_without_a_threshold_the_rate_is_always_the_full_one():
    fit = VariableProjection(learning_rate=0.01, samples_at_full_rate=0)
    assert fit.learning_rate_for(1) == 0.01

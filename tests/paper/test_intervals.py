"""Intervals over seeds: ratios of paired means, and means as text."""

import math

import numpy as np
import pandas as pd
import pytest

from gfucb.paper.intervals import exceeds, mean_and_half_width, paired_ratio, share_interval


def test_a_constant_factor_between_paired_samples_has_no_uncertainty():
    second = np.array([1.0, 5.0, 2.0, 9.0])
    ratio = paired_ratio(3 * second, second)
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((3, 3, 3))


def test_the_interval_of_a_ratio_contains_it_and_shrinks_with_more_seeds():
    rng = np.random.default_rng(0)
    samples = rng.normal(10, 1, (2, 400))
    wide, narrow = (paired_ratio(*samples[:, :count]) for count in (20, 400))
    for ratio in (wide, narrow):
        assert ratio.low < ratio.value < ratio.high
    assert narrow.high - narrow.low < 0.5 * (wide.high - wide.low)
    # The delta method: the ratio of two independent means of relative deviation 0.1.
    assert narrow.high - narrow.low == pytest.approx(2 * 1.96 * math.sqrt(2 * 0.01 / 400), rel=0.2)


def test_a_single_seed_has_no_interval():
    ratio = paired_ratio([6.0], [4.0])
    assert ratio.value == 1.5 and math.isnan(ratio.low) and math.isnan(ratio.high)
    assert str(ratio) == "1.50"
    assert mean_and_half_width(pd.Series([6.0])) == "6"


def test_means_are_written_with_significant_digits_or_in_a_given_format():
    values = pd.Series([100.0, 400.0, 700.0])
    # The half width is 4.303 * 300 / sqrt(3) = 745.2.
    assert mean_and_half_width(values) == "400 ± 750"
    assert mean_and_half_width(values, ".1f") == "400.0 ± 745.2"


def test_a_difference_holds_if_its_interval_excludes_zero():
    assert exceeds([1.0, 1.1, 0.9]) and exceeds([1.0, 1.1, 0.9], 0.7)
    assert not exceeds([1.0, 1.1, 0.9], 0.8) and not exceeds([-1.0, 3.0, 1.0])
    assert not exceeds([5.0])  # one seed has no interval


def test_the_interval_of_a_share_is_that_of_clopper_and_pearson():
    low, high = share_interval(100, 100)
    assert low == pytest.approx(0.025 ** (1 / 100)) and high == 1

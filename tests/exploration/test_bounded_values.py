"""Upper bounds of values that are known to lie in a range."""

import pytest
import torch

from gfucb.core.random import random_stream
from gfucb.exploration.bounded_values import LEVEL, bounded_bonuses

LIMITS = (0.0, 1.0)


def bounds(values: list[float], bonuses: list[float], least: float = -1.0) -> list[float]:
    means = torch.tensor([values], dtype=torch.float64)
    spreads = torch.tensor([bonuses], dtype=torch.float64)
    found = bounded_bonuses(means, spreads, torch.full_like(spreads, least), LIMITS)
    return (means + found)[0].tolist()


@pytest.mark.parametrize(("mean", "bonus"), [(0.3, 0.5), (0.5, 0.2), (0.9, 0.3), (1.0, 2.0)])
def test_are_quantiles_of_normal_values_inside_the_range(mean, bonus):
    draws = torch.randn(200_000, generator=random_stream(0, "draws"), dtype=torch.float64)
    values = mean + bonus * draws
    inside = values[(values >= 0) & (values <= 1)]
    (bound,) = bounds([mean], [bonus])
    assert float((inside <= bound).double().mean()) == pytest.approx(LEVEL, abs=5e-3)


def test_a_small_bonus_far_from_both_ends_stays_as_it_is():
    assert bounds([0.5, 0.3], [0.03, 0.0]) == pytest.approx([0.53, 0.3], rel=1e-12)


def test_an_unknown_action_is_no_better_than_one_near_the_top():
    unknown, good = bounds([0.3, 0.9], [2.0, 0.05])
    assert unknown < 0.86 < good < 1
    unknown, poor = bounds([0.3, 0.6], [2.0, 0.05])
    assert unknown > poor


def test_of_equal_bonuses_the_larger_mean_is_better():
    found = bounds([0.1, 0.4, 0.8, 0.99], [5.0] * 4)
    assert found == sorted(found)


def test_a_bonus_is_neither_raised_nor_below_what_rewards_have_shown():
    assert bounds([0.02], [0.4]) == pytest.approx([0.42])
    assert bounds([0.95], [0.6], least=0.2) == pytest.approx([1.15])
    assert bounds([0.95], [0.6])[0] < 1


def test_means_outside_extend_the_range():
    found = bounds([1.5, 1.2, -0.2], [0.01] * 3)
    assert found[0] > 1.49 and found[1] == pytest.approx(1.21) and found[2] == pytest.approx(-0.19)


def test_what_is_not_available_does_not_count():
    one, other = bounds([0.3, 0.9], [0.4, 0.1])
    found = bounds([0.3, -torch.inf, 0.9], [0.4, 0.4, 0.1])
    assert found == [one, -torch.inf, other]

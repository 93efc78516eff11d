"""Confidence sequences: the mixture by quadrature, monotonicity, huge values, coverage."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from gfucb.core.errors import InvalidInputError
from gfucb.evaluation import Betting, EmpiricalBernstein
from gfucb.evaluation.confidence_sequences import predicted_means

SEQUENCES = [EmpiricalBernstein(), EmpiricalBernstein(rho=0.3), Betting()]


@pytest.mark.parametrize("rho", [0.5, 1.0, 4.0])
@pytest.mark.parametrize(("deviation", "variance"), [(0.0, 0.0), (1.0, 0.5), (6.0, 3.0), (2, 30.0)])
def test_the_mixture_equals_its_integral(rho, deviation, variance):
    def density(share):
        return (1 - share) ** (rho - 1) * math.exp(-rho * (1 - share))

    def wealth(share):
        exponent = share * deviation + (share + math.log1p(-share)) * variance
        return density(share) * math.exp(exponent)

    integral = quad(wealth, 0, 1)[0] / quad(density, 0, 1)[0]
    found = EmpiricalBernstein(rho).log_wealth(deviation, variance)
    assert found == pytest.approx(math.log(integral), abs=1e-7)


def test_the_boundary_is_continuous_where_its_series_begin():
    bound = EmpiricalBernstein()
    for variance in (1e4 - 1.001, 1e6, 1e10):  # Stirling's series; small steps
        below, above = bound.boundary(variance, 0.05), bound.boundary(variance * 1.000001, 0.05)
        assert below < above < below * 1.000001


@pytest.mark.parametrize("sequence", SEQUENCES, ids=repr)
@pytest.mark.parametrize("scale", [1e3, 1e25, 1e50])
def test_huge_values_give_finite_bounds(sequence, scale):
    values = np.full(50, 0.1)
    values[[3, 17]] = scale
    assert 0 <= sequence.lower_bound(values, 0.05) <= 1


@pytest.mark.parametrize("sequence", SEQUENCES, ids=repr)
def test_bounds_approach_the_mean_and_are_lower_for_smaller_errors(sequence):
    values = np.random.default_rng(0).binomial(1, 0.4, 4000).astype(float)
    few, many = sequence.lower_bound(values[:100], 0.05), sequence.lower_bound(values, 0.05)
    assert few < many < values.mean() < many + 0.05
    assert sequence.lower_bound(values, 0.001) < many
    assert sequence.lower_bound(np.zeros(20), 0.05) == pytest.approx(0, abs=1e-9)
    assert sequence.lower_bound(np.ones(1), 0.05) < 1


def test_predictions_use_earlier_values_only():
    assert predicted_means(np.array([4.0, 1.0, 9.0])).tolist() == [0.5, 2.25, 5.5 / 3]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=repr)
@pytest.mark.parametrize("weight", [1.0, 20.0])
def test_bounds_of_all_times_hold_with_the_stated_probability(sequence, weight):
    """The mean is 0.4; the values are 0 or `weight`."""
    draws, repetitions, alpha = np.random.default_rng(1), 200, 0.1
    times = [5, 10, 20, 40, 80, 160, 320]
    misses = 0
    for _ in range(repetitions):
        values = weight * draws.binomial(1, 0.4 / weight, times[-1])
        misses += any(sequence.lower_bound(values[:n], alpha) > 0.4 for n in times)
    assert misses <= alpha * repetitions + 3 * math.sqrt(alpha * (1 - alpha) * repetitions)


def test_empirical_bernstein_holds_for_means_that_change():
    draws, misses = np.random.default_rng(2), 0
    means = np.where(np.arange(400) < 100, 0.9, 0.1)
    for _ in range(200):
        values = draws.binomial(1, means).astype(float)
        misses += any(
            EmpiricalBernstein().lower_bound(values[:n], 0.1) > means[:n].mean()
            for n in (50, 100, 120, 200, 400)
        )
    assert misses <= 20 + 13


@pytest.mark.parametrize(
    ("make", "wrong"),
    [(EmpiricalBernstein, 0.0), (EmpiricalBernstein, "a"), (Betting, 0.0), (Betting, 1.0)],
)
def test_settings_are_checked(make, wrong):
    with pytest.raises(InvalidInputError):
        make(wrong)

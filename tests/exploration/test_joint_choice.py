import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfucb.core.errors import InvalidInputError
from gfucb.exploration.joint_choice import choose_jointly


def brute_force(means, widths, squared_radius):
    best = -np.inf
    for options in itertools.product(*[range(means.shape[1])] * len(means)):
        rows = np.arange(len(means))
        total = means[rows, options].sum()
        if np.isfinite(total):
            best = max(best, total + np.sqrt(squared_radius * widths[rows, options].sum()))
    return best


def value_of(means, widths, squared_radius, options):
    rows = np.arange(len(means))
    spread = np.sqrt(squared_radius * widths[rows, options].sum())
    return means[rows, options].sum() + spread


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    groups=st.integers(1, 5),
    options=st.integers(1, 5),
    squared_radius=st.sampled_from([0.0, 1e-6, 0.01, 1.0, 100.0]),
    missing=st.booleans(),
    rounded=st.booleans(),
)
def test_the_joint_choice_equals_brute_force(
    seed, groups, options, squared_radius, missing, rounded
):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(groups, options))
    widths = rng.gamma(0.5, size=(groups, options))
    if rounded:  # many ties and zero widths
        means, widths = means.round(), widths.round()
    if missing:
        gone = rng.random((groups, options)) < 0.3
        gone[:, 0] = False
        means = np.where(gone, -np.inf, means)
    choice = choose_jointly(means, widths, squared_radius)
    assert choice.is_exact
    expected = brute_force(means, widths, squared_radius)
    assert choice.value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    reached = value_of(means, widths, squared_radius, choice.options)
    assert reached == pytest.approx(choice.value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", [314, 508, 664, 723, 1042, 1055, 1245, 1339])
def test_close_calls_equal_brute_force(seed):
    """Small means of wide options: the best tuple is not the incumbent, and few bounds exclude."""
    rng = np.random.default_rng(seed)
    groups, options = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    widths = rng.random((groups, options)) ** 2 * rng.choice([1, 4])
    means = -0.5 * np.sqrt(widths) * rng.choice([0.5, 1.0, 1.5])
    means = means + 0.05 * rng.standard_normal((groups, options))
    choice = choose_jointly(means, widths, 1.0)
    assert choice.is_exact
    assert choice.value == pytest.approx(brute_force(means, widths, 1.0), abs=1e-12)


def test_separate_choices_differ_from_the_joint_choice():
    """Two groups that both explore share one radius, so the second adds a smaller bonus."""
    means = np.array([[1.0, 0.0]] * 2)
    widths = np.array([[0.0, 1.2]] * 2)
    alone = choose_jointly(means[:1], widths[:1], 1.0)
    assert alone.options.tolist() == [1]
    together = choose_jointly(means, widths, 1.0)
    assert sorted(together.options.tolist()) == [0, 1]
    assert together.value == pytest.approx(1 + np.sqrt(1.2))


def test_a_thousand_groups_of_ten_are_solved_exactly():
    rng = np.random.default_rng(0)
    means, widths = rng.normal(size=(1000, 10)), rng.gamma(1.0, size=(1000, 10))
    choice = choose_jointly(means, widths, 50.0)
    assert choice.is_exact
    rows = np.arange(1000)
    for group in range(0, 1000, 97):
        for option in range(10):
            changed = choice.options.copy()
            changed[group] = option
            assert value_of(means, widths, 50.0, changed) <= choice.value + 1e-9
    assert means[rows, choice.options].sum() < means.max(1).sum()


@pytest.mark.parametrize("unit", [1e-11, 1e11])
def test_the_units_of_rewards_do_not_matter(unit):
    rng = np.random.default_rng(3)
    for _ in range(50):
        means, widths = rng.normal(size=(4, 4)), rng.gamma(0.5, size=(4, 4))
        plain = choose_jointly(means, widths, 1.0)
        scaled = choose_jointly(unit * means, widths, unit**2)
        assert plain.options.tolist() == scaled.options.tolist()


@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize(
    ("mean", "width"),
    [(np.nan, 1.0), (np.inf, 1.0), (0.0, np.nan), (0.0, np.inf), (0.0, -1.0)],
)
def test_means_and_widths_that_are_not_finite_are_refused(groups, mean, width):
    means, widths = np.zeros((groups, 3)), np.ones((groups, 3))
    means[:, 1], widths[:, 1] = mean, width
    with pytest.raises(InvalidInputError, match="finite"):
        choose_jointly(means, widths, 1.0)


def test_sums_of_means_that_overflow_are_refused():
    with pytest.raises(InvalidInputError, match="finite"):
        choose_jointly(np.full((5, 2), 1e308), np.ones((5, 2)), 1.0)


def test_a_radius_that_overflows_the_widths_is_refused():
    with pytest.raises(InvalidInputError, match="finite"):
        choose_jointly(np.zeros((2, 2)), np.full((2, 2), 1e200), 1e200)


def test_widths_of_unavailable_options_do_not_matter():
    means = np.array([[0.0, -np.inf], [0.0, 1.0]])
    widths = np.array([[1.0, np.nan], [1.0, 1.0]])
    assert choose_jointly(means, widths, 1.0).options.tolist() == [0, 1]

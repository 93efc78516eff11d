import math

import pytest

from gfucb.core.errors import InvalidInputError
from gfucb.theory.bounds import (
    BanditSize,
    MDPSize,
    finite_generalised_dimension,
    known_representation_theorem_1,
    linear_generalised_dimension,
    linear_rates,
    printed_theorem_1,
    printed_theorem_2,
    repaired_theorem_1,
    repaired_theorem_2,
    sharing_gain,
    sum_class_theorem_1,
)
from gfucb.theory.lemma_radii import CorrectedStageRadius, PrintedStageRadius

SIZE = BanditSize(num_tasks=10, feature_dim=10, num_rounds=600)
STAGE = {"num_tasks": 10, "feature_dim": 10, "num_episodes": 600, "log_covering_number": 3.0}


def test_printed_theorem_1_at_a_point_computed_by_hand():
    # 1/600 + 5 + 4 sqrt(10 * 5 * 2 * 600)
    expected = 1 / 600 + 5 + 4 * math.sqrt(60000)
    assert printed_theorem_1(SIZE, eluder_dimension=5, squared_radius=2) == pytest.approx(expected)


def test_the_printed_theorem_1_with_its_range_restored():
    # 600 * 0.01 + 2 * 10 * 5 + 4 sqrt(60000)
    value = sum_class_theorem_1(SIZE, eluder_dimension=5, squared_radius=2, scale=0.01)
    assert value == pytest.approx(106 + 4 * math.sqrt(60000))


def test_repaired_theorem_1_at_a_point_computed_by_hand():
    # sqrt(600 * 10 * 5 * (10 * 0.5 + 4 * 2)) + 2 * 10 * 5
    value = repaired_theorem_1(SIZE, generalised_dimension=5, squared_radius=2, regulariser=0.5)
    assert value == pytest.approx(math.sqrt(30000 * 13) + 100)


def test_lemma_4_as_printed_lacks_the_factor_alpha():
    """With alpha = 1 / (k M T) the term is 0.64; the printed formula gives 155."""
    printed = PrintedStageRadius(**STAGE)
    corrected = CorrectedStageRadius(
        **STAGE, horizon=5, cover_scale=SIZE.cover_scale, head_bound=1.0
    )
    assert printed.lost_scale_term == pytest.approx(155, abs=1)
    assert corrected.scale_term == pytest.approx(0.64, abs=0.1)


def test_the_printed_stage_radius_at_a_point_computed_by_hand():
    radius = PrintedStageRadius(2, 3, 50, 1.5, bellman_error=0.1, failure_probability=0.1)
    first = math.sqrt(12 + 1.5 + math.log(10)) + 1
    second = 2 * math.sqrt(100 + math.log(2 * 2 * 2500 / 0.1))
    expected = (first + 10 * 0.1 + math.sqrt(second)) ** 2
    assert radius(1) == radius(50) == pytest.approx(expected)


def test_the_corrected_stage_radius_at_a_point_computed_by_hand():
    radius = CorrectedStageRadius(2, 3, 50, 4, 1.5, 0.01, 2.0, 0.1, 0.1)
    a = math.sqrt(12 * math.log(1 + 200 / 3) + 9 + 12 * math.log(401) + 2 * math.log(80))
    e = 0.02 * math.sqrt(200)
    first = a + 0.06 * 10
    second = a * (e + 2) + 10 * e
    expected = (2 * first + 2 * 10 * 0.1 + math.sqrt(2 * second)) ** 2
    assert radius(1) == pytest.approx(expected)


def test_the_corrected_stage_radius_grows_with_horizon_head_bound_and_bias():
    base = dict(STAGE, horizon=5, cover_scale=1e-4, head_bound=1.0)
    value = CorrectedStageRadius(**base)(1)
    for name, larger in [("horizon", 50), ("head_bound", 10.0), ("cover_scale", 1e-2)]:
        changed = CorrectedStageRadius(**(base | {name: larger}))(1)
        # A coarser cover has fewer elements but a larger error.
        assert changed > value or name == "cover_scale"
    biased = CorrectedStageRadius(**base, bellman_error=0.1)(1)
    assert math.sqrt(biased) - math.sqrt(value) == pytest.approx(2 * math.sqrt(6000) * 0.1)


def test_the_bound_for_a_known_representation_at_a_point_computed_by_hand():
    value = known_representation_theorem_1(BanditSize(2, 1, 300), squared_radius=7.0, ridge=0.5)
    total = 2 * 2 * math.log(1 + 600)
    assert value == pytest.approx(2 * math.sqrt(7 * 300 * total) + 2 * total)


def test_the_printed_stage_radius_grows_like_the_root_of_the_samples_and_the_corrected_like_a_log():
    def radii(episodes: int) -> tuple[float, float]:
        alpha = 1 / (10 * 10 * episodes)
        sizes = STAGE | {"num_episodes": episodes}
        corrected = CorrectedStageRadius(**sizes, horizon=5, cover_scale=alpha, head_bound=1.0)
        return PrintedStageRadius(**sizes)(1), corrected(1)

    (printed_1, corrected_1), (printed_2, corrected_2) = radii(10**8), radii(10**12)
    assert printed_2 / printed_1 > 20  # sqrt(10^4) = 100 without the constant term
    assert corrected_2 / corrected_1 < 2


def test_theorem_2_at_points_computed_by_hand():
    size = MDPSize(num_tasks=2, num_episodes=100, horizon=3)
    options = {"squared_radius": 4.0, "bellman_error": 0.01}
    printed = printed_theorem_2(size, eluder_dimension=5, scale=0.5, **options)
    widths = (4 * 2 * 4 / 0.25 + 1) * 5
    martingales = 2 * 3 * 4 * math.sqrt(200 * math.log(200 / 0.05))
    assert printed == pytest.approx(2 * 2 * 3 * 100 * 0.01 + 6 * widths + martingales)
    repaired = repaired_theorem_2(size, generalised_dimension=5, regulariser=0.5, **options)
    widths = math.sqrt(100 * 10 * (1 + 16)) + 20
    martingale = 4 * math.sqrt(2 * 600 * math.log(40))
    assert repaired == pytest.approx(12 + 6 * widths + martingale)


def test_the_repaired_bound_grows_with_tasks_rounds_dimension_and_radius():
    base = {"generalised_dimension": 5.0, "squared_radius": 2.0}
    value = repaired_theorem_1(SIZE, **base)
    assert repaired_theorem_1(BanditSize(20, 10, 600), **base) > value
    assert repaired_theorem_1(BanditSize(10, 10, 1200), **base) > value
    assert repaired_theorem_1(SIZE, **(base | {"generalised_dimension": 6.0})) > value
    assert repaired_theorem_1(SIZE, **(base | {"squared_radius": 3.0})) > value


def test_generalised_dimensions():
    linear = linear_generalised_dimension(
        input_dim=4, num_rounds=100, norm_bound=1.0, input_bound=1.0, regulariser=0.5
    )
    assert linear == pytest.approx(8 * math.log(1 + 400 / 2))
    finite = finite_generalised_dimension(
        num_representations=3, feature_dim=2, num_rounds=100, regulariser=0.5
    )
    # 6 pairs, 4 dimensions, heads of the pair up to sqrt(4), features up to sqrt(2).
    assert finite == pytest.approx(6 * 8 * math.log(1 + 4 * 100 * 2 / (4 * 0.5)))


def test_the_linear_rates_and_the_gain_of_sharing():
    rates = linear_rates(BanditSize(num_tasks=100, feature_dim=2, num_rounds=400), input_dim=50)
    assert rates.independent == pytest.approx(100 * 50 * 20)
    assert rates.gfucb == pytest.approx(math.sqrt(100 * 400 * 50 * (200 + 100)))
    assert rates.lower == pytest.approx(2 * 100 * 20 + 50 * math.sqrt(2 * 100 * 400))
    assert rates.lower <= rates.gfucb * 2
    assert rates.gain > 3
    assert sharing_gain(SIZE, log_covering_number=0.0) == 1.0
    assert sharing_gain(SIZE, log_covering_number=1e12) == pytest.approx(math.sqrt(10))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: BanditSize(0, 1, 1), "num_tasks"),
        (lambda: MDPSize(1, 1, 0), "horizon"),
        (lambda: printed_theorem_1(SIZE, eluder_dimension=-1, squared_radius=1), "eluder"),
        (
            lambda: repaired_theorem_1(
                SIZE, generalised_dimension=1, squared_radius=1, regulariser=0
            ),
            "regulariser",
        ),
        (
            lambda: repaired_theorem_2(
                MDPSize(1, 1, 1),
                generalised_dimension=1,
                squared_radius=1,
                failure_probability=2,
            ),
            "failure_probability",
        ),
        (lambda: PrintedStageRadius(**(STAGE | {"num_episodes": 0})), "num_episodes"),
        (lambda: linear_rates(BanditSize(2, 5, 10), input_dim=3), "at most as many features"),
        (lambda: BanditSize(2.5, 1, 1), "num_tasks"),
        (lambda: sharing_gain(SIZE, log_covering_number=-1.0), "log_covering_number"),
    ],
)
def test_invalid_numbers_are_refused_by_name(call, name):
    with pytest.raises(InvalidInputError, match=name):
        call()

import math

import pytest

from gfucb import ConstantRadius
from gfucb.core.errors import InvalidInputError
from gfucb.estimation import LogRadius, ScaledRadius
from gfucb.theory.lemma_radii import CorrectedRadius, PrintedRadius

PRINTED = {
    "num_tasks": 3,
    "feature_dim": 2,
    "log_covering_number": 4.0,
    "cover_scale": 0.01,
    "failure_probability": 0.1,
}
CORRECTED = PRINTED | {"noise_scale": 0.5, "ridge": 0.7}


@pytest.mark.parametrize(
    ("round_index", "value"), [(1, 0.37), (10, 0.78), (100, 1.58), (200, 1.85), (600, 2.28)]
)
def test_the_schedule_of_the_experiments(round_index, value):
    assert LogRadius()(round_index) == pytest.approx(value, abs=0.005)


def test_the_printed_radius_at_a_point_computed_by_hand():
    # 12*6 + 12*(4 + ln 10) + 8*0.01*sqrt(3*5*2*(15 + ln(2*3*25/0.1)))
    expected = 72 + 12 * 6.302585 + 0.08 * math.sqrt(30 * (15 + math.log(1500)))
    assert PrintedRadius(**PRINTED)(5) == pytest.approx(expected, rel=1e-6)


def test_the_corrected_radius_at_a_point_computed_by_hand():
    t, ridge = 5, 0.7
    a = 0.5 * math.sqrt(12 * math.log(1 + 5 / 1.4) + 16 + 2 * math.log(20))
    log_term = math.log(math.pi**2 * 25 / 0.3)
    n = 0.5 * math.sqrt(15 + 2 * math.sqrt(15 * log_term) + 2 * log_term)
    c = 0.01 * math.sqrt(5 / 0.7)
    expected = 6 * (a * (1 + c) + n * c) ** 2 + 6 * 6 * ridge + 2 * 0.3
    radius = CorrectedRadius(**CORRECTED, optimisation_error=0.3)
    assert radius(t) == pytest.approx(expected, rel=1e-12)


def test_the_corrected_radius_scales_with_the_noise_and_the_printed_one_does_not():
    """At sigma = 0.01, k = 10, M = 1, T = 600, ridge sigma^2 / k, it is 0.2 instead of 120."""
    radius = CorrectedRadius(1, 10, 0.0, 0.0, noise_scale=0.01, ridge=1e-5)
    assert 0.15 < radius(600) < 0.25
    assert PrintedRadius(1, 10, 0.0, 0.0)(600) > 120


@pytest.mark.parametrize("radius", [PrintedRadius(**PRINTED), CorrectedRadius(**CORRECTED)])
@pytest.mark.parametrize("bad", [0, -1, math.nan])
def test_rounds_are_counted_from_one(radius, bad):
    with pytest.raises(InvalidInputError, match="counted from 1"):
        radius(bad)


@pytest.mark.parametrize(
    "radius", [LogRadius(), PrintedRadius(**PRINTED), CorrectedRadius(**CORRECTED)]
)
def test_radii_grow_with_the_round(radius):
    values = [radius(t) for t in (1, 2, 5, 50, 500)]
    assert values == sorted(values) and values[0] < values[-1]


def test_scaled_and_constant_radii():
    assert ConstantRadius(2.0)(1) == ConstantRadius(2.0)(100) == 2.0
    assert ScaledRadius(LogRadius(), 3.0)(7) == 3 * LogRadius()(7)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: ConstantRadius(-1.0), "value"),
        (lambda: ConstantRadius(math.nan), "value"),
        (lambda: ScaledRadius(LogRadius(), -1.0), "factor"),
        (lambda: LogRadius(c=0.2), "b \\+ c"),
        (lambda: CorrectedRadius(**(CORRECTED | {"noise_scale": 0.0})), "noise_scale"),
        (lambda: CorrectedRadius(**(CORRECTED | {"noise_scale": -1.0})), "noise_scale"),
        (lambda: CorrectedRadius(**(CORRECTED | {"ridge": 0.0})), "ridge"),
        (
            lambda: CorrectedRadius(**(CORRECTED | {"failure_probability": 1.0})),
            "failure_probability",
        ),
        (lambda: PrintedRadius(**(PRINTED | {"failure_probability": 0.0})), "failure_probability"),
        (lambda: PrintedRadius(**(PRINTED | {"num_tasks": 0})), "num_tasks"),
    ],
)
def test_impossible_radii_are_refused_by_name(make, name):
    with pytest.raises(InvalidInputError, match=name):
        make()

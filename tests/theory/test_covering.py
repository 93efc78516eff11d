import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.models import LinearClass
from gfucb.theory.covering import (
    covering_bounds,
    greedy_net,
    greedy_packing,
    linear_log_covering,
    lipschitz_log_covering,
)


def distance(f, g) -> float:
    """Sup over inputs of the l2 norm, in plain Python."""
    return max(math.dist(np.atleast_1d(a), np.atleast_1d(b)) for a, b in zip(f, g, strict=True))


def covers(values, net, scale: float) -> bool:
    return all(any(distance(f, values[c]) <= scale for c in net) for f in values)


def is_packing(values, chosen, scale: float) -> bool:
    return all(distance(values[a], values[b]) > scale for a, b in itertools.combinations(chosen, 2))


def subsets(count: int):
    return itertools.chain.from_iterable(
        itertools.combinations(range(count), size) for size in range(1, count + 1)
    )


tables = st.lists(st.lists(st.integers(0, 6), min_size=2, max_size=2), min_size=1, max_size=7)


@settings(max_examples=100, deadline=None)
@given(tables, st.sampled_from([0.5, 1.0, 2.0]))
def test_packing_at_twice_the_scale_is_at_most_the_cover_and_the_cover_at_most_the_packing(
    values, scale
):
    covering = min(len(s) for s in subsets(len(values)) if covers(values, s, scale))
    bounds = covering_bounds(values, scale)
    assert covers(values, bounds.net, scale)
    assert is_packing(values, bounds.packing, 2 * scale)
    assert bounds.lower <= covering <= bounds.upper
    packings = [
        max(len(s) for s in subsets(len(values)) if is_packing(values, s, size))
        for size in (2 * scale, scale)
    ]
    assert packings[0] <= covering <= packings[1]
    assert bounds.lower <= packings[0] and len(greedy_packing(values, scale)) <= packings[1]


@pytest.mark.parametrize("shape", [(40, 6), (40, 6, 3)])
@pytest.mark.parametrize("scale", [0.1, 1.0, 2.0])
def test_nets_and_maximal_packings_are_covers(shape, scale):
    values = torch.randn(shape, generator=random_stream(0, "class"), dtype=torch.float64)
    for chosen in (greedy_net(values, scale), greedy_packing(values, scale)):
        assert covers(values.numpy(), chosen, scale)
    assert is_packing(values.numpy(), greedy_packing(values, scale), scale)
    bounds = covering_bounds(values, scale)
    assert bounds.lower <= bounds.upper


def test_the_covering_numbers_of_a_grid_of_constants_are_known():
    values = np.arange(9.0)[:, None] * np.ones(4)
    assert covering_bounds(values, 1.0).upper == 3
    assert covering_bounds(values, 1.0).lower == 3
    assert covering_bounds(values, 0.4).upper == 9
    assert covering_bounds(values, 100.0).upper == 1


def test_features_of_one_dimension_are_values():
    values = torch.randn(30, 5, generator=random_stream(1, "class"), dtype=torch.float64)
    assert covering_bounds(values, 0.7) == covering_bounds(values[..., None], 0.7)


def test_closed_forms_agree_with_each_other_and_with_the_linear_class():
    by_hand = 6 * math.log(1 + 2 * math.sqrt(2) / 0.1)
    assert linear_log_covering(2, 3, 0.1, norm_bound=math.sqrt(2)) == pytest.approx(by_hand)
    assert LinearClass(3, 2).log_covering_number(0.1) == pytest.approx(by_hand)
    assert lipschitz_log_covering(10, 0.5, norm_bound=3.0, lipschitz=2.0) == pytest.approx(
        10 * math.log(25)
    )
    assert lipschitz_log_covering(10, 0.5, norm_bound=3.0, lipschitz=0.0) == 0


def test_a_sampled_ball_of_linear_maps_is_within_the_closed_form():
    generator = random_stream(0, "ball")
    weights = torch.randn(200, 2, generator=generator, dtype=torch.float64)
    weights = weights / weights.norm(dim=1, keepdim=True)
    inputs = torch.randn(30, 2, generator=generator, dtype=torch.float64)
    values = weights @ (inputs / inputs.norm(dim=1, keepdim=True)).T
    for scale in (0.1, 0.5, 1.0):
        log_bound = linear_log_covering(1, 2, scale, norm_bound=1.0)
        assert math.log(covering_bounds(values, scale).lower) <= log_bound


@pytest.mark.parametrize("function", [greedy_net, greedy_packing, covering_bounds])
def test_invalid_classes_and_scales_are_refused(function):
    for scale in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidInputError, match="scale must be a finite number above 0"):
            function([[0.0, 1.0]], scale)
    with pytest.raises(InvalidInputError, match="at least one function"):
        function(np.zeros((0, 3)), 1.0)
    with pytest.raises(InvalidInputError, match="finite"):
        function([[float("nan")]], 1.0)
    with pytest.raises(InvalidInputError, match=r"\[function, input\] or"):
        function(np.zeros(3), 1.0)


def test_invalid_sizes_are_refused():
    with pytest.raises(InvalidInputError, match="norm_bound"):
        lipschitz_log_covering(3, 0.1, norm_bound=-1.0, lipschitz=1.0)
    with pytest.raises(InvalidInputError, match="scale"):
        linear_log_covering(1, 2, 0.0, norm_bound=1.0)
    with pytest.raises(InvalidInputError, match="num_parameters"):
        lipschitz_log_covering(0, 0.1, norm_bound=1.0, lipschitz=1.0)

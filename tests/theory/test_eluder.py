import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.theory.eluder import (
    EluderDimension,
    eluder_dimension,
    eluder_lower_bound,
    is_independent,
    lemma_2_example,
    sum_class,
)
from gfucb.theory.eluder_bounds import finite_inputs_bound, linear_eluder_bound
from gfucb.theory.subset_search import (
    Chain,
    candidate_cuts,
    longest_chain,
    squared_differences,
)

# Together they take seconds.
pytestmark = pytest.mark.slow


def random_table(seed: int, num_functions: int, num_inputs: int) -> np.ndarray:
    generator = random_stream(seed, "class")
    return torch.randn(num_functions, num_inputs, generator=generator, dtype=torch.float64).numpy()


def differences(values) -> list[list[float]]:
    return [[abs(a - b) for a, b in zip(f, g, strict=True)] for f in values for g in values]


def satisfies_the_definition(values, found: EluderDimension, scale: float) -> bool:
    pairs = differences(np.asarray(values).tolist())
    before: list[int] = []
    for x in found.sequence:
        if not any(sum(p[y] ** 2 for y in before) ** 0.5 <= found.scale < p[x] for p in pairs):
            return False
        before.append(x)
    return found.scale >= scale and len(before) == found.dimension


def longest_sequence(pairs, eps: float, before: tuple[int, ...] = ()) -> int:
    alive = [p for p in pairs if sum(p[y] ** 2 for y in before) ** 0.5 <= eps]
    following = [x for x in range(len(pairs[0])) if any(p[x] > eps for p in alive)]
    return max((1 + longest_sequence(pairs, eps, (*before, x)) for x in following), default=0)


def brute_force(values, scale: float) -> int:
    """Every sequence, repeats included, at an eps' in every gap between differences and sums."""
    pairs = differences(np.asarray(values).tolist())
    num_inputs = len(pairs[0])
    sums = {
        sum(p[y] ** 2 for y in subset) ** 0.5
        for p in pairs
        for size in range(num_inputs)
        for subset in itertools.combinations(range(num_inputs), size)
    }
    ends = sorted({d for p in pairs for d in p if d > scale})
    # For each difference, the largest eps' below it that no sum separates from it.
    candidates = {scale} | {max([scale, *(s for s in sums if s < end - 1e-9)]) for end in ends}
    return max(longest_sequence(pairs, eps) for eps in candidates)


def finite_field_class(order: int, dim: int) -> np.ndarray:
    """The linear maps of a finite field, x -> [<a, x> = 0] for all a and all x."""
    points = np.array(list(itertools.product(range(order), repeat=dim)))
    return ((points @ points.T) % order == 0).astype(np.float64)


@pytest.mark.parametrize("n", [1, 2, 5, 12, 16])
def test_the_dimension_of_n_singletons_and_zero_is_n(n):
    values = np.concatenate([np.zeros((1, n)), np.eye(n)])
    assert eluder_dimension(values, 0.5).dimension == n


@pytest.mark.parametrize("n", [1, 2, 5, 12, 16])
def test_the_dimension_of_thresholds_on_n_inputs_is_n(n):
    values = np.tril(np.ones((n + 1, n)), k=-1)
    assert eluder_dimension(values, 0.5).dimension == n


@pytest.mark.parametrize(("order", "dim"), [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2)])
def test_linear_maps_over_small_fields_agree_with_brute_force(order, dim):
    values = finite_field_class(order, dim)
    assert eluder_dimension(values, 0.5).dimension == brute_force(values, 0.5)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_linear_maps_over_the_field_of_two_have_dimension_d(dim):
    # As 0/1 functions agreement is exact, so an input is independent iff outside the span.
    assert eluder_dimension(finite_field_class(2, dim), 0.5).dimension == dim


@pytest.mark.parametrize(
    ("num_tasks", "equal_inputs", "dimension"),
    [(1, False, 2), (2, False, 8), (1, True, 2), (2, True, 2), (3, True, 2)],
)
def test_the_sum_class_has_a_larger_dimension_unless_inputs_are_equal(
    num_tasks, equal_inputs, dimension
):
    values = lemma_2_example(num_tasks, equal_inputs=equal_inputs)
    assert values.shape[1] == (2 if equal_inputs else 3**num_tasks - 1)
    for scale in (0.01, 0.5):
        found = eluder_dimension(values, scale)
        assert found.dimension == dimension
        assert satisfies_the_definition(values, found, scale)


def test_members_of_the_sum_class_share_the_representation_but_not_the_head():
    values = np.arange(8.0).reshape(2, 2, 2) ** 2  # [representation, head, input]
    expected = [
        [values[r, h, x] + values[r, k, y] for x in range(2) for y in range(2)]
        for r in range(2)
        for h in range(2)
        for k in range(2)
    ]
    np.testing.assert_array_equal(sum_class(values, 2), expected)
    np.testing.assert_array_equal(sum_class(values, 1), values.reshape(4, 2))


tables = st.integers(2, 5).flatmap(
    lambda num_inputs: st.lists(
        st.lists(st.integers(0, 4), min_size=num_inputs, max_size=num_inputs),
        min_size=1,
        max_size=6,
    )
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(tables, st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0]))
def test_the_dimension_of_integer_classes_agrees_with_brute_force(values, scale):
    found = eluder_dimension(values, scale)
    assert found.dimension == brute_force(values, scale)
    assert satisfies_the_definition(values, found, scale)


@pytest.mark.parametrize("seed", range(60))
def test_the_dimension_of_real_classes_agrees_with_brute_force(seed):
    values = random_table(seed, 3 + seed % 5, 2 + seed % 4)
    scale = (0.05, 0.3, 1.0)[seed % 3]
    found = eluder_dimension(values, scale)
    assert found.dimension == brute_force(values, scale)
    assert satisfies_the_definition(values, found, scale)


@pytest.mark.parametrize("seed", range(40))
def test_the_exact_search_does_not_depend_on_the_known_chain(seed):
    values = random_table(seed, 3 + seed % 7, 2 + seed % 4)
    if seed % 2:
        values = values.round()
    squares = squared_differences(values, 0.3)
    cuts = candidate_cuts(squares, 0.3)
    found = longest_chain(squares, cuts, known=Chain((), 0.0))
    assert len(found.inputs) == brute_force(values, 0.3)


@pytest.mark.parametrize("seed", range(10))
def test_bounds_are_ordered_and_their_sequences_obey_the_definition(seed):
    values = random_table(seed, 20, 3) @ random_table(seed + 100, 3, 9)
    lower = eluder_lower_bound(values, 0.4, random_stream(seed, "search"))
    exact = eluder_dimension(values, 0.4)
    assert 1 <= lower.dimension <= exact.dimension <= finite_inputs_bound(9)
    for found in (lower, exact):
        assert satisfies_the_definition(values, found, 0.4)
    assert exact.is_exact and not lower.is_exact


def test_the_dimension_decreases_to_zero_as_the_scale_grows():
    values = random_table(0, 12, 8)
    dimensions = [eluder_dimension(values, s).dimension for s in (0.1, 0.5, 1.0, 2.0, 3.0, 100.0)]
    assert dimensions == sorted(dimensions, reverse=True)
    assert dimensions[-1] == 0


def test_the_dimension_is_invariant_to_order_duplicates_shifts_and_units():
    values = random_table(1, 10, 7)
    dimension = eluder_dimension(values, 0.5).dimension
    assert eluder_dimension(values[::-1, ::-1].copy(), 0.5).dimension == dimension
    doubled = np.tile(values, (2, 2))
    assert eluder_dimension(doubled, 0.5).dimension == dimension
    assert eluder_dimension(values + np.arange(7), 0.5).dimension == dimension
    assert eluder_dimension(1e-3 * values, 0.5e-3).dimension == dimension
    assert eluder_dimension(torch.as_tensor(values), 0.5).dimension == dimension


def test_the_dimension_of_a_linear_class_is_below_its_closed_form():
    thetas = random_table(2, 60, 2)
    inputs = random_table(3, 2, 12)
    thetas /= np.linalg.norm(thetas, axis=1, keepdims=True)
    inputs /= np.linalg.norm(inputs, axis=0)
    found = eluder_dimension(thetas @ inputs, 0.2)
    assert found.dimension <= linear_eluder_bound(2, 0.2, norm_bound=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [None, 2])
def test_the_exact_dimension_works_for_sixteen_inputs_and_a_hundred_functions(rank):
    values = random_table(0, 100, 16)
    if rank is not None:
        values = random_table(0, 100, rank) @ random_table(1, rank, 16)
    found = eluder_dimension(values, 0.5)
    lower = eluder_lower_bound(values, 0.5, random_stream(0, "search"))
    assert found.is_exact and lower.dimension <= found.dimension <= finite_inputs_bound(16)
    assert satisfies_the_definition(values, found, 0.5)


@pytest.mark.slow
def test_the_lower_bound_works_for_large_classes_and_is_reproducible():
    values = random_table(4, 400, 40)
    found = [eluder_lower_bound(values, 0.5, random_stream(0, "search")) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].dimension > 16
    assert is_an_independent_sequence(values, found[0])


def is_an_independent_sequence(values, found: EluderDimension) -> bool:
    return all(
        is_independent(values, found.sequence[:position], x, found.scale)
        for position, x in enumerate(found.sequence)
    )


def test_independence_needs_agreement_on_predecessors_and_a_difference_at_the_input():
    values = [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 1.0]]
    assert is_independent(values, [], 0, 0.2)
    assert is_independent(values, [0], 1, 0.2)
    assert not is_independent(values, [0], 2, 0.2)
    assert is_independent(values, [0], 2, 0.3)
    assert not is_independent(values, [0, 1], 2, 0.3)
    assert not is_independent(values, [1], 1, 0.2)
    assert not is_independent(values[:1], [], 1, 0.2)


@pytest.mark.parametrize("shape", [(4, 17), (129, 4)])
def test_larger_problems_are_refused_with_the_limit_and_an_alternative(shape):
    with pytest.raises(InvalidInputError, match=r"at most 16 .* 128 .*eluder_lower_bound"):
        eluder_dimension(random_table(0, *shape), 0.5)


@pytest.mark.parametrize(
    ("values", "scale", "message"),
    [
        ([[0.0, 1.0]], 0.0, "scale must be a finite number above 0"),
        ([[0.0, 1.0]], -1.0, "scale must be a finite number above 0"),
        ([[0.0, 1.0]], float("nan"), "scale must be a finite number above 0"),
        (np.zeros((0, 3)), 1.0, "at least one function"),
        (np.zeros((3, 0)), 1.0, "at least one function and one input"),
        (np.zeros(3), 1.0, r"table \[function, input\]"),
        ([[0.0, float("nan")]], 1.0, "must be finite"),
        ([[0.0, float("inf")]], 1.0, "must be finite"),
    ],
)
def test_invalid_classes_and_scales_are_refused(values, scale, message):
    generator = random_stream(0, "search")
    for call in (
        lambda: eluder_dimension(values, scale),
        lambda: eluder_lower_bound(values, scale, generator),
        lambda: is_independent(values, [], 0, scale),
    ):
        with pytest.raises(InvalidInputError, match=message):
            call()


def test_unknown_inputs_and_empty_searches_are_refused():
    values = random_table(0, 3, 3)
    with pytest.raises(InvalidInputError, match="numbered 0 to 2"):
        is_independent(values, [3], 0, 1.0)
    with pytest.raises(InvalidInputError, match="beam_width must be an integer"):
        eluder_lower_bound(values, 1.0, random_stream(0, "search"), beam_width=0)
    with pytest.raises(InvalidInputError, match="num_tasks must be an integer"):
        lemma_2_example(0)
    with pytest.raises(InvalidInputError, match="representation, head, input"):
        sum_class(values, 2)

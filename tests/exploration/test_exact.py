from dataclasses import replace

import pytest
import torch

from gfucb import Greedy, LastLayer
from gfucb.checks import check_action_selector
from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError, TooManyTuplesError
from gfucb.core.random import random_stream
from gfucb.exploration import Enumerated, ExactFinite

SEEDS = range(6)
RADII = [0.0, 0.05, 1.0, 20.0]
# Enumerations take long: two seeds in the fast tests, all of them in the full ones.
FEW_SEEDS = [*SEEDS[:2], *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[2:])]


def total(choice) -> float:
    return float(choice.values.sum())


@pytest.mark.slow
@pytest.mark.parametrize("seed", FEW_SEEDS)
@pytest.mark.parametrize("squared_radius", RADII)
def test_the_exact_selector_equals_the_enumeration_of_all_tuples(finite_case, seed, squared_radius):
    case = finite_case(seed, num_tasks=3, num_actions=3)
    confidence_set, action_sets = case.confidence_set(squared_radius), case.action_sets()
    exact = ExactFinite()(confidence_set, action_sets)
    enumerated = Enumerated(ExactFinite())(confidence_set, action_sets)
    assert exact.is_exact
    assert total(exact) == pytest.approx(total(enumerated), rel=1e-9, abs=1e-9)
    assert exact.squared_distance == pytest.approx(
        confidence_set.squared_distance(exact.function), rel=1e-8, abs=1e-10
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", FEW_SEEDS)
def test_it_does_with_unavailable_actions_and_several_rows_of_a_task(finite_case, seed):
    case = finite_case(seed, num_tasks=3, num_actions=3)
    candidates = torch.cat([case.action_sets(7).candidates, case.action_sets(8).candidates[:2]])
    generator = random_stream(seed, "ragged")
    available = torch.rand(5, 3, generator=generator) < 0.7
    available[:, 0] = True
    action_sets = ActionSets(candidates, torch.tensor([0, 1, 2, 1, 1]), available)
    confidence_set = case.confidence_set(1.0)
    exact = ExactFinite()(confidence_set, action_sets)
    enumerated = Enumerated(ExactFinite())(confidence_set, action_sets)
    assert exact.is_exact
    assert bool(available.gather(1, exact.actions[:, None]).all())
    assert total(exact) == pytest.approx(total(enumerated), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_selected_member_is_at_least_as_optimistic_as_a_true_function_in_the_set(
    finite_case, seed
):
    case = finite_case(seed)
    radius = case.confidence_set(0.0).squared_distance(case.environment.true_function) * 1.01
    confidence_set, action_sets = case.confidence_set(radius), case.action_sets()
    assert confidence_set.contains(case.environment.true_function)
    choice = ExactFinite()(confidence_set, action_sets)
    assert confidence_set.contains(choice.function)
    features = action_sets.features(case.environment.true_function.representation)
    true_values = case.environment.true_function.values_of_features(
        features, action_sets.tasks[:, None]
    )
    assert total(choice) >= float(true_values.amax(1).sum()) - 1e-9


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("selector", [ExactFinite(), LastLayer(), Greedy()])
def test_selectors_pass_the_check(finite_case, seed, selector):
    case = finite_case(seed)
    cases = [(case.confidence_set(r), case.action_sets(i)) for i, r in enumerate(RADII, start=50)]
    check_action_selector(selector, cases)


@pytest.mark.parametrize("seed", SEEDS)
def test_values_increase_with_the_radius_and_those_of_the_last_layer_are_smaller(finite_case, seed):
    case, action_sets = finite_case(seed), finite_case(seed).action_sets()
    exact = [total(ExactFinite()(case.confidence_set(r), action_sets)) for r in RADII]
    layer = [total(LastLayer()(case.confidence_set(r), action_sets)) for r in RADII]
    assert exact == sorted(exact) and layer == sorted(layer)
    for one, other in zip(layer, exact, strict=True):
        assert one <= other + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_at_radius_zero_all_selectors_are_greedy(finite_case, seed):
    case = finite_case(seed)
    point, action_sets = case.confidence_set(0.0), case.action_sets()
    greedy = Greedy()(point, action_sets)
    for selector in (ExactFinite(), LastLayer(), LastLayer(joint=False)):
        choice = selector(point, action_sets)
        assert torch.equal(choice.actions, greedy.actions)
        torch.testing.assert_close(choice.values, greedy.values)


def test_separate_radii_give_the_upper_confidence_bound_of_each_row(finite_case):
    case = finite_case(0)
    confidence_set, action_sets = case.confidence_set(2.0), case.action_sets()
    choice = LastLayer(joint=False)(confidence_set, action_sets)
    alone = replace(confidence_set, members=[case.center.representation])
    for row in range(len(action_sets.tasks)):
        tasks = action_sets.tasks[row].repeat(5)
        upper = alone.upper_values(action_sets.candidates[row], tasks)
        assert int(choice.actions[row]) == int(upper.argmax())
        assert float(choice.values[row]) == pytest.approx(float(upper.max()), rel=1e-10)


def test_relabelling_the_tasks_relabels_the_choice(finite_case):
    case = finite_case(1)
    action_sets, confidence_set = case.action_sets(), case.confidence_set(1.0)
    order = torch.tensor([2, 0, 3, 1])
    relabelled = ActionSets(
        action_sets.candidates[order], action_sets.tasks[order], action_sets.available[order]
    )
    one, other = (
        ExactFinite()(confidence_set, action_sets),
        ExactFinite()(confidence_set, relabelled),
    )
    assert torch.equal(one.actions[order], other.actions)
    torch.testing.assert_close(one.values[order], other.values)


def test_norm_bounded_heads_stay_inside_both_constraints(finite_case):
    case = finite_case(2)
    bound = float(case.center.heads.norm(dim=1).max()) * 1.05
    confidence_set = case.confidence_set(5.0, head_norm_bound=bound)
    choice = LastLayer()(confidence_set, case.action_sets())
    free = LastLayer()(case.confidence_set(5.0), case.action_sets())
    assert confidence_set.contains(choice.function, tolerance=1e-6)
    assert not choice.is_exact
    assert total(choice) < total(free)


def test_a_task_with_many_rows_has_a_selection_that_is_not_exact(finite_case):
    case = finite_case(0)
    candidates = torch.cat([case.action_sets(i).candidates[:1] for i in range(7)])
    action_sets = ActionSets(
        candidates, torch.zeros(7, dtype=torch.int64), torch.ones(7, 5, dtype=torch.bool)
    )
    choice = LastLayer()(case.confidence_set(1.0), action_sets)
    assert not choice.is_exact
    assert case.confidence_set(1.0).contains(choice.function)


def test_enumeration_refuses_more_than_ten_thousand_tuples(finite_case):
    case = finite_case(0, num_tasks=6, num_actions=5)
    with pytest.raises(TooManyTuplesError, match=r"15625 .* at most 10000"):
        Enumerated(Greedy())(case.confidence_set(1.0), case.action_sets())


def test_exact_optimism_refuses_a_set_without_members(finite_case):
    case = finite_case(0)
    with pytest.raises(InvalidInputError, match="members"):
        ExactFinite()(case.confidence_set(1.0, members=None), case.action_sets())

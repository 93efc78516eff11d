"""Inverse gap weighting: probabilities by hand, and the frequencies of draws."""

from dataclasses import replace

import pytest
import torch

from gfucb import Greedy
from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.exploration import InverseGap


def first_actions(case, actions: int) -> ActionSets:
    action_sets = case.action_sets()
    candidates = action_sets.candidates[:, :actions]
    return ActionSets(candidates, action_sets.tasks, action_sets.available[:, :actions])


def test_inverse_gap_weighting_at_a_point_computed_by_hand(finite_case):
    case = finite_case(0, num_rounds=3)  # t = 4
    confidence_set, action_sets = case.confidence_set(0.0), first_actions(case, 4)
    available = action_sets.available.clone()
    available[0, 3] = False
    action_sets = replace(action_sets, available=available)
    values = torch.tensor([[0.1, 0.5, 0.3, 0.9]]).double().expand(len(action_sets.tasks), 4)
    probabilities = InverseGap(2.0).probabilities(confidence_set, action_sets, values)
    gamma = 2.0 * (3 * 4) ** 0.5  # three available actions
    low, middle = 1 / (3 + gamma * 0.4), 1 / (3 + gamma * 0.2)
    assert probabilities[0].tolist() == pytest.approx([low, 1 - low - middle, middle, 0.0])
    gamma = 2.0 * (4 * 4) ** 0.5
    others = [1 / (4 + gamma * gap) for gap in (0.8, 0.4, 0.6)]
    assert probabilities[1].tolist() == pytest.approx([*others, 1 - sum(others)])


def test_gaps_are_measured_in_units_of_the_value_range(finite_case):
    case = finite_case(0)
    action_sets = case.action_sets()
    values = action_sets.values_of(case.center)
    wide = replace(case.center, value_range=(-2.0, 2.0))
    one = InverseGap(8.0).probabilities(
        replace(case.confidence_set(0.0), center=wide), action_sets, values
    )
    narrow = InverseGap(2.0).probabilities(case.confidence_set(0.0), action_sets, values)
    torch.testing.assert_close(one, narrow)


def test_actions_are_drawn_with_their_probabilities_and_never_when_unavailable(finite_case):
    case = finite_case(4)
    confidence_set, action_sets = case.confidence_set(0.0), case.action_sets()
    action_sets = replace(action_sets, available=action_sets.available.clone())
    action_sets.available[:, 1] = False
    probabilities = InverseGap().probabilities(
        confidence_set, action_sets, action_sets.values_of(confidence_set.center)
    )
    counts = torch.zeros_like(probabilities)
    for seed in range(600):
        actions = InverseGap(seed=seed)(confidence_set, action_sets).actions
        counts += torch.nn.functional.one_hot(actions, counts.shape[1])
    assert (counts[:, 1] == 0).all()
    spread = (probabilities * (1 - probabilities) / 600).sqrt()
    assert ((counts / 600 - probabilities).abs() <= 5 * spread + 1e-9).all()


def test_a_large_scale_is_greedy_and_zero_is_uniform(finite_case):
    confidence_set, action_sets = finite_case(5).confidence_set(0.0), finite_case(5).action_sets()
    greedy = Greedy()(confidence_set, action_sets)
    drawn = InverseGap(1e12)(confidence_set, action_sets)
    assert torch.equal(drawn.actions, greedy.actions)
    torch.testing.assert_close(drawn.values, greedy.values)
    values = action_sets.values_of(confidence_set.center)
    probabilities = InverseGap(0.0).probabilities(confidence_set, action_sets, values)
    torch.testing.assert_close(
        probabilities, torch.full_like(probabilities, 1 / probabilities.shape[1])
    )


@pytest.mark.parametrize("scale", [-1.0, float("inf"), float("nan")])
def test_impossible_scales_are_refused(scale):
    with pytest.raises(InvalidInputError, match="scale"):
        InverseGap(scale)

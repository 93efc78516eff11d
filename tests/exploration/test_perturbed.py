"""Perturbed rewards: a greedy choice, and a request to the agent."""

import pytest
import torch

from gfucb import Greedy
from gfucb.core.errors import InvalidInputError
from gfucb.exploration import PerturbedRewards


def test_the_choice_is_greedy(finite_case):
    confidence_set, action_sets = finite_case(0).confidence_set(1.0), finite_case(0).action_sets()
    perturbed, greedy = (
        selector(confidence_set, action_sets) for selector in (PerturbedRewards(), Greedy())
    )
    assert torch.equal(perturbed.actions, greedy.actions)
    assert torch.equal(perturbed.values, greedy.values)


@pytest.mark.parametrize("deviation", [-0.1, float("nan"), float("inf")])
def test_impossible_perturbations_are_refused(deviation):
    with pytest.raises(InvalidInputError, match="reward_perturbation"):
        PerturbedRewards(deviation)

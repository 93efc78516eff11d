"""Thompson sampling of heads: its distribution, and draws that change with the data only."""

from dataclasses import replace

import pytest
import torch

from gfucb import Greedy
from gfucb.core.action_sets import ActionSets
from gfucb.exploration import HeadSampling, InverseGap

# With scale zero all actions are equally likely, so that different draws are visible.
SELECTORS = [HeadSampling, lambda seed: InverseGap(0.0, seed)]


def test_sampled_heads_have_the_covariance_of_the_ellipsoid(finite_case):
    confidence_set = finite_case(0).confidence_set(0.3)
    action_sets, heads = finite_case(0).action_sets(), confidence_set.center.heads
    draws = torch.stack(
        [HeadSampling(seed)(confidence_set, action_sets).function.heads for seed in range(600)]
    )
    factors = confidence_set.ellipsoid().cholesky
    # Whitened by L^T / radius, the steps are standard normal.
    white = torch.einsum("tkj,stk->stj", factors, draws - heads) / 0.3**0.5
    covariance = torch.einsum("sti,stj->tij", white, white) / len(white)
    assert (white.mean(0).abs() < 5 / 600**0.5).all()
    assert ((covariance - torch.eye(heads.shape[1])).abs() < 5 * (2 / 600) ** 0.5).all()


def test_sampled_heads_are_one_function_for_all_rows(finite_case):
    confidence_set, action_sets = finite_case(1).confidence_set(0.5), finite_case(1).action_sets()
    selector = HeadSampling(3)
    together = selector(confidence_set, action_sets)
    torch.testing.assert_close(
        together.values,
        together.function.values(action_sets.inputs_of(together.actions), action_sets.tasks),
    )
    for row in range(len(action_sets.tasks)):
        rows = slice(row, row + 1)
        one = ActionSets(
            action_sets.candidates[rows], action_sets.tasks[rows], action_sets.available[rows]
        )
        assert torch.equal(selector(confidence_set, one).values[0], together.values[row])
    assert together.squared_distance == pytest.approx(
        confidence_set.squared_distance(together.function)
    )


def test_heads_are_not_sampled_at_radius_zero(finite_case):
    confidence_set, action_sets = finite_case(2).confidence_set(0.0), finite_case(2).action_sets()
    sampled, greedy = (
        HeadSampling()(confidence_set, action_sets),
        Greedy()(confidence_set, action_sets),
    )
    torch.testing.assert_close(sampled.values, greedy.values)


@pytest.mark.parametrize("make_selector", SELECTORS)
def test_draws_are_the_same_until_the_next_reward(finite_case, make_selector):
    def values(seed: int, num_rounds: int) -> torch.Tensor:
        case = finite_case(6, num_rounds=num_rounds)
        # The same center, so that only the number of samples differs.
        confidence_set = replace(finite_case(6).confidence_set(1.0), data=case.data)
        return make_selector(seed)(confidence_set, case.action_sets()).values

    assert torch.equal(values(0, 6), values(0, 6))
    assert not torch.equal(values(0, 6), values(1, 6))
    assert not torch.equal(values(0, 6), values(0, 7))

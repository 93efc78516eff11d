"""Exploration at random: distributions, and the same answer until the next reward."""

from dataclasses import replace

import pytest
import torch

import gfucb
from gfucb.core.errors import InvalidInputError
from gfucb.exploration import Greedy

# Inverse gaps of scale zero: every action is as likely, so that other draws are seen.
SOLVERS = [gfucb.exploration.HeadSampling, lambda seed: gfucb.exploration.InverseGap(0.0, seed)]


def offering(case, actions: int) -> gfucb.core.records.ActionSets:
    action_sets = case.action_sets()
    candidates = action_sets.candidates[:, :actions]
    return gfucb.core.records.ActionSets(
        candidates, action_sets.tasks, action_sets.available[:, :actions]
    )


def test_sampled_heads_have_the_covariance_of_the_ellipsoid(finite_case):
    confidence_set = finite_case(0).confidence_set(0.3)
    action_sets, heads = finite_case(0).action_sets(), confidence_set.center.heads
    draws = torch.stack(
        [
            gfucb.exploration.HeadSampling(seed)(confidence_set, action_sets).function.heads
            for seed in range(600)
        ]
    )
    factors = confidence_set.ellipsoid().cholesky
    # Whitened by L^T / radius, the steps are standard normal.
    white = torch.einsum("tkj,stk->stj", factors, draws - heads) / 0.3**0.5
    covariance = torch.einsum("sti,stj->tij", white, white) / len(white)
    assert (white.mean(0).abs() < 5 / 600**0.5).all()
    assert ((covariance - torch.eye(heads.shape[1])).abs() < 5 * (2 / 600) ** 0.5).all()


def test_sampled_heads_are_one_function_whoever_is_asked(finite_case):
    confidence_set, action_sets = finite_case(1).confidence_set(0.5), finite_case(1).action_sets()
    solver = gfucb.exploration.HeadSampling(3)
    together = solver(confidence_set, action_sets)
    torch.testing.assert_close(
        together.values,
        together.function.values(action_sets.inputs_of(together.actions), action_sets.tasks),
    )
    for row in range(len(action_sets.tasks)):
        rows = slice(row, row + 1)
        one = gfucb.core.records.ActionSets(
            action_sets.candidates[rows], action_sets.tasks[rows], action_sets.available[rows]
        )
        assert torch.equal(solver(confidence_set, one).values[0], together.values[row])
    assert together.squared_distance == pytest.approx(
        confidence_set.squared_distance(together.function)
    )


def test_heads_are_not_sampled_at_radius_zero(finite_case):
    confidence_set, action_sets = finite_case(2).confidence_set(0.0), finite_case(2).action_sets()
    sampled, greedy = (
        gfucb.exploration.HeadSampling()(confidence_set, action_sets),
        Greedy()(confidence_set, action_sets),
    )
    torch.testing.assert_close(sampled.values, greedy.values)


def test_inverse_gap_weighting_at_a_point_computed_by_hand(finite_case):
    case = finite_case(0, num_rounds=3)  # t = 4
    confidence_set, action_sets = case.confidence_set(0.0), offering(case, 4)
    available = action_sets.available.clone()
    available[0, 3] = False
    action_sets = replace(action_sets, available=available)
    values = torch.tensor([[0.1, 0.5, 0.3, 0.9]]).double().expand(len(action_sets.tasks), 4)
    chances = gfucb.exploration.InverseGap(2.0).probabilities(confidence_set, action_sets, values)
    gamma = 2.0 * (3 * 4) ** 0.5  # three on offer
    low, middle = 1 / (3 + gamma * 0.4), 1 / (3 + gamma * 0.2)
    assert chances[0].tolist() == pytest.approx([low, 1 - low - middle, middle, 0.0])
    gamma = 2.0 * (4 * 4) ** 0.5
    others = [1 / (4 + gamma * gap) for gap in (0.8, 0.4, 0.6)]
    assert chances[1].tolist() == pytest.approx([*others, 1 - sum(others)])


def test_gaps_are_measured_in_units_of_the_value_range(finite_case):
    case = finite_case(0)
    action_sets = case.action_sets()
    values = action_sets.values_of(case.center)
    wide = replace(case.center, value_range=(-2.0, 2.0))
    one = gfucb.exploration.InverseGap(8.0).probabilities(
        replace(case.confidence_set(0.0), center=wide), action_sets, values
    )
    narrow = gfucb.exploration.InverseGap(2.0).probabilities(
        case.confidence_set(0.0), action_sets, values
    )
    torch.testing.assert_close(one, narrow)


def test_actions_are_drawn_with_their_chances_and_never_when_not_offered(finite_case):
    case = finite_case(4)
    confidence_set, action_sets = case.confidence_set(0.0), case.action_sets()
    action_sets = replace(action_sets, available=action_sets.available.clone())
    action_sets.available[:, 1] = False
    chances = gfucb.exploration.InverseGap().probabilities(
        confidence_set, action_sets, action_sets.values_of(confidence_set.center)
    )
    counts = torch.zeros_like(chances)
    for seed in range(600):
        actions = gfucb.exploration.InverseGap(seed=seed)(confidence_set, action_sets).actions
        counts += torch.nn.functional.one_hot(actions, counts.shape[1])
    assert (counts[:, 1] == 0).all()
    spread = (chances * (1 - chances) / 600).sqrt()
    assert ((counts / 600 - chances).abs() <= 5 * spread + 1e-9).all()


def test_a_large_scale_is_greedy_and_zero_is_uniform(finite_case):
    confidence_set, action_sets = finite_case(5).confidence_set(0.0), finite_case(5).action_sets()
    greedy = Greedy()(confidence_set, action_sets)
    drawn = gfucb.exploration.InverseGap(1e12)(confidence_set, action_sets)
    assert torch.equal(drawn.actions, greedy.actions)
    torch.testing.assert_close(drawn.values, greedy.values)
    values = action_sets.values_of(confidence_set.center)
    chances = gfucb.exploration.InverseGap(0.0).probabilities(confidence_set, action_sets, values)
    torch.testing.assert_close(chances, torch.full_like(chances, 1 / chances.shape[1]))


@pytest.mark.parametrize("solver", SOLVERS)
def test_lots_are_the_same_until_the_next_reward(finite_case, solver):
    def values(seed: int, num_rounds: int) -> torch.Tensor:
        case = finite_case(6, num_rounds=num_rounds)
        # The same fit_state, so that only the number of samples differs.
        confidence_set = replace(finite_case(6).confidence_set(1.0), data=case.data)
        return solver(seed)(confidence_set, case.action_sets()).values

    assert torch.equal(values(0, 6), values(0, 6))
    assert not torch.equal(values(0, 6), values(1, 6))
    assert not torch.equal(values(0, 6), values(0, 7))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: gfucb.exploration.InverseGap(-1.0), "scale"),
        (lambda: gfucb.exploration.InverseGap(float("inf")), "scale"),
        (lambda: gfucb.exploration.PerturbedRewards(-0.1), "perturbation"),
        (lambda: gfucb.exploration.PerturbedRewards(float("nan")), "perturbation"),
    ],
)
def test_impossible_scales_are_refused_by_name(make, word):
    with pytest.raises(InvalidInputError, match=word):
        make()

"""Linearised optimism against exact solutions, enumeration and the network itself."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from gfucb import GFUCB, Greedy, LastLayer, VariableProjection
from gfucb.checks import check_action_selector, check_bandit_agent
from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import global_randomness_from, random_stream
from gfucb.environments import ImageBandit, load_digits
from gfucb.estimation import best_on
from gfucb.exploration import Certified, Enumerated, GradientBonus, Linearised
from gfucb.exploration.tangent import Tangent
from gfucb.exploration.tangent_choice import TangentChoice
from gfucb.models import (
    ConfidenceSet,
    HeadPenalty,
    IdentityRepresentation,
    MultiheadFunction,
    MultitaskDataset,
    NeuralRepresentation,
)
from gfucb.models.tangents import WeightSketch
from gfucb.runs import play

WHOLE = WeightSketch(dim=None)


def case(
    seed: int,
    module: nn.Module | None = None,
    *,
    ridge: float = 0.5,
    tasks: int = 3,
    actions: int = 4,
    squared_radius: float = 0.3,
) -> tuple[ConfidenceSet, ActionSets]:
    """Random data, a fit of the heads on `module`, and action sets."""
    dim, generator = 4, random_stream(seed, "case")
    if module is None:
        with global_randomness_from(random_stream(seed, "module")):
            module = nn.Sequential(nn.Linear(dim, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    data = MultitaskDataset(tasks, torch.Size([dim]), torch.float64)
    inputs = torch.randn(60, dim, generator=generator, dtype=torch.float64)
    owners = torch.arange(60) % tasks
    targets = torch.sin(inputs.sum(1) + owners) / 2
    data.append(owners, inputs, targets)
    phi = NeuralRepresentation(module)
    width = phi(inputs[:1]).shape[1]
    start = MultiheadFunction(phi, torch.zeros(tasks, width, dtype=torch.float64))
    center = best_on(phi, data, start, HeadPenalty(ridge))
    candidates = torch.randn(tasks, actions, dim, generator=generator, dtype=torch.float64)
    action_sets = ActionSets(
        candidates, torch.arange(tasks), torch.ones(tasks, actions, dtype=torch.bool)
    )
    return ConfidenceSet(center, data, squared_radius, ridge=ridge), action_sets


@pytest.mark.parametrize("selector", [Linearised(WHOLE), Linearised(), Certified()])
@pytest.mark.parametrize("seed", range(3))
def test_without_weights_the_selection_is_exact(selector, seed):
    """With a frozen representation only the ellipsoid of heads remains, which is solved exactly."""
    confidence_set, action_sets = case(seed, nn.Flatten())
    exact, found = LastLayer()(confidence_set, action_sets), selector(confidence_set, action_sets)
    assert torch.equal(found.actions, exact.actions)
    torch.testing.assert_close(found.values, exact.values)


@pytest.mark.parametrize("seed", range(3))
def test_on_a_linear_class_the_supremum_is_that_of_all_linear_functions(seed):
    """A square linear layer: to first order its set is that of heads on the raw input.

    With ridges that vanish both suprema are sqrt(radius) |x| in the norm of the inverse Gram
    matrix of the inputs.
    """
    layer = nn.Linear(4, 4, bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(4))
    confidence_set, action_sets = case(seed, layer, ridge=1e-7)
    flat = replace(
        confidence_set,
        center=replace(confidence_set.center, representation=IdentityRepresentation()),
    )
    exact = LastLayer()(flat, action_sets)
    found = Linearised(WHOLE, weight_ridge=1.0)(confidence_set, action_sets)
    assert torch.equal(found.actions, exact.actions)
    torch.testing.assert_close(found.values.sum(), exact.values.sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_joint_choice_is_the_best_of_all_tuples(seed):
    confidence_set, action_sets = case(seed)
    found = Linearised(WHOLE)(confidence_set, action_sets)
    best = Enumerated(Linearised(WHOLE))(confidence_set, action_sets)
    assert found.is_exact
    assert torch.equal(found.actions, best.actions)
    torch.testing.assert_close(found.values.sum(), best.values.sum())


@pytest.mark.parametrize("repeated", [False, True], ids=["distinct tasks", "a task twice"])
def test_coordinate_ascent_is_close_to_the_exact_choice(repeated):
    shares = []
    for seed in range(30):
        generator = np.random.default_rng(seed)
        problem = TangentChoice(
            generator.normal(size=(4, 5)),
            generator.normal(size=(4, 5, 2)),
            generator.normal(size=(4, 5, 6)),
            np.array([0, 1, 2, 1 if repeated else 3]),
            0.7,
        )
        start = problem.means.argmax(1)
        listed, is_exact = problem.solve(start)
        assert is_exact
        found = problem._ascend(start)
        assert problem.value(found) >= problem.value(start)
        shares.append(problem.value(found) / problem.value(listed))
    assert max(shares) <= 1 + 1e-12
    assert np.mean(shares) > 0.97


@pytest.mark.parametrize("tasks", [[0, 1, 2], [0, 0, 1]])
def test_bonuses_sum_to_the_joint_bonus_and_split_into_head_and_representation(tasks):
    confidence_set, action_sets = case(0)
    action_sets = replace(action_sets, tasks=torch.tensor(tasks))
    choice = Linearised(WHOLE)(confidence_set, action_sets)
    tangent = Tangent.at(confidence_set, action_sets, WHOLE, 10.0)
    own, shared = tangent._sums(*tangent._whitened(choice.actions))
    bonus = (0.3 * (own.square().sum() + shared.square().sum())).sqrt()
    torch.testing.assert_close((choice.values - choice.prediction.mean).sum(), bonus)
    heads = LastLayer()(confidence_set, action_sets.restricted_to(choice.actions))
    split = choice.prediction.variance - choice.representation_widths
    torch.testing.assert_close(split, heads.prediction.variance)


def test_a_short_step_of_the_network_agrees_with_its_linearisation():
    confidence_set, action_sets = case(1, squared_radius=1e-8)
    choice = Linearised(WHOLE)(confidence_set, action_sets)
    member = Certified(WHOLE)(confidence_set, action_sets.restricted_to(choice.actions))
    gain = choice.values - choice.prediction.mean
    found = member.values - choice.prediction.mean
    # The step of the network can be longer, because its set has no ridge on the weights.
    assert 0.99 < float(found.sum() / gain.sum()) < 1.2


@pytest.mark.parametrize("weight_ridge", [0.1, 1.0, 10.0, 1000.0])
def test_a_larger_ridge_on_the_weights_decreases_the_bonus_to_that_of_the_heads(weight_ridge):
    confidence_set, action_sets = case(2)
    total = float(Linearised(WHOLE, weight_ridge)(confidence_set, action_sets).values.sum())
    larger_ridge = float(
        Linearised(WHOLE, weight_ridge * 10)(confidence_set, action_sets).values.sum()
    )
    heads = float(LastLayer()(confidence_set, action_sets).values.sum())
    assert total > larger_ridge > heads
    if weight_ridge == 1000.0:
        assert larger_ridge == pytest.approx(heads, rel=1e-2)


def test_the_gradient_is_never_better_than_the_best_direction():
    for seed in range(4):
        confidence_set, action_sets = case(seed)
        tangent = Tangent.at(confidence_set, action_sets, WHOLE, 10.0)
        best = tangent.own.square().sum(-1) + tangent.shared.square().sum(-1)
        assert (tangent.gradient_widths() <= best * (1 + 1e-9)).all()
        choice = GradientBonus(WHOLE)(confidence_set, action_sets)
        values = tangent.means + (0.3 * tangent.gradient_widths()).sqrt()
        torch.testing.assert_close(choice.values, values.amax(1))


@pytest.mark.slow
def test_certified_functions_are_members_and_at_least_as_optimistic_as_heads():
    cases = [case(seed, squared_radius=r) for seed in range(4) for r in (0.01, 0.3, 3.0)]
    check_action_selector(Certified(WHOLE), cases)
    check_action_selector(Certified(WeightSketch(8)), cases)
    better = 0
    for confidence_set, action_sets in cases:
        found = Certified(WHOLE)(confidence_set, action_sets)
        heads = LastLayer()(confidence_set, action_sets)
        assert float(found.values.sum()) >= float(heads.values.sum()) - 1e-9
        better += float(found.values.sum()) > float(heads.values.sum()) + 1e-6
    assert better > len(cases) / 2


def test_certified_satisfies_a_norm_bound_and_a_radius_of_zero():
    confidence_set, action_sets = case(0)
    norm = float(confidence_set.center.heads.norm(dim=-1).max())
    bounded = replace(confidence_set, head_norm_bound=1.05 * norm)
    found = Certified(WHOLE)(bounded, action_sets)
    assert bounded.contains(found.function)
    point = replace(confidence_set, squared_radius=0.0)
    greedy = Greedy()(point, action_sets)
    torch.testing.assert_close(Certified(WHOLE)(point, action_sets).values, greedy.values)


def default_network_case(tasks: torch.Tensor) -> tuple[ConfidenceSet, ActionSets]:
    """The default network after one sample of each of `tasks`, and rows for the first two."""
    fit = VariableProjection(steps=0)
    agent = GFUCB(int(tasks.max()) + 1, seed=0, fit=fit, value_range=(0.0, 1.0))
    draws = random_stream(0, "random Fourier features")
    inputs, rewards = torch.rand(200, 6, generator=draws), torch.rand(200, generator=draws)
    agent.learn(tasks, inputs[: len(tasks)], rewards[: len(tasks)])
    candidates = torch.rand(2, 5, 6, generator=draws)
    action_sets = ActionSets(candidates, torch.arange(2), torch.ones(2, 5, dtype=torch.bool))
    return agent.confidence_set(inputs[:1]), action_sets


def test_tasks_with_one_sample_contain_no_information_about_the_weights():
    """Random Fourier features have a constant length, so no weight changes their values."""
    confidence_set, action_sets = default_network_case(torch.arange(10))
    for joint in (True, False):
        found, heads = Linearised(joint=joint), LastLayer(joint=joint)
        torch.testing.assert_close(
            found(confidence_set, action_sets).values, heads(confidence_set, action_sets).values
        )
    heads_alone = LastLayer(joint=False)(confidence_set, action_sets)
    assert (
        float(GradientBonus()(confidence_set, action_sets).values.max())
        <= heads_alone.values.max() + 1e-9
    )


def test_tasks_with_one_sample_do_not_change_the_unit_of_the_weight_ridge():
    twice, many = torch.tensor([0, 1, 0, 1]), torch.arange(2, 198)
    few, action_sets = default_network_case(twice)
    with_others, _ = default_network_case(torch.cat([twice, many]))
    ridges = [
        Tangent.at(around, action_sets, WeightSketch(), 10.0).arrowhead.weight_ridge
        for around in (few, with_others)
    ]
    assert ridges[1] == pytest.approx(ridges[0])


@pytest.mark.parametrize("selector", [Linearised(), GradientBonus(), Certified()])
def test_other_representations_than_networks_are_refused(selector):
    confidence_set, action_sets = case(0, nn.Flatten())
    center = replace(confidence_set.center, representation=IdentityRepresentation())
    with pytest.raises(InvalidInputError, match="NeuralRepresentation"):
        selector(replace(confidence_set, center=center), action_sets)


@pytest.mark.slow
@pytest.mark.parametrize("selector", [Linearised(WeightSketch(16)), GradientBonus(), Certified()])
def test_agents_with_these_selectors_pass_the_check(selector):
    check_bandit_agent(lambda: GFUCB(3, seed=0, action_selector=selector))


def test_the_learner_updates_the_statistics_of_the_weights():
    agent = GFUCB(2, seed=0, action_selector=Linearised(WeightSketch(16)), refit_growth=2.0)
    generator = random_stream(0, "x")
    for _ in range(25):
        action_sets = torch.rand(2, 3, 5, generator=generator)
        agent.observe(agent.decide(action_sets), torch.rand(2, generator=generator))
        current = agent.confidence_set(action_sets[0])
        if agent.learner._samples_at_fit == len(current.data):  # just refitted
            recomputed = replace(current, center_tangents=None).arrowhead(WeightSketch(16), 10.0)
            torch.testing.assert_close(
                current.arrowhead(WeightSketch(16), 10.0).shared_factor, recomputed.shared_factor
            )
    assert agent.learner.tangents is not None
    assert 0 < agent.diagnostics()["representation_share"] < 1


@pytest.mark.slow
def test_on_digits_no_certified_function_is_outside_its_set():
    environment = ImageBandit(load_digits(), num_tasks=10, num_actions=5, seed=7)
    agent = GFUCB(10, seed=7, action_selector=Certified(), fit=VariableProjection(steps=10))
    rows = list(play(agent, environment, num_rounds=8))
    assert max(row["violation"] for row in rows) <= 1e-6

"""What holds for every shipped selector."""

from dataclasses import replace

import pytest
import torch

from gfucb import GFUCB, exploration
from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import ActionSelector
from gfucb.core.random import random_stream
from gfucb.models import (
    ConfidenceSet,
    HeadPenalty,
    HeadStatistics,
    LinearRepresentation,
    MultiheadFunction,
    MultitaskDataset,
    NeuralRepresentation,
    features_of,
)
from gfucb.models.diagonal_gram import GradientSquares
from gfucb.models.tangents import WeightSketch

SELECTORS = {
    "Certified": exploration.Certified(),
    "DiagonalSampling": exploration.DiagonalSampling(),
    "DiagonalUCB": exploration.DiagonalUCB(),
    "Enumerated": exploration.Enumerated(exploration.LastLayer()),
    "ExactFinite": exploration.ExactFinite(),
    "FineTuning": exploration.FineTuning.stable(iterations=3),
    "GradientBonus": exploration.GradientBonus(),
    "Greedy": exploration.Greedy(),
    "HeadSampling": exploration.HeadSampling(),
    "InverseGap": exploration.InverseGap(),
    "LastLayer": exploration.LastLayer(),
    "Linearised": exploration.Linearised(),
    "PerturbedRewards": exploration.PerturbedRewards(),
}


def test_every_exported_selector_is_tested_here():
    distributions = {"ThompsonSampling"}  # of `Randomised`, see tests/bandits/test_randomised.py
    assert set(SELECTORS) == set(exploration.__all__) - distributions


def network() -> NeuralRepresentation:
    module = torch.nn.Linear(3, 2, dtype=torch.float64)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
    return NeuralRepresentation(module)


def problem(representation, *, scale=1.0, num_tasks=2) -> tuple[ConfidenceSet, ActionSets]:
    generator = random_stream(0, "selectors")
    data = MultitaskDataset(num_tasks, torch.Size([3]), torch.float64)
    tasks = torch.arange(num_tasks).repeat(4)
    inputs = scale * torch.rand(len(tasks), 3, generator=generator, dtype=torch.float64)
    data.append(tasks, inputs, torch.rand(len(tasks), generator=generator, dtype=torch.float64))
    features = features_of(representation, data.inputs)
    statistics = HeadStatistics.of(features, data.tasks, data.targets, num_tasks)
    heads = torch.zeros_like(statistics.moments) if scale != 1 else statistics.heads(HeadPenalty())
    center = MultiheadFunction(representation, heads)
    candidates = torch.rand(num_tasks, 3, 3, generator=generator, dtype=torch.float64)
    available = torch.tensor([True, True, False]).expand(num_tasks, 3)
    return (
        ConfidenceSet(center, data, 0.5, ridge=1.0, members=[representation]),
        ActionSets(candidates, torch.arange(num_tasks), available),
    )


@pytest.mark.parametrize("name", SELECTORS)
def test_heads_that_are_not_finite_end_in_an_error(name):
    confidence_set, action_sets = problem(network())
    nan_heads = torch.full_like(confidence_set.center.heads, torch.nan)
    broken = replace(confidence_set, center=confidence_set.center.with_heads(nan_heads))
    with pytest.raises(InvalidInputError):
        SELECTORS[name](broken, action_sets)


@pytest.mark.parametrize("name", ["ExactFinite", "LastLayer", "HeadSampling", "Enumerated"])
@pytest.mark.parametrize("num_tasks", [1, 2])
def test_data_whose_gram_matrix_overflows_end_in_an_error(name, num_tasks):
    matrix = torch.eye(2, 3, dtype=torch.float64)
    broken, action_sets = problem(LinearRepresentation(matrix), scale=1e160, num_tasks=num_tasks)
    with pytest.raises(InvalidInputError):
        SELECTORS[name](broken, action_sets)


@pytest.mark.parametrize("name", SELECTORS)
def test_a_function_is_returned_only_if_it_has_the_reported_values(name):
    confidence_set, action_sets = problem(network())
    selection = SELECTORS[name](confidence_set, action_sets)
    if selection.function is None:
        assert not SELECTORS[name].returns_member
        return
    values = selection.function.values(action_sets.inputs_of(selection.actions), action_sets.tasks)
    torch.testing.assert_close(selection.values, values)


@pytest.mark.parametrize(
    "selector",
    [
        exploration.LastLayer(joint=False),
        exploration.Linearised(),
        exploration.GradientBonus(),
        exploration.DiagonalUCB(),
        exploration.DiagonalSampling(),
    ],
)
def test_values_of_no_single_function_come_without_a_function(selector):
    assert selector(*problem(network())).function is None


def test_requirements_are_properties_with_defaults():
    class Plain(ActionSelector):
        def __call__(self, confidence_set, action_sets):
            return exploration.Greedy()(confidence_set, action_sets)

    plain = Plain()
    assert (plain.joint, plain.weight_statistics, plain.reward_perturbation) == (True, None, 0.0)
    assert (plain.returns_member, plain.is_optimistic) == (True, True)
    sketch = WeightSketch(16)
    assert exploration.Linearised(sketch).weight_statistics == sketch
    assert exploration.Certified(sketch).weight_statistics == sketch
    assert exploration.Enumerated(exploration.Linearised(sketch)).weight_statistics == sketch
    assert exploration.DiagonalUCB().weight_statistics == GradientSquares()
    assert exploration.PerturbedRewards(0.3).reward_perturbation == 0.3
    assert not exploration.LastLayer(joint=False).joint
    assert not exploration.FineTuning.literal_sum().returns_member


def test_a_selector_without_the_properties_is_refused_by_the_agent():
    def greedy(confidence_set, action_sets):
        return exploration.Greedy()(confidence_set, action_sets)

    for wrong, word in [
        (greedy, "joint, weight_statistics"),
        (exploration.LastLayer, "the class LastLayer"),
        ("last", "'last'"),
    ]:
        with pytest.raises(InvalidInputError, match=word):
            GFUCB(2, action_selector=wrong)

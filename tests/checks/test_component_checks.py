"""Checks of selectors, fits and radii: shipped ones pass, broken ones fail for their reason."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from check_cases import COUNTER, FEW_STEPS, ROTATIONS, network

from gfucb import (
    ConstantRadius,
    FiniteClass,
    estimation,
    exploration,
)
from gfucb.checks import (
    CheckError,
    check_action_selector,
    check_fit,
    check_squared_radius,
)
from gfucb.core.protocols import ActionSelector
from gfucb.estimation import AdamFit, Alternating, Exhaustive, LogRadius, ScaledRadius, best_on
from gfucb.models import NeuralRepresentation
from gfucb.theory.lemma_radii import CorrectedRadius, PrintedRadius

SELECTORS = {
    "Certified": exploration.Certified(),
    "DiagonalSampling": exploration.DiagonalSampling(),
    "DiagonalUCB": exploration.DiagonalUCB(),
    "Enumerated": exploration.Enumerated(exploration.LastLayer()),
    "ExactFinite": exploration.ExactFinite(),
    "FineTuning": exploration.FineTuning.stable(iterations=5),
    "FineTuning, printed sum": exploration.FineTuning.literal_sum(iterations=5),
    "FineTuning, printed mean": exploration.FineTuning.literal_mean(iterations=5),
    "GradientBonus": exploration.GradientBonus(),
    "Greedy": exploration.Greedy(),
    "HeadSampling": exploration.HeadSampling(),
    "InverseGap": exploration.InverseGap(),
    "LastLayer": exploration.LastLayer(),
    "LastLayer, each row": exploration.LastLayer(joint=False),
    "Linearised": exploration.Linearised(),
    "Linearised, each row": exploration.Linearised(joint=False),
    "PerturbedRewards": exploration.PerturbedRewards(),
}


def test_no_exported_selector_is_left_out():
    distributions = {"ThompsonSampling"}  # of `Randomised`, see tests/bandits/test_randomised.py
    assert {name.split(",")[0] for name in SELECTORS} == set(exploration.__all__) - distributions


@pytest.mark.parametrize("name", SELECTORS)
def test_shipped_selectors_pass(name):
    check_action_selector(SELECTORS[name])


@dataclass
class Changed(ActionSelector):
    """The greedy selection, changed by a function of (confidence set, action sets, selection)."""

    change: object

    def __call__(self, confidence_set, action_sets):
        selection = exploration.Greedy()(confidence_set, action_sets)
        return self.change(confidence_set, action_sets, selection)


def unavailable_actions(confidence_set, action_sets, selection):
    actions = action_sets.available.to(torch.int8).argmin(1)
    values = action_sets.values_of(confidence_set.center).gather(1, actions[:, None]).squeeze(1)
    return replace(selection, actions=actions, values=values)


def worst_actions(confidence_set, action_sets, selection):
    values = action_sets.values_of(confidence_set.center)
    actions = values.masked_fill(~action_sets.available, torch.inf).argmin(1)
    return replace(selection, actions=actions, values=values.gather(1, actions[:, None])[:, 0])


def far_function(confidence_set, action_sets, selection):
    far = confidence_set.center.with_heads(confidence_set.center.heads + 100)
    inputs = action_sets.inputs_of(selection.actions)
    return replace(selection, function=far, values=far.values(inputs, action_sets.tasks))


def changed_data(confidence_set, action_sets, selection):
    confidence_set.data.targets.add_(1.0)
    return selection


BROKEN_SELECTORS = {
    "not available": unavailable_actions,
    "outside the confidence set": far_function,
    "less than the": worst_actions,
    "not those of the function": lambda c, a, s: replace(s, values=s.values + 1),
    "must return a function": lambda c, a, s: replace(s, function=None),
    "two different": lambda c, a, s: replace(s, function=None, values=s.values + next(COUNTER)),
    "changed the confidence set": changed_data,
    "squared_radius": lambda c, a, s: replace(s, squared_radius=c.squared_radius + 1),
    "shape of the actions": lambda c, a, s: replace(s, function=None, values=s.values[:1]),
    "integers": lambda c, a, s: replace(s, actions=s.actions.double()),
}


@pytest.mark.parametrize("message", BROKEN_SELECTORS)
def test_a_broken_selector_fails(message):
    with pytest.raises(CheckError, match=message):
        check_action_selector(Changed(BROKEN_SELECTORS[message]))


def test_a_selector_that_claims_less_may_do_less():
    class Modest(Changed):
        returns_member = False
        is_optimistic = False

    check_action_selector(Modest(far_function))
    check_action_selector(Modest(worst_actions))


# Fits.


FITS = {
    "Exhaustive": (Exhaustive(FiniteClass(ROTATIONS)), ROTATIONS[0], True),
    "AdamFit": (AdamFit(epochs=2), NeuralRepresentation(network()), False),
    "VariableProjection": (FEW_STEPS, NeuralRepresentation(network()), False),
    "Alternating": (Alternating(), ROTATIONS[0], True),
}


def test_no_exported_fit_is_left_out():
    exported = {
        name
        for name in estimation.__all__
        if "penalty" in getattr(getattr(estimation, name).__call__, "__annotations__", {})
    }
    assert exported == set(FITS)


@pytest.mark.parametrize("name", FITS)
def test_shipped_fits_pass(name):
    fit, representation, decreases_error = FITS[name]
    check_fit(fit, representation, decreases_error=decreases_error)


def best(data, start, penalty):
    return best_on(start.representation, data, start, penalty)


def fit_that_changes_the_start(data, start, penalty, generator):
    start.representation.module.weight.data.add_(0.1)
    return best(data, start, penalty)


def fit_with_other_heads(data, start, penalty, generator):
    fitted = best(data, start, penalty)
    return fitted.with_heads(fitted.heads * 1.01)


def fit_that_draws_globally(data, start, penalty, generator):
    torch.rand(1)
    return best(data, start, penalty)


def fit_that_counts(data, start, penalty, generator):
    module = network()
    module.weight.data.mul_(1 + next(COUNTER))
    return best_on(NeuralRepresentation(module), data, start, penalty)


def fit_with_another_offset(data, start, penalty, generator):
    return best(data, replace(start, offset=0.0), penalty)


def fit_of_a_poor_representation(data, start, penalty, generator):
    module = network()
    module.weight.data.mul_(1e-9)
    module.bias.data.zero_()
    return best_on(NeuralRepresentation(module), data, start, penalty)


BROKEN_FITS = {
    "changed the data or the start": fit_that_changes_the_start,
    "not the minimisers": fit_with_other_heads,
    "global generator": fit_that_draws_globally,
    "two fits with equal generators": fit_that_counts,
    "offset or the value range": fit_with_another_offset,
    "larger than the": fit_of_a_poor_representation,
}


@pytest.mark.parametrize("message", BROKEN_FITS)
def test_a_broken_fit_fails(message):
    with pytest.raises(CheckError, match=message):
        check_fit(BROKEN_FITS[message], NeuralRepresentation(network()))


# Radii.


LEMMA = {
    "num_tasks": 3,
    "feature_dim": 2,
    "log_covering_number": 4.0,
    "cover_scale": 0.01,
    "failure_probability": 0.1,
}


@pytest.mark.parametrize(
    "radius",
    [
        ConstantRadius(2.0),
        LogRadius(),
        ScaledRadius(LogRadius(), 3.0),
        PrintedRadius(**LEMMA),
        CorrectedRadius(**LEMMA, noise_scale=0.5, ridge=0.7),
    ],
    ids=lambda radius: type(radius).__name__,
)
def test_shipped_radii_pass(radius):
    check_squared_radius(radius)


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        (lambda t: -1.0, "not negative"),
        (lambda t: math.nan, "finite"),
        (lambda t: math.inf if t == 700 else 1.0, "round 700"),
        (lambda t: "1", "'1'"),
        (lambda t: float(next(COUNTER)), "changes between calls"),
    ],
)
def test_a_broken_radius_fails(radius, message):
    with pytest.raises(CheckError, match=message):
        check_squared_radius(radius, num_rounds=800 if message == "round 700" else 5)

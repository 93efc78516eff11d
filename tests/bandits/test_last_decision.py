"""What an agent reports about its last decision."""

import pytest
import torch

from gfucb import GFUCB, ConstantRadius, FiniteClass
from gfucb.core.random import random_stream
from gfucb.models import IdentityRepresentation


def test_diagnostics_and_selection_are_those_of_the_last_decision():
    agent = GFUCB(2, FiniteClass([IdentityRepresentation()]), value_range=None)
    draws = random_stream(0, "candidates")
    for scale in (1.0, 5.0, 0.2):
        decision = agent.decide(scale * torch.rand(2, 3, 4, generator=draws))
        assert torch.equal(agent.last_selection.actions, decision.actions)
        bonus = float((decision.optimistic_values - decision.prediction.mean).mean())
        assert agent.diagnostics()["bonus"] == bonus


def test_the_prediction_is_that_of_the_fit_and_not_of_the_most_optimistic_member():
    members = [lambda x: x.double(), lambda x: x.double().flip(-1) ** 2, lambda x: 1 - x.double()]
    agent = GFUCB(2, FiniteClass(members), value_range=None, squared_radius=ConstantRadius(0.5))
    draws, num_different = random_stream(0, "rounds"), 0
    for _ in range(8):
        decision = agent.decide(torch.rand(2, 3, 4, generator=draws))
        center = agent.confidence_set(decision.inputs).center
        num_different += agent.last_selection.function.representation is not center.representation
        expected = center.values(decision.inputs, decision.tasks)
        assert decision.prediction.mean.tolist() == pytest.approx(expected.tolist())
        agent.observe(decision, torch.rand(2, generator=draws))
    assert num_different

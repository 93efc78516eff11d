"""What an agent reports about its last decision."""

import torch

from gfucb import GFUCB, FiniteClass
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

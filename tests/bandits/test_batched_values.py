"""Optimistic values of batched agents are those of the agents alone."""

import pytest
import torch

from gfucb import GFUCB, BatchedAgents, ConstantRadius, LastLayer
from gfucb.core.random import random_stream


@pytest.mark.parametrize("value_range", [None, (0.4, 0.6)])
@pytest.mark.parametrize("joint", [True, False])
def test_bonuses_and_clipped_values_are_those_of_each_agent_alone(value_range, joint):
    def make(seed: int) -> GFUCB:
        return GFUCB(
            2,
            torch.nn.Linear(4, 3, dtype=torch.float64),
            seed=seed,
            squared_radius=ConstantRadius(4.0),
            action_selector=LastLayer(joint=joint),
            value_range=value_range,
            offset=0.5,
        )

    agents = [make(seed) for seed in range(2)]
    candidates = torch.rand(2, 2, 3, 4, generator=random_stream(0, "x"), dtype=torch.float64)
    expected = torch.stack(
        [agent.decide(own).optimistic_values for agent, own in zip(agents, candidates, strict=True)]
    )
    found = BatchedAgents(agents).decide(candidates).optimistic_values
    torch.testing.assert_close(found, expected)
    assert (value_range is None) == bool((found > 0.6).any())

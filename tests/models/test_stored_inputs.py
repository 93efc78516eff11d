"""A representation that writes into its input cannot change stored data."""

import pytest
import torch
from torch import nn

from gfucb import GFUCB, FiniteClass
from gfucb.core.random import global_randomness_from, random_stream
from gfucb.exploration import DiagonalUCB, FineTuning, LastLayer, Linearised
from gfucb.models import IdentityRepresentation, MultiheadFunction, NeuralRepresentation
from gfucb.models.gradients import weight_gradients
from gfucb.models.nn.stacked import NetworkStack
from gfucb.models.representations import readable


def in_place_network() -> nn.Module:
    """The first layer is a ReLU that writes into its input."""
    with global_randomness_from(random_stream(0, "network")):
        return nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 4))


def doubled_in_place(inputs):
    return inputs.mul_(2.0)


REPRESENTATIONS = {
    "network": in_place_network,
    "network in float64": lambda: in_place_network().double(),
    "function": lambda: FiniteClass([doubled_in_place]),
    "functions": lambda: FiniteClass([doubled_in_place, lambda x: x.sub_(1.0)]),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_the_stored_inputs_are_those_observed(name, dtype):
    agent = GFUCB(2, REPRESENTATIONS[name](), seed=0)
    draws, chosen = random_stream(0, "candidates"), []
    for _ in range(6):
        candidates = torch.randn(2, 3, 3, generator=draws, dtype=dtype)
        before = candidates.clone()
        decision = agent.decide(candidates)
        assert torch.equal(candidates, before)
        assert torch.equal(decision.inputs, before[torch.arange(2), decision.actions])
        chosen.append(decision.inputs.clone())
        agent.observe(decision, [0.1, 0.7])
    assert torch.equal(agent.state()["data.inputs"], torch.cat(chosen))


@pytest.mark.parametrize(
    "selector", [LastLayer(), DiagonalUCB(), Linearised(), FineTuning.stable(iterations=3)]
)
def test_no_selector_lets_a_network_change_the_data(selector):
    agent = GFUCB(2, in_place_network(), seed=0, action_selector=selector)
    draws = random_stream(1, "samples")
    inputs = torch.randn(20, 3, generator=draws)
    agent.learn(torch.arange(20) % 2, inputs, torch.rand(20, generator=draws))
    agent.decide(torch.randn(2, 4, 3, generator=draws))
    assert torch.equal(agent.state()["data.inputs"], inputs)


def test_gradients_and_stacks_leave_their_inputs_alone():
    phi = NeuralRepresentation(in_place_network())
    inputs = torch.randn(5, 3, generator=random_stream(2, "inputs"))
    before = inputs.clone()
    function = MultiheadFunction(phi, torch.ones(1, 4, dtype=torch.float64))
    list(weight_gradients(function, inputs, torch.zeros(5, dtype=torch.int64)))
    NetworkStack([phi, phi]).features(inputs.expand(2, 5, 3))
    phi(inputs)
    assert torch.equal(inputs, before)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float32, torch.float64])
def test_readable_inputs_never_share_memory_with_the_inputs(dtype):
    inputs = torch.ones(2, 3, dtype=dtype)
    readable(inputs, torch.float32).fill_(7)
    IdentityRepresentation()(inputs).fill_(7)
    assert torch.equal(inputs, torch.ones(2, 3, dtype=dtype))

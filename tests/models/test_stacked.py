"""Stacked networks are the networks."""

import pytest
import torch
from torch import nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.models import NeuralRepresentation, features_of
from gfucb.models.nn.networks import default_network
from gfucb.models.nn.seeded_layers import seeded_layers
from gfucb.models.nn.stacked import NetworkStack


def networks(number: int, shape=(8, 8), normalisation="l2") -> list[NeuralRepresentation]:
    return [
        NeuralRepresentation(
            default_network(shape, random_stream(seed, "n"), hidden=12, feature_dim=6).double(),
            normalisation,
        )
        for seed in range(number)
    ]


@pytest.mark.parametrize("shape", [(8, 8), (16, 16), (19, 16), (3, 17, 21)])
def test_a_stack_computes_the_features_of_its_networks(shape):
    every = networks(3, shape)
    inputs = torch.randint(256, (3, 5, *shape), generator=random_stream(0, "x")).to(torch.uint8)
    stack = NetworkStack(every)
    alone = [features_of(phi, x) for phi, x in zip([p.copy() for p in every], inputs, strict=True)]
    torch.testing.assert_close(stack.features(inputs), torch.stack(alone))
    torch.testing.assert_close(stack.features(inputs, chunk=2), torch.stack(alone))
    again = [features_of(phi, x) for phi, x in zip(stack.unstacked(), inputs, strict=True)]
    torch.testing.assert_close(torch.stack(again), torch.stack(alone))


def test_some_replicas_can_be_taken_out_and_put_back():
    stack = NetworkStack(networks(3))
    some = stack.taken([2, 0])
    with torch.no_grad():
        for weight in some.weights.values():
            weight.zero_()
    before = {name: weight[1].clone() for name, weight in stack.weights.items()}
    stack.put([2, 0], some)
    for name, weight in stack.weights.items():
        assert weight[0].abs().sum() == weight[2].abs().sum() == 0
        assert torch.equal(weight[1], before[name])


def test_networks_with_running_statistics_are_refused():
    module = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    with pytest.raises(InvalidInputError, match="batch normalisation"):
        NetworkStack([NeuralRepresentation(module)])


def test_random_layers_have_the_same_draws_alone_and_stacked():
    every = networks(2)
    for index, phi in enumerate(every):
        for place, dropout in enumerate(seeded_layers(phi.module)):
            dropout.seed.fill_(10 * index + place)
    stack = NetworkStack(every)
    stack.module.train()
    inputs = torch.rand(2, 6, 8, 8, generator=random_stream(0, "x"), dtype=torch.float64)
    alone = []
    for phi, x in zip(stack.unstacked(), inputs, strict=True):
        phi.module.train()
        alone.append(phi(x))
    torch.testing.assert_close(stack(inputs), torch.stack(alone))

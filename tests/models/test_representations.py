import math

import pytest
import torch
from torch import nn

from gfucb import FiniteClass, LinearClass
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import global_randomness_from, random_stream
from gfucb.models import LinearRepresentation, NeuralRepresentation
from gfucb.models.nn.networks import (
    FourierFeatures,
    PooledConvolution,
    default_network,
    paper_network,
)
from gfucb.models.representations import normalise


def test_l2_normalisation_gives_unit_vectors_and_leaves_zero_alone():
    raw = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e-9, 0.0]], dtype=torch.float64)
    unit = normalise(raw, "l2")
    torch.testing.assert_close(unit[0], torch.tensor([0.6, 0.8], dtype=torch.float64))
    assert unit[1].tolist() == [0.0, 0.0]
    assert unit[2].norm() <= 1


def test_l2_normalisation_has_finite_gradients_at_zero():
    raw = torch.zeros(2, 3, requires_grad=True)
    normalise(raw, "l2").sum().backward()
    assert raw.grad is not None and bool(raw.grad.isfinite().all())


def test_simplex_features_are_probabilities():
    features = normalise(torch.tensor([[1000.0, 0.0, -1000.0], [0.0, 0.0, 0.0]]), "simplex")
    torch.testing.assert_close(features.sum(1), torch.ones(2))
    assert bool((features >= 0).all())


def test_an_unknown_normalisation_is_refused_by_name():
    with pytest.raises(InvalidInputError, match="'l1'"):
        normalise(torch.zeros(1, 2), "l1")


def test_bytes_are_read_as_images_in_the_unit_interval():
    phi = NeuralRepresentation(nn.Flatten())
    image = torch.tensor([[[0, 255], [51, 102]]], dtype=torch.uint8)
    torch.testing.assert_close(phi(image), torch.tensor([[0.0, 1.0, 0.2, 0.4]]))


def test_other_integers_are_indices():
    phi = NeuralRepresentation(nn.Embedding(5, 3))
    assert phi(torch.tensor([4, 0])).shape == (2, 3)


def test_linear_representation_is_a_matrix_product():
    matrix = torch.tensor([[1.0, 2.0], [0.0, -1.0]], dtype=torch.float64)
    features = LinearRepresentation(matrix)(torch.tensor([[3.0, 4.0]]))
    assert features.tolist() == [[11.0, -4.0]]


@pytest.mark.parametrize("make", [lambda: FiniteClass([]), lambda: LinearClass(2, 3)])
def test_classes_with_invalid_arguments_are_refused(make):
    with pytest.raises(InvalidInputError):
        make()


@pytest.mark.parametrize("shape", [(7,), (8, 8), (28, 28), (3, 20, 16)])
def test_the_default_network_suits_the_shape_of_the_input(shape):
    network = default_network(shape, random_stream(0, "network"))
    assert network(torch.rand(2, *shape)).shape == (2, 128)
    has_convolutions = any(isinstance(m, PooledConvolution) for m in network.modules())
    assert has_convolutions == (min(shape[-2:]) >= 16)


def test_fourier_features_compare_directions_as_a_gaussian_kernel_does():
    with global_randomness_from(random_stream(0, "random Fourier features")):
        layer = FourierFeatures(6, 8192, length=0.5, squared_norm=4.0).double()
        x = torch.randn(40, 6, dtype=torch.float64)
    features, u = layer(x), x / x.norm(dim=1, keepdim=True)
    kernel = 4.0 * torch.exp(-torch.cdist(u, u).square() / (2 * 0.5**2))
    # The standard deviation of an inner product of 4096 pairs is at most 4 / sqrt(4096).
    assert float((features @ features.T - kernel).abs().max()) < 4 * 4 / math.sqrt(4096)
    torch.testing.assert_close(features.square().sum(1), torch.full((40,), 4.0).double())
    torch.testing.assert_close(layer(3 * x), features)


def test_heads_on_fourier_features_do_not_extrapolate_to_distant_directions():
    with global_randomness_from(random_stream(0, "random Fourier features")):
        layer = FourierFeatures(8, 512, squared_norm=4.0).double()
    seen, unseen = torch.eye(8, dtype=torch.float64)[:1], torch.eye(8, dtype=torch.float64)[1:]
    head = layer(seen).T @ torch.ones(1, 1, dtype=torch.float64) * 100 / (1 + 400)
    assert float((layer(seen) @ head).squeeze()) == pytest.approx(400 / 401)
    # Two axes are sqrt(2) apart, almost three lengths.
    assert float((layer(unseen) @ head).abs().max()) < 0.2


def test_an_odd_number_of_fourier_features_is_refused():
    with pytest.raises(InvalidInputError, match="even, got 7"):
        FourierFeatures(3, 7)


def test_networks_depend_on_their_generator_only():
    before = torch.random.get_rng_state()
    first = paper_network((28, 28), random_stream(0, "network"))
    second = paper_network((28, 28), random_stream(0, "network"))
    other = paper_network((28, 28), random_stream(1, "network"))
    weights = [next(n.parameters()) for n in (first, second, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(("channels", "height", "width"), [(1, 8, 8), (1, 7, 10), (2, 6, 5)])
def test_a_pooled_convolution_is_convolution_relu_and_pooling(channels, height, width):
    with global_randomness_from(random_stream(0, "layer")):
        layer = PooledConvolution(channels, 5).double()
        inputs = torch.randn(4, channels, height, width, dtype=torch.float64, requires_grad=True)
    plain = nn.Sequential(nn.Conv2d(channels, 5, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)).double()
    plain[0].load_state_dict(layer.state_dict())
    values, expected = layer(inputs), plain(inputs)
    torch.testing.assert_close(values, expected)
    torch.testing.assert_close(
        torch.autograd.grad(values.square().sum(), [inputs, *layer.parameters()]),
        torch.autograd.grad(expected.square().sum(), [inputs, *plain.parameters()]),
    )

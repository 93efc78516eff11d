import math

import pytest
import torch
from torch import nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import global_randomness_from, random_stream
from gfucb.models import IdentityRepresentation, MultiheadFunction, NeuralRepresentation
from gfucb.models.tangents import WeightSketch
from gfucb.theory.uncertainty import (
    d2_uncertainties,
    effective_dimension,
    generalised_eluder_estimate,
    gradient_features,
    log_det_dimension,
)


def run(seed: int, num_samples: int = 200, feature_dim: int = 4, num_tasks: int = 2):
    generator = random_stream(seed, "run")
    features = torch.randn(num_samples, feature_dim, generator=generator, dtype=torch.float64)
    return features, torch.randint(num_tasks, (num_samples,), generator=generator)


@pytest.mark.parametrize("ridge", [1e-6, 0.3, 50.0])
def test_uncertainties_satisfy_the_definition(ridge):
    features, tasks = run(0)
    expected = []
    for t in range(len(features)):
        past = features[:t][tasks[:t] == tasks[t]]
        matrix = past.T @ past + ridge * torch.eye(4, dtype=torch.float64)
        expected.append(features[t] @ torch.linalg.solve(matrix, features[t]))
    found = d2_uncertainties(features, tasks, ridge)
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_uncertainties_sum_to_the_log_determinant_and_dimensions_are_ordered(seed):
    features, tasks = run(seed)
    uncertainties = d2_uncertainties(features, tasks, 0.5)
    log_det = log_det_dimension(features, tasks, 2, 0.5)
    estimate = generalised_eluder_estimate(features, tasks, 2, 0.5)
    effective = effective_dimension(features, tasks, 2, 0.5)
    for task in range(2):
        mine = uncertainties[tasks == task]
        assert float(mine.log1p().sum()) == pytest.approx(float(log_det[task]), rel=1e-10)
        assert float(estimate[task]) == pytest.approx(float(mine.clamp_max(1).sum()))
    assert (estimate <= log_det / math.log(2)).all()
    assert ((effective > 0) & (effective <= 4) & (effective <= log_det)).all()


def test_an_absent_task_has_dimension_zero():
    features, tasks = run(0)
    for quantity in (generalised_eluder_estimate, log_det_dimension, effective_dimension):
        assert quantity(features, tasks, 3, 0.5)[2] == 0


def network(seed: int, normalisation="none", num_tasks: int = 3) -> MultiheadFunction:
    with global_randomness_from(random_stream(seed, "network")):
        module = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Dropout(0.5), nn.Linear(6, 4))
    heads = torch.randn(num_tasks, 4, generator=random_stream(seed, "w"), dtype=torch.float64)
    return MultiheadFunction(NeuralRepresentation(module.double(), normalisation), heads)


@pytest.mark.parametrize("normalisation", ["none", "l2", "simplex"])
def test_gradient_features_equal_autograd(normalisation):
    function = network(0, normalisation)
    inputs, tasks = run(1, num_samples=6, feature_dim=5, num_tasks=3)
    found = gradient_features(function, inputs, tasks)
    module = function.representation.module.eval()
    for row in range(6):
        features = function.representation(inputs[row : row + 1])[0]
        value = (features * function.heads[tasks[row]]).sum()
        expected = torch.cat(
            [g.flatten() for g in torch.autograd.grad(value, [*module.parameters()])]
        )
        torch.testing.assert_close(found[row], expected)


def test_gradient_features_change_neither_the_mode_nor_the_gradients_of_the_network():
    function = network(0)
    module = function.representation.module.train()
    inputs, tasks = run(1, num_samples=3, feature_dim=5, num_tasks=3)
    assert not gradient_features(function, inputs, tasks).requires_grad
    assert module.training
    assert all(p.grad is None for p in module.parameters())


def test_a_sketch_preserves_inner_products_approximately_and_is_reproducible():
    function = network(0)
    inputs, tasks = run(1, num_samples=20, feature_dim=5, num_tasks=3)
    whole = gradient_features(function, inputs, tasks)
    sketches = [
        gradient_features(function, inputs, tasks, sketch=WeightSketch(dim=4000, seed=1))
        for _ in range(2)
    ]
    assert torch.equal(*sketches)
    assert sketches[0].shape == (20, 4000)
    kernel, sketched = whole @ whole.T, sketches[0] @ sketches[0].T
    # Relative standard deviation sqrt(2 / 4000) = 0.02; five of them.
    assert float((kernel - sketched).abs().max() / kernel.diagonal().max()) < 0.11


def test_invalid_samples_are_refused():
    features, tasks = run(0, num_samples=5)
    for ridge in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidInputError, match="ridge must be a finite number above 0"):
            d2_uncertainties(features, tasks, ridge)
    with pytest.raises(InvalidInputError, match="features must be"):
        d2_uncertainties(features, tasks[:3], 1.0)
    with pytest.raises(InvalidInputError, match="at least one sample"):
        d2_uncertainties(features[:0], tasks[:0], 1.0)
    with pytest.raises(InvalidInputError, match="finite"):
        effective_dimension(features * float("nan"), tasks, 2, 1.0)
    with pytest.raises(InvalidInputError, match="numbered 0 to num_tasks - 1"):
        log_det_dimension(features, tasks + 5, 2, 1.0)


def test_representations_without_weights_and_empty_sketches_are_refused():
    inputs, tasks = run(1, num_samples=3, feature_dim=5, num_tasks=3)
    linear = MultiheadFunction(IdentityRepresentation(), torch.ones(3, 5, dtype=torch.float64))
    with pytest.raises(InvalidInputError, match="NeuralRepresentation"):
        gradient_features(linear, inputs, tasks)
    with pytest.raises(InvalidInputError, match="dim of a sketch must be an integer of at least 1"):
        WeightSketch(dim=0)

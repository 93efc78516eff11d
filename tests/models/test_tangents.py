"""The linearised fit against dense linear algebra and against autograd."""

import pytest
import torch
from torch import nn

from gfucb.core.random import global_randomness_from, random_stream
from gfucb.models import HeadStatistics, MultiheadFunction, NeuralRepresentation, features_of
from gfucb.models.gradients import num_weights, weight_gradients
from gfucb.models.tangents import Arrowhead, TangentStatistics, WeightSketch

TASKS, FEATURES, INPUTS = 3, 2, 4


@pytest.fixture
def function() -> MultiheadFunction:
    with global_randomness_from(random_stream(0, "network")):
        module = nn.Sequential(nn.Linear(INPUTS, 3), nn.Tanh(), nn.Linear(3, FEATURES)).double()
    heads = torch.randn(TASKS, FEATURES, generator=random_stream(0, "w"), dtype=torch.float64)
    return MultiheadFunction(NeuralRepresentation(module), heads)


def samples(number: int, name: str = "x") -> tuple[torch.Tensor, torch.Tensor]:
    generator = random_stream(1, name)
    inputs = torch.randn(number, INPUTS, generator=generator, dtype=torch.float64)
    return inputs, torch.randint(TASKS, (number,), generator=generator)


def joint_gradients(function, sketch, inputs, tasks) -> torch.Tensor:
    """Gradients in weights and all heads together, dense: [sample, sketch + task feature]."""
    u, phi = sketch.of(function, inputs, tasks), features_of(function.representation, inputs)
    heads = phi.new_zeros(len(inputs), TASKS, FEATURES)
    heads[torch.arange(len(inputs)), tasks] = phi
    return torch.cat([u, heads.flatten(1)], dim=1)


@pytest.mark.parametrize("dim", [None, 5])
def test_widths_are_those_of_the_dense_gram_matrix(function, dim):
    sketch, (inputs, tasks) = WeightSketch(dim), samples(30)
    features = features_of(function.representation, inputs)
    arrowhead = Arrowhead(
        HeadStatistics.of(features, tasks, features[:, 0], TASKS),
        TangentStatistics.of(sketch, function, inputs, tasks),
        tasks.bincount(minlength=TASKS),
        ridge=0.5,
        weight_ridge=2.0,
    )
    gradients = joint_gradients(function, sketch, inputs, tasks)
    penalty = torch.full((gradients.shape[1],), 0.5, dtype=torch.float64)
    penalty[: -TASKS * FEATURES] = arrowhead.weight_ridge
    gram = gradients.T @ gradients + penalty.diag()

    new, new_tasks = samples(6, "new")
    dense = joint_gradients(function, sketch, new, new_tasks)
    expected = (dense * torch.linalg.solve(gram, dense.T).T).sum(1)
    u = sketch.of(function, new, new_tasks).unsqueeze(1)
    phi = features_of(function.representation, new).unsqueeze(1)
    own, shared = arrowhead.whiten(u, phi, new_tasks)
    found = own.square().sum(-1) + shared.square().sum(-1)
    torch.testing.assert_close(found.squeeze(1), expected)
    lengths = arrowhead.squared_lengths(phi, u, new_tasks).squeeze(1)
    torch.testing.assert_close(lengths, (dense @ gram * dense).sum(1))

    # The steps are G^-1 g, for a gradient summed over several inputs.
    by_task = own.new_zeros(TASKS, FEATURES).index_add(0, new_tasks, own.squeeze(1))
    heads, weights = arrowhead.steps(by_task, shared.sum((0, 1)))
    solution = torch.linalg.solve(gram, dense.sum(0))
    torch.testing.assert_close(torch.cat([weights, heads.flatten()]), solution)


def test_the_weight_ridge_is_in_units_of_the_data(function):
    inputs, tasks = samples(30)
    features = features_of(function.representation, inputs)
    heads = HeadStatistics.of(features, tasks, features[:, 0], TASKS)
    tangents = TangentStatistics.of(WeightSketch(None), function, inputs, tasks)
    counts = tasks.bincount(minlength=TASKS)
    arrowhead = Arrowhead(heads, tangents, counts, ridge=0.5, weight_ridge=2.0)
    sizes = joint_gradients(function, WeightSketch(None), inputs, tasks).square().sum(0)
    of_weights, of_heads = sizes[: -TASKS * FEATURES].sum(), sizes[-TASKS * FEATURES :].sum()
    assert arrowhead.weight_ridge == pytest.approx(2.0 * 0.5 * float(of_weights / of_heads))


def test_statistics_add_up(function):
    inputs, tasks = samples(30)
    sketch = WeightSketch(5)
    whole = TangentStatistics.of(sketch, function, inputs, tasks)
    parts = TangentStatistics.empty(sketch, function)
    for part in (slice(0, 11), slice(11, 30)):
        parts = parts.plus(TangentStatistics.of(sketch, function, inputs[part], tasks[part]))
    torch.testing.assert_close(parts.shared, whole.shared)
    torch.testing.assert_close(parts.couplings, whole.couplings)


def test_a_sketched_gradient_is_the_derivative_along_the_lifted_step(function):
    sketch, (inputs, tasks) = WeightSketch(3, seed=4), samples(5)
    phi = function.representation
    direction = torch.tensor([0.3, -1.0, 0.5], dtype=torch.float64)
    size = 1e-6
    moved = phi.copy()
    with torch.no_grad():
        for weight, step in zip(
            moved.module.parameters(), sketch.lifted(phi, direction), strict=True
        ):
            weight.add_(step, alpha=size)
    heads = function.heads[tasks]
    before = (features_of(phi, inputs) * heads).sum(1)
    after = (features_of(moved, inputs) * heads).sum(1)
    predicted = sketch.of(function, inputs, tasks) @ direction
    torch.testing.assert_close((after - before) / size, predicted, rtol=1e-4, atol=1e-5)


def test_chunks_change_nothing(function, monkeypatch):
    inputs, tasks = samples(7)
    whole = WeightSketch(None).of(function, inputs, tasks)
    size = 2 * num_weights(function.representation)
    monkeypatch.setattr("gfucb.models.gradients.GRADIENT_CHUNK", size)
    assert len(list(weight_gradients(function, inputs, tasks))) == 4
    torch.testing.assert_close(WeightSketch(None).of(function, inputs, tasks), whole)


def test_a_network_without_weights_has_the_widths_of_its_heads():
    function = MultiheadFunction(
        NeuralRepresentation(nn.Flatten()), torch.ones(TASKS, INPUTS, dtype=torch.float64)
    )
    inputs, tasks = samples(9)
    for dim in (None, 4):
        assert WeightSketch(dim).of(function, inputs, tasks).abs().sum() == 0

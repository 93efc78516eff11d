"""Self-supervised losses and the steps that use them."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from gfucb.checks import CheckError, check_self_supervision
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import SelfSupervision
from gfucb.core.random import random_stream
from gfucb.estimation import Contrastive, ImageViews, RandomShifts, TableViews, VICReg
from gfucb.estimation.self_supervised_steps import train_network, train_stack
from gfucb.models.nn.networks import default_network
from gfucb.models.nn.stacked import NetworkStack
from gfucb.models.representations import NeuralRepresentation

SMALL = Contrastive(batch_size=8)
STEPS = 8


def numbers(*shape: int, name: str = "x") -> torch.Tensor:
    return torch.rand(*shape, generator=random_stream(0, "self-supervision", name))


def structured(*shape: int) -> torch.Tensor:
    """Inputs with two degrees of freedom, so that a part of an input determines the rest."""
    size = torch.Size(shape).numel()
    return (numbers(30, 2, name="z") @ numbers(2, size, name="a")).view(30, *shape)


def network(*shape: int, seed: int = 0) -> NeuralRepresentation:
    module = default_network(shape, random_stream(seed, "network"), hidden=16, feature_dim=20)
    return NeuralRepresentation(module).copy()


def weights(phi: NeuralRepresentation) -> list[torch.Tensor]:
    return [p.detach() for p in phi.module.parameters()]


def generator(seed: int = 0) -> torch.Generator:
    return random_stream(seed, "steps")


@pytest.mark.parametrize("method", [Contrastive(), VICReg(), Contrastive(temperature=1.0)])
def test_the_losses_have_the_properties_of_the_protocol(method):
    assert isinstance(method, SelfSupervision)
    check_self_supervision(method)
    check_self_supervision(method, input_shape=(6,))


def test_the_check_finds_wrong_methods():
    class Reversed(Contrastive):
        def loss(self, first, second):
            return -super().loss(first, second)

    with pytest.raises(CheckError, match="lower"):
        check_self_supervision(Reversed())
    with pytest.raises(CheckError, match="no views"):
        check_self_supervision(Contrastive(), input_shape=())


def test_the_contrastive_loss_is_that_of_its_definition():
    first, second = numbers(4, 3, name="a"), numbers(4, 3, name="b")
    z = nn.functional.normalize(torch.cat([first, second]), dim=1)
    expected = []
    for i in range(8):
        s = {k: float(z[i] @ z[k]) / 0.3 for k in range(8) if k != i}
        total = sum(torch.tensor(v).exp() for v in s.values()).log()
        expected.append(total - s[(i + 4) % 8])
    loss = Contrastive(temperature=0.3).loss(first, second)
    assert float(loss) == pytest.approx(float(sum(expected)) / 8, abs=1e-5)


def test_views_of_the_nearest_inputs_are_further_positives():
    first, second = numbers(6, 3, name="a"), numbers(6, 3, name="b")
    z = nn.functional.normalize(torch.cat([first, second]), dim=1)
    means = nn.functional.normalize(z[:6] + z[6:], dim=1)
    method = Contrastive(batch_size=4, neighbour_share=0.4, neighbour_weight=0.7)
    expected = []
    for i in range(12):
        s = z @ z[i] / method.temperature
        total = torch.cat([s[:i], s[i + 1 :]]).logsumexp(0)
        order = (means @ means[i % 6]).argsort(descending=True).tolist()
        near = [j for j in order if j != i % 6][:2]
        neighbours = torch.stack([s[j + k] for j in near for k in (0, 6)]).mean()
        expected.append(total - 0.3 * s[(i + 6) % 12] - 0.7 * neighbours)
    both = method.loss(torch.stack([first, second]), torch.stack([second, first]))
    assert both.tolist() == pytest.approx([float(sum(expected)) / 12] * 2, abs=1e-5)
    smallest = replace(method, batch_size=6)  # the network is new: no neighbours
    plain = replace(method, neighbour_weight=0.0)
    assert torch.equal(smallest.loss(first, second), plain.loss(first, second))
    assert float(plain.loss(first, second)) != pytest.approx(float(both[0]), abs=1e-2)


def test_neighbours_bring_the_outputs_of_a_class_together():
    classes = torch.arange(64) % 4
    spread = torch.randn(64, 12, generator=generator(1))
    pool = nn.functional.one_hot(classes, 4).float().repeat(1, 3) + 0.3 * spread
    method = Contrastive(
        views=lambda inputs, draws: inputs + 0.05 * torch.randn(inputs.shape, generator=draws),
        batch_size=16,
        largest_batch=32,
        learning_rate=1e-2,
        neighbour_share=0.2,
    )
    same = classes[:, None] == classes
    closeness = []
    for weight in (0.0, 0.9):
        chosen = replace(method, neighbour_weight=weight)
        trained = train_network(chosen, network(12), pool, generator(), 60)
        z = nn.functional.normalize(trained.module[:-1](pool), dim=1).detach()
        closeness.append((z @ z.T)[same].mean())
    assert closeness[1] > closeness[0] + 0.1


def test_the_terms_of_vicreg():
    first, second = numbers(50, 3, name="a"), numbers(50, 3, name="b")
    none = VICReg(invariance=0.0, variance=0.0, covariance=0.0)
    parts = {name: float(replace(none, **{name: 1.0}).loss(first, second)) for name in TERMS}
    assert parts["invariance"] == pytest.approx(float((first - second).square().mean()), rel=1e-4)
    spread = [(1 - (x.var(0) + 1e-4).sqrt()).relu().mean() for x in (first, second)]
    assert parts["variance"] == pytest.approx(float(sum(spread)) / 2, rel=1e-4)
    both = [torch.cov(x.T) for x in (first, second)]
    off = [(c - c.diag().diag()).square().sum() / 3 for c in both]
    assert parts["covariance"] == pytest.approx(float(sum(off)), rel=1e-3)


TERMS = ("invariance", "variance", "covariance")


@pytest.mark.parametrize("shape", [(8, 8), (6,)])
@pytest.mark.parametrize("method", [SMALL, VICReg(batch_size=8)])
def test_steps_lower_the_loss_and_leave_the_start_as_it_is(method, shape):
    method = replace(method, learning_rate=3e-3)
    phi, pool = network(*shape), structured(*shape)
    before = [w.clone() for w in weights(phi)]
    global_state = torch.random.get_rng_state()
    trained = train_network(method, phi, pool, generator(), 40)
    again = train_network(method, phi, pool, generator(), 40)
    assert torch.equal(global_state, torch.random.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(weights(phi), before, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(weights(trained), weights(again), strict=True))
    assert not trained.module.training

    def loss(network: NeuralRepresentation) -> float:
        views = method.views_for(pool)
        first, second = (network.module[:-1](views(pool, random_stream(9, name))) for name in "ab")
        return float(method.loss(first, second).detach())

    assert loss(trained) < loss(phi)


def test_a_stack_trains_as_separate_networks_do():
    # The first pool has larger batches than the second.
    pools = [numbers(40, 8, 8, name="p"), numbers(12, 8, 8, name="q"), numbers(5, 8, 8, name="r")]
    alone = [
        train_network(SMALL, network(8, 8, seed=s), pool, generator(s), STEPS)
        for s, pool in enumerate(pools)
    ]
    stack = NetworkStack([network(8, 8, seed=s) for s in range(3)])
    train_stack(SMALL, stack, pools, [generator(s) for s in range(3)], STEPS)
    for one, other in zip(alone, stack.unstacked(), strict=True):
        for a, b in zip(weights(one), weights(other), strict=True):
            assert torch.allclose(a, b, atol=1e-4)
    # The third pool is smaller than a batch.
    assert all(
        torch.equal(a, b)
        for a, b in zip(weights(stack.unstacked()[2]), weights(network(8, 8, seed=2)), strict=True)
    )


def test_views_of_the_users_own():
    phi, pool = network(8, 8), numbers(20, 8, 8)
    method = replace(SMALL, views=RandomShifts(1))
    trained = train_network(method, phi, pool, generator(), STEPS)
    assert not torch.equal(weights(trained)[0], weights(phi)[0])
    stack = NetworkStack([phi])
    train_stack(method, stack, [pool], [generator()], STEPS)
    pairs = zip(weights(trained), weights(stack.unstacked()[0]), strict=True)
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in pairs)
    for wrong in (lambda x, g: x[:, :4], lambda x, g: None):
        with pytest.raises(InvalidInputError, match="views must return"):
            train_network(replace(SMALL, views=wrong), phi, pool, generator(), STEPS)


def test_there_are_no_steps_without_enough_inputs_views_or_weights():
    phi = network(8, 8)
    assert train_network(SMALL, phi, numbers(7, 8, 8), generator(), STEPS) is phi
    assert train_network(SMALL, phi, numbers(9, 8, 8), generator(), 0) is phi
    assert train_network(SMALL, phi, torch.zeros(9, 8, 8).long(), generator(), STEPS) is phi
    fixed = NeuralRepresentation(nn.Flatten())
    assert train_network(SMALL, fixed, numbers(9, 8, 8), generator(), STEPS) is fixed


def test_steps_that_diverge_are_dropped():
    phi, pool = network(8, 8), numbers(20, 8, 8)
    wild = VICReg(batch_size=8, learning_rate=1e30)
    assert train_network(wild, phi, pool, generator(), STEPS) is phi
    stack = NetworkStack([phi])
    train_stack(wild, stack, [pool], [generator()], STEPS)
    pairs = zip(weights(phi), weights(stack.unstacked()[0]), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    "arguments",
    [
        {"steps": -1},
        {"steps": 1.5},
        {"batch_size": 1},
        {"batch_size": "many"},
        {"pool_size": 63},
        {"learning_rate": float("nan")},
        {"learning_rate": -1.0},
        {"weight_decay": None},
        {"views": 3},
        {"views": ImageViews},
        {"few_samples": 0},
        {"neighbour_share": 1.5},
        {"neighbour_weight": -0.1},
        {"few_samples": float("nan")},
        {"adaptive": 1},
        {"temperature": 0.0},
        {"temperature": float("inf")},
    ],
)
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(InvalidInputError, match=next(iter(arguments))):
        Contrastive(**arguments)


def test_steps_become_fewer_with_more_samples():
    method = Contrastive(steps=50, few_samples=10)
    assert [method.steps_for(n) for n in (1, 10, 40, 1000, 1e9)] == [50, 50, 25, 5, 0]
    assert replace(method, few_samples=float("inf")).steps_for(1e9) == 50


def test_batches_grow_with_the_pool():
    sizes = [Contrastive().batch_size_for(n) for n in (0, 100, 255, 256, 511, 512, 10**6)]
    assert sizes == [64, 64, 64, 128, 128, 256, 256]
    assert Contrastive(batch_size=512).batch_size_for(10**6) == 512


def test_wrong_weights_of_vicreg_are_refused():
    for name in TERMS:
        with pytest.raises(InvalidInputError, match=name):
            VICReg(**{name: -1.0})
    assert VICReg(views=TableViews()).views_for(torch.zeros(1, 8, 8)) == TableViews()

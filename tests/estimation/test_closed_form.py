"""Errors of heads with gradients in closed form."""

import pytest
import torch

from gfucb import VariableProjection
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.estimation.closed_form import fast_head_errors
from gfucb.estimation.held_out import head_errors, without_padding
from gfucb.models import HeadPenalty, MultiheadFunction, MultitaskDataset, NeuralRepresentation
from gfucb.models.nn.networks import default_network

KINDS = ["leave_one_out", "residual"]


def case(slots: int, features: int, scale: float = 1.0):
    generator = random_stream(0, "heads")
    phi = scale * torch.randn(3, slots, features, generator=generator, dtype=torch.float64)
    targets = torch.randn(3, slots, 2, generator=generator, dtype=torch.float64)
    present = torch.ones(3, slots, dtype=torch.bool)
    present[1, slots // 2 :] = False
    return phi, targets, present


def errors_and_gradient(function, phi, targets, present, **options):
    phi = phi.clone().requires_grad_()
    errors = function(phi, targets, present, **options)
    weights = torch.linspace(0.5, 2.0, errors.numel(), dtype=errors.dtype).view(errors.shape)
    (weights * errors.square()).sum().backward()
    return errors.detach(), phi.grad


def test_full_batches_are_not_copied_and_empty_slots_are_zero():
    phi, targets, present = case(5, features=8)
    masked, masked_targets = without_padding(phi, targets, present)
    assert torch.equal(masked, phi * present.unsqueeze(-1))
    assert torch.equal(masked_targets, targets * present.unsqueeze(-1))
    full = torch.ones_like(present)
    assert all(
        a is b for a, b in zip(without_padding(phi, targets, full), (phi, targets), strict=True)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slots", [5, 12])  # fewer and more than features
@pytest.mark.parametrize("ridge", [2.0, 1e-6])  # the second clamps 1 - leverage
def test_errors_and_gradients_are_those_of_autograd(kind, slots, ridge):
    given = case(slots, features=8)
    expected = errors_and_gradient(head_errors, *given, ridge=ridge, kind=kind)
    found = errors_and_gradient(fast_head_errors, *given, ridge=ridge, kind=kind)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)
    assert (found[0][~given[2]] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_agrees_with_double_where_it_is_used(kind):
    phi, targets, present = case(slots=30, features=64, scale=0.2)
    expected = errors_and_gradient(head_errors, phi, targets, present, ridge=1.0, kind=kind)
    found = errors_and_gradient(
        fast_head_errors, phi.float(), targets, present, ridge=1.0, kind=kind
    )
    assert found[0].dtype == found[1].dtype == torch.float32
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [1e3, 1e19, float("nan")])
def test_ill_conditioned_systems_are_solved_in_double_precision(scale):
    phi, targets, present = case(slots=5, features=8, scale=scale)
    single = phi.float()
    found = fast_head_errors(single, targets, present, ridge=1e-3, kind="residual")
    assert found.dtype == torch.float64
    expected = head_errors(single.double(), targets, present, ridge=1e-3, kind="residual")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-9, equal_nan=True)


def test_fits_with_both_gradients_agree_to_rounding():
    module = default_network((6,), random_stream(0, "network"), hidden=16, feature_dim=32).double()
    data = MultitaskDataset(3, torch.Size([6]), torch.float64)
    generator = random_stream(0, "data")
    inputs = torch.rand(90, 6, generator=generator, dtype=torch.float64)
    data.append(torch.arange(3).repeat(30), inputs, inputs.sum(1).sin())
    start = MultiheadFunction(NeuralRepresentation(module), torch.zeros(3, 32, dtype=torch.float64))
    heads = [
        VariableProjection(steps=5, gradients=kind)(
            data, start, HeadPenalty(), random_stream(0, "fit")
        ).heads
        for kind in ("autograd", "closed_form")
    ]
    torch.testing.assert_close(*heads, rtol=1e-7, atol=1e-9)
    assert not torch.equal(*heads)


def test_other_kinds_of_gradients_are_refused():
    with pytest.raises(InvalidInputError, match="gradients must be"):
        VariableProjection(gradients="numeric")

"""The check of self-supervised methods."""

from __future__ import annotations

import torch
from torch import Tensor

from gfucb.checks.assertions import require, uniform
from gfucb.core.protocols import SelfSupervision
from gfucb.core.random import random_stream
from gfucb.core.validation.components import validate_self_supervision

NUM_OUTPUTS = 5


def check_self_supervision(
    method: SelfSupervision, *, input_shape: tuple[int, ...] = (8, 8)
) -> None:
    """Check a self-supervised method on small inputs.

    Views have the shape of their inputs, are finite, a function of the generator alone, and leave
    the inputs as they are. The loss is finite, one number for each replica, independent of other
    replicas, and lower for equal views than for views of other inputs. Its gradient is finite.

    Args:
        method: the implementation.
        input_shape: of inputs that have views.
    """
    validate_self_supervision(method)
    inputs = uniform("views", 0, 12, *input_shape).to(torch.float32)
    views = method.views_for(inputs)
    require(views is not None, f"the method has no views of inputs of shape {list(input_shape)}")
    _check_views(views, inputs)
    _check_loss(method)


def _check_views(views: object, inputs: Tensor) -> None:
    require(callable(views), f"views_for must return a function or None, got {views!r}")
    assert callable(views)
    before, global_state = inputs.clone(), torch.random.get_rng_state()
    found = views(inputs, random_stream(0, "checks"))
    again = views(inputs, random_stream(0, "checks"))
    require(torch.equal(inputs, before), "views changed their inputs")
    require(
        torch.equal(global_state, torch.random.get_rng_state()),
        "views used torch's global generator",
    )
    require(
        isinstance(found, Tensor) and found.shape == inputs.shape,
        f"views must have the shape {list(inputs.shape)} of their inputs",
    )
    require(bool(found.isfinite().all()), "views of finite inputs must be finite")
    require(torch.equal(found, again), "views with equal generators differ")


def _check_loss(method: SelfSupervision) -> None:
    outputs = uniform("outputs", 0, 2, 12, NUM_OUTPUTS).to(torch.float32).requires_grad_()
    others = outputs.roll(1, dims=1)
    equal, other = method.loss(outputs, outputs), method.loss(outputs, others)
    require(
        equal.shape == (2,) and other.shape == (2,),
        f"the loss of outputs [2, n, output] must have the shape [2], got {list(equal.shape)}",
    )
    alone = torch.stack([method.loss(own, own) for own in outputs])
    require(torch.allclose(equal, alone, atol=1e-5), "the loss of a replica depends on others")
    require(bool((equal < other).all()), "equal views must have a lower loss than other inputs")
    (gradient,) = torch.autograd.grad(other.sum(), outputs)
    is_finite = bool(other.isfinite().all() and gradient.isfinite().all())
    require(is_finite, "the loss and its gradient must be finite")

"""Gradients of a network's values in its weights, one per sample."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gfucb.models.multihead import MultiheadFunction
from gfucb.models.representations import (
    NeuralRepresentation,
    as_network,
    module_dtype,
    normalise,
    readable,
)

# The most floats of gradients that are in memory at once.
GRADIENT_CHUNK = 32_000_000


def network_of(function: MultiheadFunction) -> NeuralRepresentation:
    """The representation of `function`, which must be a network."""
    return as_network(function.representation)


def weight_gradients(
    function: MultiheadFunction, inputs: Tensor, tasks: Tensor
) -> Iterator[tuple[slice, Tensor]]:
    """Gradients of f_task(x) in the weights of phi, in chunks: (which samples, [n, weight]).

    Shapes: inputs [sample, *input], tasks [sample]. The network is in evaluation mode.
    O(samples weights) time, bounded memory.
    """
    phi = network_of(function).copy()
    heads = function.heads.to(module_dtype(phi.module))[tasks]
    size = max(1, GRADIENT_CHUNK // max(1, num_weights(phi)))
    for start in range(0, len(inputs), size):
        chunk = slice(start, start + size)
        yield chunk, _per_sample_gradients(phi, inputs[chunk], heads[chunk])


def num_weights(phi: NeuralRepresentation) -> int:
    """The number of parameters of the network."""
    return sum(p.numel() for p in phi.module.parameters())


def _per_sample_gradients(phi: NeuralRepresentation, inputs: Tensor, heads: Tensor) -> Tensor:
    """Gradient of <heads[n], phi(inputs[n])> for each n: [n, weight]."""
    module = phi.module
    weights = {name: p.detach() for name, p in module.named_parameters()}

    def value(at: dict[str, Tensor], x: Tensor, head: Tensor) -> Tensor:
        output = torch.func.functional_call(module, at, (x.unsqueeze(0),))
        return (normalise(output, phi.normalisation)[0] * head).sum()

    if not weights:
        return heads.new_zeros(len(heads), 0)
    per_sample = torch.func.vmap(torch.func.grad(value), in_dims=(None, 0, 0))
    gradients = per_sample(weights, readable(inputs, module_dtype(module)), heads)
    return torch.cat([gradient.flatten(1) for gradient in gradients.values()], dim=1)

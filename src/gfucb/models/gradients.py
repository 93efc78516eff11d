"""Gradients of a network's values in its weights, one per sample, and sketches of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
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


@dataclass(frozen=True)
class WeightSketch:
    """Gradients projected to `dim` numbers, which preserves inner products in expectation.

    Weight p is added, with a random sign, to coordinate p modulo `dim`: a count sketch (Charikar,
    Chen and Farach-Colton 2002) with a fixed hash. It costs one addition per weight and stores no
    matrix. Its transpose spans a random subspace of the weights, and a sketched gradient is the
    exact derivative along that subspace.
    """

    dim: int | None = 64
    """Length of a sketch; None uses every weight."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.dim is not None and self.dim < 1:
            raise InvalidInputError(f"a sketch needs at least one dimension, got dim={self.dim}")

    def length(self, weights: int) -> int:
        """The length of a sketch of this many weights."""
        return weights if self.dim is None else self.dim

    def of(self, function: MultiheadFunction, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Sketched gradients of f_task(x) in the weights, float64: [sample, sketch]."""
        weights = num_weights(network_of(function))
        dim, signs = self.length(weights), self._signs(weights, inputs.device)
        sketches = torch.zeros(len(inputs), dim, dtype=torch.float64, device=inputs.device)
        if weights:
            for chunk, gradients in weight_gradients(function, inputs, tasks):
                padded = nn.functional.pad(gradients * signs, (0, -weights % dim))
                sketches[chunk] = padded.unflatten(1, (-1, dim)).sum(1).to(torch.float64)
        return sketches

    def lifted(self, phi: NeuralRepresentation, coordinates: Tensor) -> list[Tensor]:
        """The step of the weights with these coordinates [sketch], shaped like the parameters."""
        weights = num_weights(phi)
        repeats = -(-weights // len(coordinates)) if weights else 0
        step = coordinates.repeat(repeats)[:weights] * self._signs(weights, coordinates.device)
        steps = []
        for parameter in phi.module.parameters():
            part, step = step[: parameter.numel()], step[parameter.numel() :]
            steps.append(part.view_as(parameter).to(parameter.dtype))
        return steps

    def _signs(self, weights: int, device: torch.device) -> Tensor:
        if self.dim is None:
            return torch.ones(weights, device=device)
        generator = random_stream(self.seed, "weight sketch", self.dim)
        return (torch.randint(2, (weights,), generator=generator) * 2.0 - 1).to(device)

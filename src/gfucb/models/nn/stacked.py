"""Networks of one architecture with stacked weights, so that small networks use a whole device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gfucb.core.errors import InvalidInputError
from gfucb.models.representations import (
    NeuralRepresentation,
    module_dtype,
    normalise,
    readable,
)


class NetworkStack:
    """Several networks as one: inputs [replica, n, *input] -> features [replica, n, feature].

    Their weights are stacked along a first axis and every layer computes all replicas at once
    (`torch.func`). Replicas share nothing: in the gradient of a sum over replicas, each replica
    has its own gradient.

    Args:
        representations: networks of the same architecture; the stack has its own weights.
    """

    def __init__(self, representations: Sequence[NeuralRepresentation]) -> None:
        first = representations[0].copy()
        if any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in first.module.modules()):
            raise InvalidInputError(
                "networks with batch normalisation cannot be stacked: their running statistics "
                "change during training; use another normalisation, or run the agents one by one"
            )
        self.normalisation = first.normalisation
        self.module = first.module
        weights, buffers = torch.func.stack_module_state([phi.module for phi in representations])
        self.weights: dict[str, Tensor] = dict(weights)
        self.buffers: dict[str, Tensor] = dict(buffers)

    def __len__(self) -> int:
        first = next(iter(self.weights.values()))
        return len(first)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Features [replica, n, feature] of inputs [replica, n, *input], with gradients."""

        def one(weights: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Tensor:
            return torch.func.functional_call(self.module, (weights, buffers), (x,))

        together = torch.func.vmap(one, randomness="different")
        outputs = together(self.weights, self.buffers, readable(inputs, module_dtype(self.module)))
        return normalise(outputs, self.normalisation)

    def features(self, inputs: Tensor, chunk: int = 1024) -> Tensor:
        """The same in float64 and without gradients, in chunks of n."""
        with torch.no_grad():
            return torch.cat([self(x).to(torch.float64) for x in inputs.split(chunk, dim=1)], dim=1)

    def taken(self, replicas: Sequence[int]) -> NetworkStack:
        """A stack of some replicas, with its own weights."""
        some = NetworkStack([NeuralRepresentation(self.module, self.normalisation)])
        index = list(replicas)
        some.weights = {
            name: weight.detach()[index].requires_grad_(weight.requires_grad)
            for name, weight in self.weights.items()
        }
        some.buffers = {name: buffer[index] for name, buffer in self.buffers.items()}
        return some

    def put(self, replicas: Sequence[int], other: NetworkStack) -> None:
        """Set the weights of `replicas` to those of `other`."""
        index = torch.tensor(list(replicas), device=next(iter(self.weights.values())).device)
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.index_copy_(0, index, other.weights[name])

    def unstacked(self) -> list[NeuralRepresentation]:
        """The networks one by one, with their own weights."""
        networks = []
        for index in range(len(self)):
            phi = NeuralRepresentation(self.module, self.normalisation).copy()
            with torch.no_grad():
                for name, weight in phi.module.named_parameters():
                    weight.copy_(self.weights[name][index])
                for name, buffer in phi.module.named_buffers():
                    buffer.copy_(self.buffers[name][index])
            networks.append(phi)
        return networks

"""Fixed feature maps of the linear baselines: inputs, random Fourier features, item numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.models.representations import flat_inputs


class FeatureMap(Protocol):
    """A fixed map from inputs [n, *input] to features [n, feature] in float64."""

    def __call__(self, inputs: Tensor, /) -> Tensor:
        """Return the features [n, feature] of inputs [n, *input]."""


@dataclass(frozen=True)
class InputFeatures:
    """The flattened input and a constant 1."""

    def __call__(self, inputs: Tensor) -> Tensor:
        """Features [n, input + 1]."""
        values = flat_inputs(inputs)
        return torch.cat([values, values.new_ones(len(values), 1)], 1)


@dataclass(frozen=True)
class FourierInputs:
    """Random Fourier features of the flattened input (Rahimi and Recht, 2007) and a constant 1.

    phi_j(x) = sqrt(2 / D) cos(<w_j, x> / l + b_j) with w_j ~ N(0, I) and b_j ~ U[0, 2 pi]. Their
    inner products approximate the Gaussian kernel of length scale l = `length` sqrt(input length):
    distances of inputs whose numbers have a fixed scale grow with the root of their number.

    Attributes:
        num_features: D.
        length: the length scale, relative to the root of the input's length.
        seed: w and b derive from it.
    """

    num_features: int = 150
    length: float = 0.3
    seed: int = 0

    def __call__(self, inputs: Tensor) -> Tensor:
        """Features [n, D + 1]."""
        values = flat_inputs(inputs)
        directions, phases = self._draws(values.shape[1])
        angles = values @ directions + phases
        features = math.sqrt(2 / self.num_features) * angles.cos()
        return torch.cat([features, features.new_ones(len(features), 1)], 1)

    def _draws(self, input_dim: int) -> tuple[Tensor, Tensor]:
        generator = random_stream(self.seed, "fourier inputs", input_dim)
        shape = (input_dim, self.num_features)
        directions = torch.randn(shape, generator=generator, dtype=torch.float64)
        phases = torch.rand(self.num_features, generator=generator, dtype=torch.float64)
        return directions / (self.length * math.sqrt(max(1, input_dim))), 2 * math.pi * phases


@dataclass(frozen=True)
class OneHotItems:
    """The one-hot vector of an item number 0 .. num_items - 1, and a constant 1.

    With hierarchical weights the constant is how generous a task is in general.
    """

    num_items: int

    def __call__(self, inputs: Tensor) -> Tensor:
        """Features [n, item + 1]."""
        items = one_hot(item_numbers(inputs, self.num_items), self.num_items).to(torch.float64)
        return torch.cat([items, items.new_ones(len(items), 1)], 1)


def item_numbers(inputs: Tensor, num_items: int) -> Tensor:
    """Inputs [n] or [n, 1] as item numbers [n]; others are refused."""
    items = inputs.squeeze(1) if inputs.ndim == 2 and inputs.shape[1] == 1 else inputs
    if items.ndim != 1 or items.is_floating_point() or items.dtype == torch.uint8:
        raise InvalidInputError(
            "inputs must be item numbers: integers (not bytes) of shape [row, action], got "
            f"{inputs.dtype} with {inputs.ndim - 1} input axes"
        )
    if len(items) and (int(items.min()) < 0 or int(items.max()) >= num_items):
        raise InvalidInputError(
            f"item numbers must be 0 .. {num_items - 1}, got numbers from {int(items.min())} to "
            f"{int(items.max())}"
        )
    return items.to(torch.int64)

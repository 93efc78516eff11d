"""Representations phi: maps from inputs [n, *input] to features [n, feature]."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Representation
from gfucb.core.validation.record_fields import require_floats, require_type
from gfucb.core.validation.settings import validate_choice

Normalisation = Literal["none", "l2", "simplex"]
NORMALISATIONS = ("none", "l2", "simplex")
SMALLEST_NORM = 1e-6


def readable(inputs: Tensor, dtype: torch.dtype) -> Tensor:
    """Inputs in the form a network reads: bytes as images in [0, 1], floats in `dtype`.

    Other integers are not converted: they are indices, for example of an embedding. The result
    never shares memory with `inputs`, so a module that writes into its input cannot change
    stored data.
    """
    if inputs.dtype == torch.uint8:
        return inputs.to(dtype) / 255
    return inputs.to(dtype, copy=True) if inputs.is_floating_point() else inputs.clone()


def flat_inputs(inputs: Tensor) -> Tensor:
    """Inputs as float64 vectors: [n, *input] -> [n, input]."""
    return readable(inputs, torch.float64).to(torch.float64).flatten(1)


@dataclass(frozen=True, eq=False)
class LinearRepresentation:
    """phi(x) = B x, on the flattened input."""

    matrix: Tensor  # [feature, input], float64

    def __post_init__(self) -> None:
        require_floats(self.matrix, "matrix", "feature", "input")
        # The layout of a restored matrix: in another one products round differently, and a
        # restored agent would not continue to the last bit.
        object.__setattr__(self, "matrix", self.matrix.contiguous())

    def __call__(self, inputs: Tensor) -> Tensor:
        """Features [n, feature] of inputs [n, *input]."""
        return flat_inputs(inputs) @ self.matrix.T

    def __repr__(self) -> str:
        feature_dim, input_dim = self.matrix.shape
        return f"LinearRepresentation({input_dim} inputs -> {feature_dim} features)"


@dataclass(frozen=True)
class IdentityRepresentation:
    """phi(x) = x, flattened."""

    def __call__(self, inputs: Tensor) -> Tensor:
        """Features [n, input] of inputs [n, *input]."""
        return flat_inputs(inputs)


@dataclass(frozen=True, eq=False)
class NeuralRepresentation:
    """phi(x) = normalise(module(x)).

    `l2` divides by max(|z|, 1e-6), so a zero output stays zero and its gradient is finite;
    `simplex` is the softmax: features are non-negative and sum to one.
    """

    module: nn.Module
    normalisation: Normalisation = "none"

    def __post_init__(self) -> None:
        require_type(self.module, "module", nn.Module)
        validate_choice(self.normalisation, "normalisation", NORMALISATIONS)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Features [n, feature] of inputs [n, *input], in the dtype of the module."""
        return normalise(
            self.module(readable(inputs, module_dtype(self.module))), self.normalisation
        )

    def copy(self) -> NeuralRepresentation:
        """The same function with its own parameters, in evaluation mode."""
        return NeuralRepresentation(copy.deepcopy(self.module).eval(), self.normalisation)

    def __repr__(self) -> str:
        weights = sum(p.numel() for p in self.module.parameters())
        name = type(self.module).__name__
        return f"NeuralRepresentation({name} with {weights} weights, {self.normalisation!r})"


def as_network(representation: Representation) -> NeuralRepresentation:
    """`representation`, for methods that need gradients in its weights; others are refused."""
    if not isinstance(representation, NeuralRepresentation):
        raise InvalidInputError(
            "gradients in the weights need a NeuralRepresentation, "
            f"got {type(representation).__name__}; use the default fit of the class, and "
            "LastLayer or ExactFinite to select actions"
        )
    return representation


def train_on(module: nn.Module, num_rows: int) -> None:
    """Put `module` in training mode for a batch of `num_rows`.

    Batch normalisation stays in evaluation mode for one row, which has no batch statistics.
    """
    module.train()
    if num_rows == 1:
        for layer in module.modules():
            if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                layer.eval()


def module_dtype(module: nn.Module) -> torch.dtype:
    """The float type a module computes in; torch's default if it has no parameters."""
    floats = (p.dtype for p in module.parameters() if p.is_floating_point())
    return next(floats, torch.get_default_dtype())


def normalise(features: Tensor, how: Normalisation) -> Tensor:
    """Project features [n, feature] to the unit sphere (`l2`) or the simplex, or do nothing."""
    if how == "l2":
        # The clamp is inside the root: sqrt has no finite gradient at zero.
        squared_norms = features.square().sum(-1, keepdim=True).clamp_min(SMALLEST_NORM**2)
        return features * squared_norms.rsqrt()
    if how == "simplex":
        return features.softmax(-1)
    validate_choice(how, "normalisation", NORMALISATIONS)
    return features


@dataclass(frozen=True, eq=False)
class JoinedFeatures:
    """The features of one representation, then those of another."""

    first: Representation
    second: Representation

    def __call__(self, inputs: Tensor) -> Tensor:
        """Features [n, feature] of inputs [n, *input]."""
        # Each gets a copy of the inputs: a module may write into its input.
        parts = (self.first(inputs.clone()), self.second(inputs.clone()))
        return torch.cat([part.to(torch.float64) for part in parts], dim=1)

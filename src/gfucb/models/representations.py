"""Representations phi: inputs [n, *input] -> features [n, feature], and the classes Phi of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.features import Representation

Normalisation = Literal["none", "l2", "simplex"]
SMALLEST_NORM = 1e-6


def readable(inputs: Tensor, dtype: torch.dtype) -> Tensor:
    """Inputs as a network reads them: images of bytes in [0, 1], floats in `dtype`.

    Other integers are left alone: they are indices, for example of an embedding.
    """
    if inputs.dtype == torch.uint8:
        return inputs.to(dtype) / 255
    return inputs.to(dtype) if inputs.is_floating_point() else inputs


def flat_inputs(inputs: Tensor) -> Tensor:
    """Inputs as float64 vectors: [n, *input] -> [n, input]."""
    return readable(inputs, torch.float64).to(torch.float64).flatten(1)


@dataclass(frozen=True)
class LinearRepresentation:
    """phi(x) = B x, on the flattened input."""

    matrix: Tensor  # [feature, input], float64

    def __call__(self, inputs: Tensor) -> Tensor:
        """Features [n, feature] of inputs [n, *input]."""
        return flat_inputs(inputs) @ self.matrix.T


@dataclass(frozen=True)
class IdentityRepresentation:
    """phi(x) = x, flattened."""

    def __call__(self, inputs: Tensor) -> Tensor:
        """Features [n, input] of inputs [n, *input]."""
        return flat_inputs(inputs)


@dataclass(frozen=True, eq=False)
class NeuralRepresentation:
    """phi(x) = normalise(module(x)).

    `l2` divides by max(|z|, 1e-6), so that a dead output stays zero and its gradient finite;
    `simplex` is the softmax: features are then non-negative and sum to one.
    """

    module: nn.Module
    normalisation: Normalisation = "none"

    def __call__(self, inputs: Tensor) -> Tensor:
        """Features [n, feature] of inputs [n, *input], in the dtype of the module."""
        return normalise(
            self.module(readable(inputs, module_dtype(self.module))), self.normalisation
        )

    def copy(self) -> NeuralRepresentation:
        """The same function with parameters of its own, in evaluation mode."""
        return NeuralRepresentation(copy.deepcopy(self.module).eval(), self.normalisation)


def train_on(module: nn.Module, num_rows: int) -> None:
    """Put `module` in training mode for a batch; one row has no batch statistics to learn."""
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
    """Put features [n, feature] on the unit ball (`l2`) or the simplex, or leave them."""
    if how == "l2":
        # The clamp is inside the root: sqrt has no finite gradient at zero.
        squared_norms = features.square().sum(-1, keepdim=True).clamp_min(SMALLEST_NORM**2)
        return features * squared_norms.rsqrt()
    if how == "simplex":
        return features.softmax(-1)
    if how != "none":
        raise InvalidInputError(f"normalisation must be 'none', 'l2' or 'simplex', got {how!r}")
    return features


@dataclass(frozen=True)
class FiniteClass:
    """Phi = a list of known representations, one of which is to be found.

    Args:
        members: the representations, each [n, *input] -> [n, feature], all with the same number
            of features.
    """

    members: Sequence[Representation]

    def __post_init__(self) -> None:
        if not self.members:
            raise InvalidInputError("a finite class needs at least one representation, got none")

    def log_covering_number(self, scale: float) -> float:
        """Log N(Phi, scale): the class covers itself at every scale."""
        return math.log(len(self.members))


@dataclass(frozen=True)
class LinearClass:
    """Phi = { x -> B x : B with orthonormal rows }, B of shape [feature, input].

    Orthonormal rows lose nothing: the heads absorb any invertible map of the features.
    """

    input_dim: int
    feature_dim: int

    def __post_init__(self) -> None:
        if not 1 <= self.feature_dim <= self.input_dim:
            raise InvalidInputError(
                "a linear class needs 1 <= feature_dim <= input_dim, "
                f"got feature_dim={self.feature_dim}, input_dim={self.input_dim}"
            )

    def log_covering_number(self, scale: float) -> float:
        """Log N(Phi, scale) <= k d log(1 + 2 sqrt(k) / scale), for inputs in the unit ball.

        The volume bound for a ball of radius |B|_F <= sqrt(k) in k d dimensions.
        """
        return (
            self.feature_dim * self.input_dim * math.log1p(2 * math.sqrt(self.feature_dim) / scale)
        )


@dataclass(frozen=True, eq=False)
class NeuralClass:
    """Phi = { module with any parameters }, started from the parameters it came with.

    Args:
        module: any torch module [n, *input] -> [n, feature]; it is copied, never changed.
        normalisation: what is done to its output, see `NeuralRepresentation`.
    """

    module: nn.Module
    normalisation: Normalisation = "none"

    def start(self) -> NeuralRepresentation:
        """A representation to begin a fit from, with parameters of its own."""
        return NeuralRepresentation(self.module, self.normalisation).copy()


RepresentationClass = FiniteClass | LinearClass | NeuralClass

"""Features of inputs: phi as a map, and its values in float64, checked."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError

# Inputs passed to a representation at once: bounds the memory of large data sets.
FEATURE_CHUNK = 8192


class Representation(Protocol):
    """A map phi from inputs [n, *input] to features [n, feature]."""

    def __call__(self, inputs: Tensor, /) -> Tensor:
        """Return the features [n, feature] of `inputs` [n, *input]."""


def features_of(representation: Representation, inputs: Tensor) -> Tensor:
    """phi(inputs) in float64, without gradients: [n, *input] -> [n, feature]."""
    with torch.no_grad():
        chunks = [representation(chunk).to(torch.float64) for chunk in inputs.split(FEATURE_CHUNK)]
    features = torch.cat(chunks)
    if not bool(features.isfinite().all()):
        raise InvalidInputError(
            "the representation gave NaN or infinite features; its weights have diverged, or the "
            "inputs are too large for its number type"
        )
    return features

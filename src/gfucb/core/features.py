"""Features of inputs: the values of a representation in float64, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError

if TYPE_CHECKING:
    from gfucb.core.protocols import Representation

# Inputs passed to a representation at once: bounds the memory of large data sets.
FEATURE_CHUNK = 8192


def features_of(representation: Representation, inputs: Tensor) -> Tensor:
    """phi(inputs) in float64, without gradients: [n, *input] -> [n, feature].

    The representation gets a copy of the inputs, so it cannot change stored data.
    """
    with torch.no_grad():
        try:
            chunks = [
                _as_float64(representation(chunk.clone()), len(chunk))
                for chunk in inputs.split(FEATURE_CHUNK)
            ]
        except IndexError as error:  # of an embedding
            if inputs.is_floating_point() or inputs.numel() == 0:
                raise
            raise InvalidInputError(
                f"the representation does not know all of the numbers {int(inputs.min())} to "
                f"{int(inputs.max())} ({error}); a torch.nn.Embedding knows those from 0 to "
                "num_embeddings - 1"
            ) from error
    features = torch.cat(chunks)
    if not bool(features.isfinite().all()):
        raise InvalidInputError(
            "the representation returned NaN or infinite features; its weights have diverged, or "
            "the inputs are too large for its number type"
        )
    return features


def _as_float64(found: Any, rows: int) -> Tensor:
    """What a representation returned for so many inputs, if it is one real row for each."""
    if not isinstance(found, Tensor):
        raise InvalidInputError(
            f"a representation returns a tensor [n, feature], this one {type(found).__name__}; "
            "wrap a module that returns several parts in one that returns the features"
        )
    if found.is_complex() or found.shape[:1] != (rows,):
        raise InvalidInputError(
            f"a representation maps [n, *input] to real features [n, feature]; for {rows} inputs "
            f"this one returns {found.dtype} of shape {list(found.shape)}"
        )
    return found.to(torch.float64)


def feature_dim_of(representation: Representation, inputs: Tensor) -> int:
    """The number of features of inputs like these [n, *input], found by a pass over the first."""
    try:
        features = features_of(representation, inputs[:1])
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise InvalidInputError(
            f"the representation cannot read inputs of shape {list(inputs.shape[1:])} "
            f"and type {inputs.dtype} (bytes become floats in [0, 1], other integers are passed "
            f"as they are): {error}"
        ) from error
    if features.ndim != 2 or features.shape[1] == 0:
        raise InvalidInputError(
            "a representation maps [n, *input] to [n, feature] with at least one feature; "
            f"this one maps {list(inputs[:1].shape)} to {list(features.shape)}"
        )
    return features.shape[1]

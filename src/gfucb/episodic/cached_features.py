"""Features that are computed once and reused while the representation and the inputs stay."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from gfucb.core.features import features_of
from gfucb.core.protocols import Representation

# Largest number of floats that `MemberFeatures` stores: 32 MB.
LARGEST_CACHE = 4_000_000


class FeatureCache:
    """Features of a few named tensors of inputs, such as all distinct inputs of a stage.

    A cached value is used only for the same representation object and the same tensor object: a
    representation is a value, and the tensors of a `StageBuffer` change when a row is added.
    """

    def __init__(self) -> None:
        self._stored: dict[str, tuple[Representation, Tensor, Tensor]] = {}

    def store(self, name: str, representation: Representation, inputs: Tensor) -> Tensor:
        """Features [n, feature] of inputs [n, *input]; they replace those of `name`."""
        features = self(representation, inputs)
        self._stored[name] = (representation, inputs, features)
        return features

    def __call__(self, representation: Representation, inputs: Tensor) -> Tensor:
        """Features [n, feature] of inputs [n, *input], stored or computed."""
        for stored_representation, stored_inputs, features in self._stored.values():
            if stored_representation is representation and stored_inputs is inputs:
                return features
        return features_of(representation, inputs)


class MemberFeatures:
    """Features of all members of a finite class, cached by the content of the inputs.

    In finite environments the same inputs recur in every decision.
    """

    def __init__(self, members: Sequence[Representation]) -> None:
        self.members = members
        self._cache: dict[tuple[torch.Size, bytes], Tensor] = {}
        self._size = 0

    def __call__(self, inputs: Tensor) -> Tensor:
        """[n, *input] -> [member, n, feature]."""
        digest = hashlib.blake2b(inputs.contiguous().numpy().tobytes(), digest_size=16).digest()
        key = (inputs.shape, digest)
        if key not in self._cache:
            features = torch.stack([features_of(member, inputs) for member in self.members])
            if self._size + features.numel() > LARGEST_CACHE:
                self._cache, self._size = {}, 0
            self._cache[key] = features
            self._size += features.numel()
        return self._cache[key]

    def index(self, representation: Representation) -> int:
        """The index of a member."""
        return next(i for i, member in enumerate(self.members) if member is representation)

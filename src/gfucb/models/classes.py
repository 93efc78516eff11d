"""The classes Phi of representations: finite and linear; networks are in `network_classes`.

Each class implements `RepresentationClass`: it builds its initial representation, saves and
restores one of its members, and identifies itself by a fingerprint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from gfucb.core.digests import digest_of
from gfucb.core.errors import InvalidInputError
from gfucb.core.features import feature_dim_of
from gfucb.core.protocols import Representation, RepresentationClass
from gfucb.core.validation.settings import validate_count
from gfucb.core.validation.states import validate_state_tensor
from gfucb.models.network_classes import REFIT_GROWTH, DefaultNetworkClass, NeuralClass
from gfucb.models.representations import LinearRepresentation


@dataclass(frozen=True, eq=False)
class FiniteClass:
    """Phi = a list of known representations.

    Args:
        members: the representations, each [n, *input] -> [n, feature], all with the same number
            of features.
    """

    members: Sequence[Representation]
    structure: ClassVar[Literal["finite"]] = "finite"

    def __post_init__(self) -> None:
        if not isinstance(self.members, Sequence) or isinstance(self.members, nn.Module):
            raise InvalidInputError(
                "a finite class needs a list of representations, got "
                f"{type(self.members).__name__}; put a single one in a list"
            )
        if not self.members:
            raise InvalidInputError("a finite class needs at least one representation, got none")
        for index, member in enumerate(self.members):
            if not callable(member):
                raise InvalidInputError(
                    "the members of a finite class map inputs to features; member "
                    f"{index} is not callable, got {type(member).__name__}"
                )

    def __repr__(self) -> str:
        kinds = sorted({type(member).__name__ for member in self.members})
        return f"FiniteClass({len(self.members)} x {' | '.join(kinds)})"

    @property
    def default_refit_growth(self) -> float:
        """Refit in every round, which is exact and cheap; never with a single member."""
        return 1.0 if len(self.members) > 1 else math.inf

    def validate_inputs(self, inputs: Tensor) -> None:
        """Accept all inputs; members that cannot read them raise an error in `initial`."""

    def initial(
        self, inputs: Tensor, generator: torch.Generator, device: torch.device | str
    ) -> Representation:
        """The first member."""
        dims = {feature_dim_of(member, inputs) for member in self.members}
        if len(dims) > 1:
            raise InvalidInputError(
                "the representations of a finite class must have the same number of features, "
                f"got {sorted(dims)}"
            )
        return self.members[0]

    def state_of(self, representation: Representation) -> dict[str, Tensor]:
        """The index of the member."""
        index = next(i for i, member in enumerate(self.members) if member is representation)
        return {"member": torch.tensor(index)}

    def restored(
        self,
        state: Mapping[str, Tensor],
        inputs: Tensor,
        generator: torch.Generator,
        device: torch.device | str,
    ) -> Representation:
        """The member with the saved index."""
        last = len(self.members) - 1
        index = validate_state_tensor(state, "member", (), dtype=torch.int64, low=0, high=last)
        return self.members[int(index)]

    def fingerprint(self) -> str:
        """Number and digest of the members, in their order."""
        return f"finite({len(self.members)} members, {self._digest})"

    @cached_property
    def _digest(self) -> str:
        return digest_of(list(self.members))

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
    structure: ClassVar[Literal["linear"]] = "linear"
    members: ClassVar[None] = None
    default_refit_growth: ClassVar[float] = REFIT_GROWTH

    def __post_init__(self) -> None:
        validate_count(self.input_dim, "input_dim")
        validate_count(self.feature_dim, "feature_dim")
        if not 1 <= self.feature_dim <= self.input_dim:
            raise InvalidInputError(
                "a linear class needs 1 <= feature_dim <= input_dim, "
                f"got feature_dim={self.feature_dim}, input_dim={self.input_dim}"
            )

    def validate_inputs(self, inputs: Tensor) -> None:
        """Accept all inputs; those of another length raise an error in `initial`."""

    def initial(
        self, inputs: Tensor, generator: torch.Generator, device: torch.device | str
    ) -> LinearRepresentation:
        """The first coordinates of the input."""
        eye = torch.eye(self.feature_dim, self.input_dim, dtype=torch.float64)
        return LinearRepresentation(eye.to(device))

    def state_of(self, representation: Representation) -> dict[str, Tensor]:
        """The matrix."""
        if not isinstance(representation, LinearRepresentation):
            raise InvalidInputError(
                f"a linear class saves a LinearRepresentation, got {representation!r}"
            )
        return {"matrix": representation.matrix}

    def restored(
        self,
        state: Mapping[str, Tensor],
        inputs: Tensor,
        generator: torch.Generator,
        device: torch.device | str,
    ) -> LinearRepresentation:
        """The representation with the saved matrix."""
        shape = (self.feature_dim, self.input_dim)
        matrix = validate_state_tensor(state, "matrix", shape, dtype=torch.float64)
        return LinearRepresentation(matrix.to(device))

    def fingerprint(self) -> str:
        """Its dimensions."""
        return f"linear(input_dim={self.input_dim}, feature_dim={self.feature_dim})"

    def log_covering_number(self, scale: float) -> float:
        """Log N(Phi, scale) <= k d log(1 + 2 sqrt(k) / scale), for inputs in the unit ball.

        The volume bound for a ball of radius |B|_F <= sqrt(k) in k d dimensions.
        """
        return (
            self.feature_dim * self.input_dim * math.log1p(2 * math.sqrt(self.feature_dim) / scale)
        )


def as_representation_class(representation: Any) -> RepresentationClass:
    """The class an argument `representation` stands for.

    A torch module stands for the class of all its parameters, None for the default network.
    """
    if isinstance(representation, nn.Module):
        return NeuralClass(representation)
    if representation is None:
        return DefaultNetworkClass()
    if isinstance(representation, type) or not isinstance(representation, RepresentationClass):
        raise InvalidInputError(
            "representation must be a torch module, a FiniteClass, a LinearClass, a NeuralClass, "
            f"another RepresentationClass, or None, got {representation!r}"
        )
    return representation

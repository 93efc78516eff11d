"""The classes Phi of representations: finite, linear, and neural.

Each class implements `RepresentationClass`: it builds its initial representation, saves and
restores one of its members, and identifies itself by a fingerprint.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.features import feature_dim_of
from gfucb.core.protocols import Representation, RepresentationClass
from gfucb.core.setting_descriptions import describe_module
from gfucb.core.validation.settings import validate_count
from gfucb.core.validation.states import validate_state_tensor
from gfucb.models.fingerprints import digest_of
from gfucb.models.nn.networks import default_network
from gfucb.models.representations import (
    LinearRepresentation,
    NeuralRepresentation,
    Normalisation,
    as_network,
    normalise,
)

# Refitting phi when the data has grown by 30% has the same regret as refitting in every round.
REFIT_GROWTH = 1.3
# The default network refuses larger inputs; it expects values around one.
LARGEST_DEFAULT_INPUT = 1e3
MODULE_PREFIX = "module."


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
        matrix = _saved(state, "matrix")
        if tuple(matrix.shape) != (self.feature_dim, self.input_dim):
            raise InvalidInputError(
                f"the saved matrix has shape {list(matrix.shape)}, this class has "
                f"[feature, input] = [{self.feature_dim}, {self.input_dim}]"
            )
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


class _Networks(ABC):
    """What all classes of networks have in common."""

    structure: ClassVar[Literal["neural"]] = "neural"
    members: ClassVar[None] = None
    default_refit_growth: ClassVar[float] = REFIT_GROWTH

    @abstractmethod
    def initial(
        self, inputs: Tensor, generator: torch.Generator, device: torch.device | str
    ) -> NeuralRepresentation:
        """The network that the first fit starts from."""

    def state_of(self, representation: Representation) -> dict[str, Tensor]:
        """The parameters and buffers of the module."""
        module = as_network(representation).module
        return {f"{MODULE_PREFIX}{name}": tensor for name, tensor in module.state_dict().items()}

    def restored(
        self,
        state: Mapping[str, Tensor],
        inputs: Tensor,
        generator: torch.Generator,
        device: torch.device | str,
    ) -> NeuralRepresentation:
        """The initial network with the saved parameters and buffers."""
        network = self.initial(inputs, generator, device)
        saved = {
            name.removeprefix(MODULE_PREFIX): tensor
            for name, tensor in state.items()
            if name.startswith(MODULE_PREFIX)
        }
        try:
            network.module.load_state_dict(saved)
        except RuntimeError as error:
            raise InvalidInputError(
                f"the saved weights do not fit this network: {error}"
            ) from error
        return network


@dataclass(frozen=True, eq=False)
class NeuralClass(_Networks):
    """Phi = { module with any parameters }; fits start from the parameters given here.

    Args:
        module: any torch module [n, *input] -> [n, feature]. The class takes a deep copy, so
            later changes of the module have no effect here, and the agent never changes it.
        normalisation: what is done to its output, see `NeuralRepresentation`.
    """

    module: nn.Module
    normalisation: Normalisation = "none"

    def __post_init__(self) -> None:
        if not isinstance(self.module, nn.Module):
            raise InvalidInputError(
                f"a neural class needs a torch module, got {type(self.module).__name__}"
            )
        normalise(torch.zeros(1, 1), self.normalisation)  # refuses an unknown one
        network = NeuralRepresentation(self.module, self.normalisation).copy()
        object.__setattr__(self, "module", network.module)

    def __repr__(self) -> str:
        return f"NeuralClass({NeuralRepresentation(self.module, self.normalisation)!r})"

    def validate_inputs(self, inputs: Tensor) -> None:
        """Accept all inputs; those the module cannot read raise an error in `initial`."""

    def initial(
        self, inputs: Tensor, generator: torch.Generator, device: torch.device | str
    ) -> NeuralRepresentation:
        """A copy of the module."""
        return _on(NeuralRepresentation(self.module, self.normalisation).copy(), device)

    def fingerprint(self) -> str:
        """The architecture, with all options of its layers, and the normalisation.

        Initial weights do not count: a state holds all weights, and an agent that restores it may
        have been built with others.
        """
        return f"neural({self.normalisation}, {describe_module(self.module)})"


@dataclass(frozen=True)
class DefaultNetworkClass(_Networks):
    """Phi = the default network for the shape of the inputs, with any parameters.

    The initial weights derive from the seed of the agent. Arguments are those of
    `default_network`.
    """

    feature_dim: int = 128
    num_directions: int | None = 20
    hidden: int = 256
    dropout: float | None = None

    def validate_inputs(self, inputs: Tensor) -> None:
        """Refuse what the network does not read well: large floats, and integers but bytes."""
        if inputs.is_floating_point() and float(inputs.abs().max()) > LARGEST_DEFAULT_INPUT:
            raise InvalidInputError(
                f"inputs reach {float(inputs.abs().max()):.3g}; the default network expects values "
                "around one. Standardise them, or pass a representation that does"
            )
        if not inputs.is_floating_point() and inputs.dtype != torch.uint8:
            raise InvalidInputError(
                f"inputs are {inputs.dtype}, which the default network does not read. Pass floats, "
                "bytes for images, or a representation (for item numbers, a torch.nn.Embedding)"
            )

    def initial(
        self, inputs: Tensor, generator: torch.Generator, device: torch.device | str
    ) -> NeuralRepresentation:
        """A network for inputs of this shape, with weights drawn from `generator`."""
        module = default_network(
            inputs.shape[1:],
            generator,
            feature_dim=self.feature_dim,
            num_directions=self.num_directions,
            hidden=self.hidden,
            dropout=self.dropout,
        )
        return _on(NeuralRepresentation(module), device)

    def fingerprint(self) -> str:
        """Its arguments; the initial weights follow from them, the inputs and the seed."""
        return f"neural({self!r})"


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


def _on(network: NeuralRepresentation, device: torch.device | str) -> NeuralRepresentation:
    network.module.to(device).eval()
    return network


def _saved(state: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in state:
        raise InvalidInputError(f"the saved state of the representation has no tensor {name!r}")
    return state[name]

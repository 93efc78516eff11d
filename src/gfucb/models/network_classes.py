"""Classes Phi of networks: a module with any parameters, and the default network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from gfucb.core.digests import digest_of
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Representation
from gfucb.core.setting_descriptions import describe_module
from gfucb.core.shards import ONE_SHARD, Shards
from gfucb.core.validation.settings import validate_count, validate_number
from gfucb.core.validation.states import validate_state_tensor
from gfucb.models.nn.networks import StandardisedColumns, default_network
from gfucb.models.representations import (
    NeuralRepresentation,
    Normalisation,
    as_network,
)

# Refitting phi when the data has grown by 30% has the same regret as refitting in every round.
REFIT_GROWTH = 1.3
# The default network refuses larger inputs; it expects values around one.
LARGEST_DEFAULT_INPUT = 1e3
# Layers this wide have matrices of 80 GB.
LARGEST_WIDTH = 10**5
MODULE_PREFIX = "module."


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
        self._validate_weights(state, network.module.state_dict())
        try:
            network.module.load_state_dict(saved)
        except RuntimeError as error:
            raise InvalidInputError(
                f"the saved weights do not fit this network: {error}"
            ) from error
        return network

    @staticmethod
    def _validate_weights(state: Mapping[str, Tensor], initial: Mapping[str, Any]) -> None:
        """Refuse other types, which torch would convert, and numbers that are not finite."""
        for key, tensor in initial.items():
            name = f"{MODULE_PREFIX}{key}"
            if isinstance(tensor, Tensor) and name in state:
                # A constant of the module, such as a mask, may hold infinity.
                is_finite = bool(tensor.isfinite().all())
                validate_state_tensor(
                    state, name, tensor.shape, dtype=tensor.dtype, is_finite=is_finite
                )


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

    def initial_weights(self) -> str:
        """A digest of the weights; they count for agents without data, see `gfucb.restore`."""
        return digest_of(dict(self.module.state_dict()))


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

    def __post_init__(self) -> None:
        for name in ("feature_dim", "hidden", "num_directions"):
            if getattr(self, name) is not None:
                validate_count(getattr(self, name), name, at_most=LARGEST_WIDTH)
        if self.dropout is not None:
            validate_number(self.dropout, "dropout", at_least=0.0, at_most=1.0)

    def validate_inputs(self, inputs: Tensor) -> None:
        """Refuse what the network does not read well: large floats, and integers but bytes."""
        if not inputs.is_floating_point() and inputs.dtype != torch.uint8:
            raise InvalidInputError(
                f"inputs are {inputs.dtype}: integers are ids of items, [row, action]. Pass "
                "columns of numbers as floats, images as bytes or floats, or a representation (of "
                "several ids, one with torch.nn.Embedding)"
            )
        if inputs.numel() == 0:
            return
        if inputs.is_floating_point() and float(inputs.abs().max()) > LARGEST_DEFAULT_INPUT:
            raise InvalidInputError(
                f"inputs reach {float(inputs.abs().max()):.3g}; the default network expects values "
                "around one. Standardise them, or pass a representation that does"
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


@dataclass(frozen=True, eq=False)
class StandardisedNetworkClass(DefaultNetworkClass):
    """The default network for columns of any scale: its first layer standardises them.

    Location and spread are those of the inputs that the network is built for, those of all
    `shards`, and stay the same.
    """

    shards: Shards = field(default=ONE_SHARD, repr=False)

    def validate_inputs(self, inputs: Tensor) -> None:
        """Accept all inputs."""

    def initial(
        self, inputs: Tensor, generator: torch.Generator, device: torch.device | str
    ) -> NeuralRepresentation:
        """A network that standardises by these inputs, with weights drawn from `generator`."""
        network = super().initial(inputs, generator, device)
        layers = network.module.children()
        first = StandardisedColumns(self.shards.gather(inputs.flatten(1)))
        return _on(NeuralRepresentation(nn.Sequential(first, *layers)), device)


def _on(network: NeuralRepresentation, device: torch.device | str) -> NeuralRepresentation:
    network.module.to(device).eval()
    return network

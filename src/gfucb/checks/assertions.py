"""What all checks share: the error, and snapshots of values that must not change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gfucb.core.errors import GFUCBError, InvalidInputError
from gfucb.core.random import random_stream
from gfucb.models import MultiheadFunction, MultitaskDataset, Representation

Tensors = Mapping[str, Tensor]


class CheckError(GFUCBError, AssertionError):
    """An implementation does not satisfy its protocol."""


def require(condition: bool, otherwise: str) -> None:
    """Raise a `CheckError` with the message `otherwise` unless the condition holds."""
    if not condition:
        raise CheckError(otherwise)


def require_function(make: Any, what: str) -> None:
    """Require a function that builds what is checked, and not the thing itself."""
    found = type(make).__name__
    require(callable(make), f"pass a function {what}, such as a lambda, got {found}")


def require_methods(agent: Any, names: tuple[str, ...]) -> None:
    """Require the methods and attributes of a protocol."""
    missing = [name for name in names if not hasattr(agent, name)]
    require(not missing, f"the agent has no {' and no '.join(missing)}")


def cloned(tensors: Tensors) -> dict[str, Tensor]:
    """Snapshots of named tensors."""
    return {name: tensor.clone() for name, tensor in tensors.items()}


def is_equal(one: Tensors, other: Tensors) -> bool:
    """Whether two sets of named tensors are equal; NaN equals NaN."""
    return one.keys() == other.keys() and all(
        one[name].shape == other[name].shape
        and torch.equal(one[name].nan_to_num(), other[name].nan_to_num())
        and torch.equal(one[name].isnan(), other[name].isnan())
        for name in one
    )


def learned_state(agent: Any) -> dict[str, Tensor]:
    """A copy of the state of an agent, without the number of decisions that it has made."""
    state = cloned(agent.state())
    return {n: tensor for n, tensor in state.items() if n.rpartition("/")[2] != "num_decisions"}


def require_refusal(agent: Any, call: Callable[[], object], what: str) -> None:
    """Require that `call` raises an `InvalidInputError` and leaves the agent unchanged."""
    before = cloned(agent.state())
    try:
        call()
    except InvalidInputError:
        require(is_equal(before, cloned(agent.state())), f"refusing {what} changed the agent")
    else:
        raise CheckError(f"{what} were accepted")


def require_settings(agent: Any, twin: Any) -> None:
    """Require settings of texts, equal for agents that were built alike."""
    settings = agent.settings()
    are_texts = all(isinstance(x, str) for pair in settings.items() for x in pair)
    require(are_texts, "settings must map names to texts")
    require(settings == twin.settings(), "agents that were built alike have different settings")


def require_numbers(row: Mapping[str, Any]) -> None:
    """Require diagnostics that can be columns of a table."""
    for name, value in row.items():
        is_value = isinstance(name, str) and isinstance(value, int | float | str)
        require(is_value, f"diagnostics must map names to numbers, got {name!r}: {value!r}")


def tensors_of_function(function: MultiheadFunction) -> dict[str, Tensor]:
    """Snapshots of the heads and, for a network or a matrix, of the representation."""
    return {"heads": function.heads.detach().clone()} | _weights(function.representation)


def _weights(representation: Representation) -> dict[str, Tensor]:
    held = getattr(representation, "__dict__", {})
    tensors = {name: value.clone() for name, value in held.items() if isinstance(value, Tensor)}
    for name, value in held.items():
        if isinstance(value, nn.Module):
            tensors |= {f"{name}.{key}": t.clone() for key, t in value.state_dict().items()}
    return tensors


def tensors_of_data(data: MultitaskDataset) -> dict[str, Tensor]:
    """A snapshot of the samples."""
    return cloned({"inputs": data.inputs, "tasks": data.tasks, "targets": data.targets})


def uniform(name: str, index: int, *shape: int) -> Tensor:
    """Reproducible numbers in [0, 1), float64."""
    generator = random_stream(0, "checks", name, index)
    return torch.rand(*shape, generator=generator, dtype=torch.float64)

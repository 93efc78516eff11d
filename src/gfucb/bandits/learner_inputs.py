"""Devices, inputs and features of a learner: which can be used, and how they are stored."""

from __future__ import annotations

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import ChosenFeatures
from gfucb.core.shards import ONE_SHARD, Shards
from gfucb.models import MultiheadFunction, MultitaskDataset


def usable_device(device: torch.device | str) -> torch.device:
    """The device, if tensors can be stored there."""
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0]  # torch lists all its backends
        raise InvalidInputError(f"device {device!r} cannot be used here: {reason}") from error


def empty_data(
    num_tasks: int, inputs: Tensor, device: torch.device, shards: Shards = ONE_SHARD
) -> MultitaskDataset:
    """A dataset without samples, for inputs like these [n, *input]."""
    dtype = inputs.dtype
    if inputs.is_floating_point():
        dtype = torch.promote_types(dtype, torch.float32)  # half would round later inputs
    return MultitaskDataset(num_tasks, inputs.shape[1:], dtype, device=device, shards=shards)


def require_alike(inputs: Tensor, stored: Tensor) -> None:
    """Refuse inputs [n, *input] that differ from stored ones in shape or kind of type."""
    if inputs.shape[1:] != stored.shape[1:]:
        raise InvalidInputError(
            f"this agent has learned from inputs of shape {list(stored.shape[1:])}, "
            f"got inputs of shape {list(inputs.shape[1:])}"
        )
    alike = inputs.dtype == stored.dtype or (
        inputs.is_floating_point() and stored.is_floating_point()
    )
    if not alike:
        are_ids = not any(x.is_floating_point() or x.dtype == torch.uint8 for x in (inputs, stored))
        why = (
            f"pass ids as one type, such as numpy.asarray(ids).astype({str(stored.dtype)[6:]!r})"
            if are_ids
            else "bytes are read as images in [0, 1], so the two do not mean the same"
        )
        raise InvalidInputError(
            f"this agent has learned from {stored.dtype} inputs, got {inputs.dtype}; {why}"
        )


def features_by(center: MultiheadFunction, computed: ChosenFeatures | None) -> Tensor | None:
    """The computed features, if they are those of the center's representation."""
    if computed is None or computed.representation is not center.representation:
        return None
    return computed.values if computed.values.shape[1] == center.heads.shape[1] else None

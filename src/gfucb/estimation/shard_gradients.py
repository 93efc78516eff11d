"""Gradients of a loss that is a sum over the tasks of all shards."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gfucb.core.shards import Shards


def sum_gradients(weights: Sequence[Tensor], shards: Shards) -> None:
    """Replace the gradients of the weights by their sums over shards, in one exchange.

    Weights without a gradient in this shard count as zero: its batch may be empty.
    """
    if shards.count == 1:
        return
    gradients = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
    summed = shards.sum(torch.cat([gradient.flatten() for gradient in gradients]))
    parts = summed.split([gradient.numel() for gradient in gradients])
    for weight, part in zip(weights, parts, strict=True):
        weight.grad = part.view_as(weight).to(weight.dtype)

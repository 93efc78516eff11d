"""Probabilities of all actions in each row, [row, action]."""

from __future__ import annotations

import torch
from torch import Tensor


def uniform_distribution(available: Tensor) -> Tensor:
    """All available actions [row, action] with the same probability: [row, action]."""
    offered = available.to(torch.float64)
    return offered / offered.sum(1, keepdim=True)


def certain_distribution(actions: Tensor, num_actions: int) -> Tensor:
    """Probability 1 of the actions [row]: [row, action]."""
    return torch.nn.functional.one_hot(actions.cpu(), num_actions).to(torch.float64)

"""Discrete actions with a shared context, as candidates."""

from __future__ import annotations

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.memory import memory_for
from gfucb.core.validation.arrays import FLOATS, ArrayLike, to_inputs
from gfucb.core.validation.settings import validate_count

# What to do about too many actions.
FEWER = "pass fewer rows in one call, or actions as vectors of some numbers instead of one-hot"


def with_actions(context: ArrayLike, num_actions: int) -> Tensor:
    """Append a one-hot action to the context, for every row and every action.

    The default agent recognises the one-hot action and gives every action weights of its own.

    >>> with_actions([[0.5], [2.0]], 2)[0]
    tensor([[0.5000, 1.0000, 0.0000],
            [0.5000, 0.0000, 1.0000]], dtype=torch.float64)

    Args:
        context: numbers that describe a row, [row, column]; floats keep their type.
        num_actions: how many actions there are in every row.

    Returns:
        Candidates [row, action, column + action]: the columns of the context, then the action.
    """
    given = to_inputs(context, "context")
    if given.ndim != 2:
        raise InvalidInputError(
            f"context must have the shape [row, column], got {list(given.shape)}; "
            "pass context[None] for a single row"
        )
    given = given if given.dtype in FLOATS else given.to(torch.float64)
    num_actions = validate_count(num_actions, "num_actions")
    with memory_for(f"There are {len(given)} rows with {num_actions} actions each: {FEWER}"):
        actions = torch.eye(num_actions, dtype=given.dtype, device=given.device)
        repeated = given[:, None].expand(-1, num_actions, -1)
        return torch.cat([repeated, actions.expand(len(given), -1, -1)], dim=-1)

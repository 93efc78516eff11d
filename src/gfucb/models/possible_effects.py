"""Features of effects that count as possible before rewards have shown them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gfucb.models.continuous_actions import ContinuousActions

# Linear features of columns have this size, those of constants the size 1; with one task both have
# the size 2. Columns vary from round to round, and arms do not.
EXPLORED_COLUMNS = 0.1
# The size of smooth effects of continuous actions, for many tasks and for one.
EXPLORED_CONTINUOUS, EXPLORED_ALONE = 0.5, 2.0
# Their largest size where candidates have no other columns: a standard deviation of 0.35 ranges.
# That of a value which may be anywhere in the range is 0.29, and that of one at its ends 0.5.
EXPLORED_SETTINGS = 1.4


def possible_effects(
    columns: Tensor | None,
    inputs: Tensor,
    num_tasks: int,
    continuous: ContinuousActions | None,
) -> Tensor:
    """A constant, the columns, and smooth functions of continuous actions, [n, linear feature].

    Their sizes are standard deviations of effects, in units of those of the constants of many
    tasks. What many tasks try together, a single task has to try by itself.

    Args:
        columns: standardised, [n, direction]; None without linear effects of them.
        inputs: [n, column].
        num_tasks: M.
        continuous: columns with smooth effects, if there are any.
    """
    alone = 1 / num_tasks
    parts = [inputs.new_full((len(inputs), 1), 1 + alone, dtype=torch.float64)]
    if columns is not None:
        size = EXPLORED_COLUMNS + (2 - EXPLORED_COLUMNS) * alone
        parts.append(size / math.sqrt(max(1, columns.shape[1])) * columns)
    if continuous is not None:
        size = EXPLORED_CONTINUOUS + (EXPLORED_ALONE - EXPLORED_CONTINUOUS) * alone
        if continuous.are_all(inputs.shape[1]):
            size = min(size, EXPLORED_SETTINGS)
        parts.append(size * continuous.features(inputs))
    return torch.cat(parts, dim=1)

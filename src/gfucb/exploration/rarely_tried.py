"""Which rows of a round try the actions that were tried too rarely."""

from __future__ import annotations

import torch
from torch import Tensor

from gfucb.core.shards import Shards, global_tasks, of_each

# Differences smaller than this, relative to the bonuses, are rounding errors.
SMALLEST_DIFFERENCE = 1e-9


def required_tries(
    is_lacking: Tensor,
    missing: Tensor,
    values: Tensor,
    bonuses: Tensor,
    tasks: Tensor,
    shards: Shards,
) -> Tensor:
    """The candidates that rows must choose, [row, action] booleans: at most one in each row.

    As many rows try an action as tries are missing, and no more. They are those that lose least:
    where the action, with the bonus that makes a row try it, is farthest above the best mean. All
    rows of a round would otherwise try the same action at once.

    Args:
        is_lacking: which candidate is which of the actions that lack tries, [row, action, lacking].
        missing: the number of tries that they lack, [lacking].
        values: means of the candidates, minus infinity if not available, [row, action].
        bonuses: of candidates that are tried because they lack tries, [row, action].
        tasks: of the rows, [row].
        shards: the rows of all shards share the tries.
    """
    gaps = (values.amax(1, keepdim=True) - values - bonuses)[..., None].masked_fill(
        ~is_lacking, torch.inf
    )
    gaps, candidates = gaps.min(1)
    largest = bonuses.amax(1, keepdim=True).clamp_min(torch.finfo(bonuses.dtype).tiny)
    gaps = (gaps / (SMALLEST_DIFFERENCE * largest)).round()
    numbers = global_tasks(shards, tasks)[:, None].to(gaps)
    found = shards.gather(torch.cat([numbers, gaps], dim=1))
    # In the order of tasks, so that equal gaps are resolved in the same way on any shards.
    order = found[:, 0].argsort(stable=True)
    chosen = _assigned(found[order, 1:], missing)[order.argsort()]
    first = int(of_each(shards, len(gaps))[: shards.index].sum())
    own = chosen[first : first + len(gaps)]
    rows = (own >= 0).nonzero().squeeze(1)
    required = torch.zeros_like(values, dtype=torch.bool)
    required[rows, candidates[rows, own[rows]]] = True
    return required


def _assigned(gaps: Tensor, missing: Tensor) -> Tensor:
    """The action that each row tries, -1 for none: [row, lacking], [lacking] -> [row]."""
    chosen = gaps.new_full((len(gaps),), -1, dtype=torch.int64)
    for action in gaps.amin(0).argsort(stable=True).tolist():
        free = gaps[:, action].masked_fill(chosen >= 0, torch.inf)
        rows = free.argsort(stable=True)[: int(missing[action])]
        chosen[rows[free[rows].isfinite()]] = action
    return chosen

"""Features of items with ids: a row of an embedding for each item."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class ItemEmbeddings:
    """A representation of item ids: the embedding of the item, or that of an unknown item.

    Attributes:
        ids: the known ids in ascending order, [item].
        rows: their embeddings, and last that of all unknown items, [item + 1, feature].
    """

    ids: Tensor
    rows: Tensor

    def __call__(self, inputs: Tensor) -> Tensor:
        """Ids [n] or [n, 1] -> [n, feature]."""
        return self.rows[self.positions(inputs)]

    def positions(self, inputs: Tensor) -> Tensor:
        """The position of each id in `ids`; the number of known items if it is unknown."""
        return positions_of(inputs.flatten(), self.ids)


def positions_of(inputs: Tensor, ids: Tensor) -> Tensor:
    """Positions of ids [n] in the sorted known ids [item]; the number of items if unknown."""
    if len(ids) == 0:
        return torch.zeros_like(inputs, dtype=torch.int64)
    found = torch.searchsorted(ids, inputs).clamp_max(len(ids) - 1)
    return torch.where(ids[found] == inputs, found, len(ids))

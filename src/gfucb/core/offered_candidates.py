"""All candidates of a decision, chosen or not."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False, repr=False)
class OfferedCandidates:
    """The candidates of the rows of a decision, for agents that learn from all of them."""

    candidates: Tensor  # [row, action, *input]; of a shared catalogue a view that repeats one row
    available: Tensor  # [row, action], bool

    def taken(self, rows: Tensor) -> OfferedCandidates:
        """Those of some rows [n]; a shared catalogue stays in memory once."""
        if is_repeated(self.candidates):
            candidates = self.candidates[:1].expand(len(rows), *self.candidates.shape[1:])
        else:
            candidates = self.candidates[rows]
        return OfferedCandidates(candidates, self.available[rows])

    @property
    def inputs(self) -> Tensor:
        """All available candidates, those of a shared catalogue once: [item, *input]."""
        if is_repeated(self.candidates):
            return self.candidates[0][self.available.any(0)]
        return self.candidates[self.available]


def is_repeated(rows: Tensor) -> bool:
    """Whether a tensor of at least two rows is a view that repeats one row."""
    return len(rows) > 1 and rows.stride(0) == 0

"""Which columns of a table of candidates describe the context, and which the action."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.shards import ONE_SHARD, Shards, in_any


@dataclass(frozen=True)
class TableLayout:
    """The columns of inputs [n, column]: context columns, and possibly a one-hot action.

    Discrete actions with a shared context are usually passed as the context followed (or
    preceded) by a one-hot action. Every action then gets weights of its own on the context.

    The first inputs may not show all: if they have a single action, or not the first ones. A layout
    is therefore corrected by later samples, see `corrected_by`.

    Attributes:
        num_columns: of the inputs.
        first_action: the first column of the one-hot action. Without one, 0, or `num_columns` if
            the inputs could not show whether there is one.
        num_actions: the length of the one-hot action; 0 if there is none.
    """

    num_columns: int
    first_action: int = 0
    num_actions: int = 0

    @classmethod
    def of_candidates(cls, candidates: Tensor, shards: Shards = ONE_SHARD) -> TableLayout:
        """The layout of candidates [row, action, column], from what differs between actions."""
        num_columns = candidates.shape[2]
        plain = cls(num_columns)
        varies = (candidates != candidates[:, :1]).any(1).any(0)
        varies = _in_any_shard(varies, shards).nonzero().squeeze(1)
        if len(varies) == 0:
            return cls(num_columns, num_columns)
        first, last = int(varies[0]), int(varies[-1])
        for start, stop in ((first, num_columns), (0, last + 1)):
            block = candidates[:, :, start:stop].flatten(0, 1)
            if stop - start > 1 and _is_one_hot(block, shards):
                return cls(num_columns, start, stop - start)
        return plain

    @classmethod
    def of_samples(cls, inputs: Tensor, shards: Shards = ONE_SHARD) -> TableLayout:
        """The layout of logged inputs [n, column]: the shortest one-hot block at the end."""
        num_columns, has_one_action = inputs.shape[1], False
        for start in range(num_columns - 2, -1, -1):
            block = inputs[:, start:]
            if not _is_binary(block, shards):
                break
            if _is_one_hot(block, shards):
                if int(_in_any_shard(block.any(0), shards).sum()) > 1:
                    return cls(num_columns, start, num_columns - start)
                has_one_action = True
        return cls(num_columns, num_columns if has_one_action else 0)

    def corrected_by(self, inputs: Tensor, shards: Shards = ONE_SHARD) -> TableLayout:
        """The layout after more inputs [n, column], which may show actions not seen before."""
        if not self.num_actions:
            return self if self.first_action == 0 else TableLayout.of_samples(inputs, shards)
        stop = self.first_action + self.num_actions
        if _is_one_hot(inputs[:, self.first_action : stop], shards):
            return self
        wider = [(start, stop) for start in range(self.first_action - 1, -1, -1)]
        wider += [(self.first_action, end) for end in range(stop + 1, self.num_columns + 1)]
        for start, end in wider:
            if _is_one_hot(inputs[:, start:end], shards):
                return TableLayout(self.num_columns, start, end - start)
        return self

    @property
    def num_context(self) -> int:
        """The number of columns that do not belong to the one-hot action."""
        return self.num_columns - self.num_actions

    def split(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """Context [n, context column] and one-hot action [n, action] of inputs [n, column]."""
        if not self.num_actions:
            return inputs, None
        stop = self.first_action + self.num_actions
        context = torch.cat([inputs[:, : self.first_action], inputs[:, stop:]], dim=1)
        return context, inputs[:, self.first_action : stop]


def _is_one_hot(block: Tensor, shards: Shards) -> bool:
    """Whether each line of the block [n, column] is one 1 and otherwise 0, in all shards."""
    if not _is_binary(block, shards):
        return False
    return not in_any(shards, not bool((block.sum(1) == 1).all()))


def _is_binary(block: Tensor, shards: Shards) -> bool:
    return not in_any(shards, not bool(((block == 0) | (block == 1)).all()))


def _in_any_shard(flags: Tensor, shards: Shards) -> Tensor:
    """Which of the flags [n] are set in any shard."""
    return flags if shards.count == 1 else shards.sum(flags.to(torch.int64)) > 0

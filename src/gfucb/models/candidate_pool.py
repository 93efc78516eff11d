"""A bounded sample of all candidates that were offered, chosen or not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.hashed_draws import hashed_words, mixed

# The most memory of the inputs of a pool, unless they are fewer than `FEWEST_INPUTS`.
MOST_BYTES = 2**25
FEWEST_INPUTS = 256
# New inputs wait until they are this share of the sample: to merge them takes a copy of all.
LARGEST_WAITING_SHARE = 1 / 4


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """A uniform sample of the distinct inputs that were offered, of bounded size, as a value.

    It has at most `capacity` inputs, and at most 32 MiB of large ones.

    Every input has a priority, a keyed hash of its bytes, and the pool holds those of the lowest
    priorities. This is reservoir sampling whose random numbers are the hashes (bottom-k sampling,
    Cohen and Kaplan 2007): every distinct input has the same chance to be in the pool, however
    often it was offered. The pool does not depend on the order in which inputs come, and inputs
    that come again change nothing.

    Attributes:
        capacity: the most inputs.
        key: of the hash.
        sample: inputs and their priorities, ascending; None before the first input.
        waiting: inputs that were offered since, [n, *input] each.
    """

    capacity: int
    key: int
    sample: tuple[Tensor, Tensor] | None = None
    waiting: tuple[Tensor, ...] = ()

    def __len__(self) -> int:
        return 0 if self.inputs is None else len(self.inputs)

    @property
    def is_empty(self) -> bool:
        """Whether there was no input; unlike the length, this merges nothing."""
        return self.sample is None and not self.waiting

    @property
    def inputs(self) -> Tensor | None:
        """[item, *input], by priority; None before the first input."""
        return None if self._merged is None else self._merged[0]

    @property
    def priorities(self) -> Tensor | None:
        """[item], ascending; None before the first input."""
        return None if self._merged is None else self._merged[1]

    def with_inputs(self, inputs: Tensor) -> CandidatePool:
        """The pool after inputs [n, *input] of the type and shape of those before."""
        after = replace(self, waiting=(*self.waiting, inputs))
        num_waiting = sum(len(offered) for offered in after.waiting)
        if self.sample is not None and num_waiting <= LARGEST_WAITING_SHARE * len(self.sample[0]):
            return after
        return replace(self, sample=after._merged, waiting=())

    def emptied(self) -> CandidatePool:
        """The pool before any input."""
        return replace(self, sample=None, waiting=())

    @cached_property
    def _merged(self) -> tuple[Tensor, Tensor] | None:
        """The sample after the inputs that wait."""
        if not self.waiting:
            return self.sample
        inputs = torch.cat(self.waiting)
        limit = self._limit(inputs)
        priorities = self.priorities_of(inputs)
        if self.sample is not None:
            stored, known = self.sample
            if len(stored) == limit:
                is_lower = priorities < known[-1]
                inputs, priorities = inputs[is_lower], priorities[is_lower]
            is_new = ~torch.isin(priorities, known)
            inputs, priorities = inputs[is_new], priorities[is_new]
            if len(inputs) == 0:
                return self.sample
            inputs, priorities = torch.cat([stored, inputs]), torch.cat([known, priorities])
        ordered, order = priorities.sort(stable=True)
        is_first = torch.ones_like(ordered, dtype=torch.bool)
        is_first[1:] = ordered[1:] != ordered[:-1]
        kept = order[is_first][:limit]
        return inputs[kept], priorities[kept]

    def _limit(self, inputs: Tensor) -> int:
        """The most inputs like these [n, *input] that the pool holds."""
        size = max(1, inputs[:1].numel()) * inputs.element_size()
        return min(self.capacity, max(FEWEST_INPUTS, MOST_BYTES // size))

    def restored(self, inputs: Tensor) -> CandidatePool:
        """The pool that holds these inputs [item, *input]; those of no pool are refused."""
        priorities = self.priorities_of(inputs)
        limit = self._limit(inputs)
        if not 1 <= len(inputs) <= limit:
            raise InvalidInputError(
                f"the saved pool has {len(inputs)} inputs; this agent's has 1 to {limit}"
            )
        if not bool((priorities[1:] > priorities[:-1]).all()):
            raise InvalidInputError(
                "the inputs of the saved pool are not in the order of their hashes. "
                "The state was changed"
            )
        return replace(self, sample=(inputs, priorities), waiting=())

    def priorities_of(self, inputs: Tensor) -> Tensor:
        """The hashes of the bytes of inputs [n, *input], as int64: [n]."""
        numbers = inputs.unsqueeze(-1).flatten(1).contiguous()
        octets = numbers.view(torch.uint8)
        padding = -octets.shape[1] % 8
        words = torch.nn.functional.pad(octets, (0, padding)).view(torch.int64)
        key = torch.tensor(self.key, device=inputs.device)
        # Every word is hashed before the sum. A sum of products would lose the highest bytes.
        return mixed(mixed(words + hashed_words(key, words.shape[1])).sum(1))

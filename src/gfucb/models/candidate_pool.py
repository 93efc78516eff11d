"""A bounded sample of all candidates that were offered, chosen or not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.hashed_draws import hashed_words, mixed


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """A uniform sample of at most `capacity` of the distinct inputs that were offered, as a value.

    Every input has a priority, a keyed hash of its bytes, and the pool holds those of the lowest
    priorities. This is reservoir sampling whose random numbers are the hashes (bottom-k sampling,
    Cohen and Kaplan 2007): every distinct input has the same chance to be in the pool, however
    often it was offered. The pool does not depend on the order in which inputs come, and inputs
    that come again change nothing.

    Attributes:
        capacity: the most inputs.
        key: of the hash.
        inputs: [item, *input], by priority; None before the first input.
        priorities: [item], ascending; None before the first input.
    """

    capacity: int
    key: int
    inputs: Tensor | None = None
    priorities: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.inputs is None else len(self.inputs)

    def with_inputs(self, inputs: Tensor) -> CandidatePool:
        """The pool after inputs [n, *input] of the type and shape of those before."""
        priorities = self.priorities_of(inputs)
        if self.inputs is not None and self.priorities is not None:
            if len(self) == self.capacity:
                is_lower = priorities < self.priorities[-1]
                inputs, priorities = inputs[is_lower], priorities[is_lower]
            is_new = ~torch.isin(priorities, self.priorities)
            inputs, priorities = inputs[is_new], priorities[is_new]
            if len(inputs) == 0:
                return self
            inputs = torch.cat([self.inputs, inputs])
            priorities = torch.cat([self.priorities, priorities])
        ordered, order = priorities.sort(stable=True)
        is_first = torch.ones_like(ordered, dtype=torch.bool)
        is_first[1:] = ordered[1:] != ordered[:-1]
        kept = order[is_first][: self.capacity]
        return replace(self, inputs=inputs[kept], priorities=priorities[kept])

    def restored(self, inputs: Tensor) -> CandidatePool:
        """The pool that holds these inputs [item, *input]; those of no pool are refused."""
        priorities = self.priorities_of(inputs)
        if not 1 <= len(inputs) <= self.capacity:
            raise InvalidInputError(
                f"the saved pool has {len(inputs)} inputs; this agent's has 1 to {self.capacity}"
            )
        if not bool((priorities[1:] > priorities[:-1]).all()):
            raise InvalidInputError(
                "the inputs of the saved pool are not in the order of their hashes. "
                "The state was changed"
            )
        return replace(self, inputs=inputs, priorities=priorities)

    def priorities_of(self, inputs: Tensor) -> Tensor:
        """The hashes of the bytes of inputs [n, *input], as int64: [n]."""
        numbers = inputs.unsqueeze(-1).flatten(1).contiguous()
        octets = numbers.view(torch.uint8)
        padding = -octets.shape[1] % 8
        words = torch.nn.functional.pad(octets, (0, padding)).view(torch.int64)
        key = torch.tensor(self.key, device=inputs.device)
        # Every word is hashed before the sum. A sum of products would lose the highest bytes.
        return mixed(mixed(words + hashed_words(key, words.shape[1])).sum(1))

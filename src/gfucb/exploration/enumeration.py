"""Every tuple of actions, one by one: slow, and right by inspection."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch

from gfucb.core.errors import TooManyTuplesError
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import ActionSets, Selection
from gfucb.models import ConfidenceSet

LARGEST_ENUMERATION = 10_000


@dataclass(frozen=True)
class Enumerated:
    """Ask `solver` about every tuple of actions alone and keep the best answer.

    This is what section 6.2 of the paper does: K^M problems, 10^10 for ten tasks with ten
    actions. It is here as an oracle for tests, and refuses more than 10^4.
    """

    solver: ActionSelector

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the best choice over all tuples of available actions."""
        offered = [row.nonzero().squeeze(1).tolist() for row in action_sets.available]
        count = math.prod(len(actions) for actions in offered)
        if count > LARGEST_ENUMERATION:
            raise TooManyTuplesError(
                f"this action_sets has {count} action tuples and enumeration accepts at most "
                f"{LARGEST_ENUMERATION}; use a joint solver, which does not list them"
            )
        choices = (
            self.solver(confidence_set, action_sets.restricted_to(torch.tensor(actions)))
            for actions in itertools.product(*offered)
        )
        return max(choices, key=lambda choice: float(choice.values.sum()))

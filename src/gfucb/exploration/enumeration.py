"""Exhaustive search over action tuples, as a reference for tests."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch

from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import TooManyTuplesError
from gfucb.core.protocols import ActionSelector, WeightStatisticsKind
from gfucb.core.records import Selection
from gfucb.core.validation.components import validate_action_selector
from gfucb.models import ConfidenceSet

LARGEST_ENUMERATION = 10_000


@dataclass(frozen=True)
class Enumerated(ActionSelector):
    """Run `selector` on every tuple of actions separately and return the best selection.

    Section 6.2 of the paper does this: K^M problems, 10^10 for ten tasks with ten actions. It is
    a reference for tests, and refuses more than 10^4 tuples. Its requirements and guarantees are
    those of `selector`.
    """

    selector: ActionSelector

    def __post_init__(self) -> None:
        validate_action_selector(self.selector, "selector")

    @property
    def joint(self) -> bool:
        """As `selector`."""
        return self.selector.joint

    @property
    def weight_statistics(self) -> WeightStatisticsKind | None:
        """As `selector`."""
        return self.selector.weight_statistics

    @property
    def reward_perturbation(self) -> float:
        """As `selector`."""
        return self.selector.reward_perturbation

    @property
    def returns_member(self) -> bool:
        """As `selector`."""
        return self.selector.returns_member

    @property
    def is_optimistic(self) -> bool:
        """As `selector`."""
        return self.selector.is_optimistic

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the selection with the largest sum of values over all available tuples."""
        available = [row.nonzero().squeeze(1).tolist() for row in action_sets.available]
        count = math.prod(len(actions) for actions in available)
        if count > LARGEST_ENUMERATION:
            raise TooManyTuplesError(
                f"these action sets have {count} action tuples and enumeration accepts at most "
                f"{LARGEST_ENUMERATION}; use a joint selector, which does not list them"
            )
        selections = (
            self.selector(confidence_set, action_sets.restricted_to(torch.tensor(actions)))
            for actions in itertools.product(*available)
        )
        return max(selections, key=lambda selection: float(selection.values.sum()))

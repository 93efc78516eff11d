"""Exact optimism over a finite class of representations."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import ActionSets, Selection
from gfucb.exploration.last_layer import optimistic_heads
from gfucb.models import ConfidenceSet


@dataclass(frozen=True)
class ExactFinite:
    """Line 4 of Algorithm 1, solved: the best heads and actions on every member, keep the best.

    On each member phi the confidence set leaves an ellipsoid of heads, jointly over tasks and
    with one shared radius; the radius is what remains after the distance between phi's best
    heads and the center. Exact; cost: one pass over the data for each member.
    """

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the most optimistic of all members, with its actions."""
        if confidence_set.members is None:
            raise InvalidInputError(
                "exact optimism needs a class whose representations can be listed; "
                "give the confidence set its members, or use another solver"
            )
        choices = []
        for representation in confidence_set.members:
            ellipsoid = confidence_set.ellipsoid(representation)
            if ellipsoid is not None:
                template = replace(confidence_set.center, representation=representation)
                choices.append(
                    optimistic_heads(
                        template, ellipsoid, action_sets, confidence_set.squared_radius
                    )
                )
        best = max(choices, key=lambda choice: float(choice.values.sum()))
        # What was predicted is for the fit to say, not for the member that bonuses most.
        return replace(best, is_exact=all(choice.is_exact for choice in choices), prediction=None)

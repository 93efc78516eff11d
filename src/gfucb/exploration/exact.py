"""Exact optimism over a finite class of representations."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Selection
from gfucb.exploration.last_layer import optimistic_heads
from gfucb.models import ConfidenceSet


@dataclass(frozen=True)
class ExactFinite(ActionSelector):
    """The exact solution of line 4 of Algorithm 1 for a finite class.

    For each member phi the confidence set is an ellipsoid of heads of all tasks with one shared
    radius: what remains of the squared radius after the distance between phi's best heads and
    the center. The most optimistic heads and actions on each member have a closed form
    (`LastLayer`); the best member is returned. Cost: one pass over the data for each member.
    """

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the most optimistic function of the set, with its actions."""
        if confidence_set.members is None:
            raise InvalidInputError(
                "exact optimism needs a class whose representations can be listed; "
                "set the members of the confidence set, or use another action selector"
            )
        selections = []
        for representation in confidence_set.members:
            ellipsoid = confidence_set.ellipsoid(representation)
            if ellipsoid is not None:
                template = replace(confidence_set.center, representation=representation)
                selections.append(
                    optimistic_heads(
                        template, ellipsoid, action_sets, confidence_set.squared_radius
                    )
                )
        if not selections:
            raise InvalidInputError(
                "the confidence set contains no member of its class, not even its own center; "
                "the center must be a fit with a representation of the class"
            )
        best = max(selections, key=lambda selection: float(selection.values.sum()))
        # The prediction is that of the fit, not that of the most optimistic member.
        is_exact = all(selection.is_exact for selection in selections)
        return replace(best, is_exact=is_exact, prediction=None)

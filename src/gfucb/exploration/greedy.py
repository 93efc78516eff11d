"""No optimism: the center is believed."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gfucb.core.records import ActionSets, Selection
from gfucb.models import ConfidenceSet


@dataclass(frozen=True)
class Greedy:
    """The actions the center likes best: what every solver does at radius zero."""

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the center and its best actions."""
        center = confidence_set.center
        values = action_sets.values_of(center)
        actions = action_sets.best_actions(values)
        return Selection(
            function=center,
            actions=actions,
            values=values[torch.arange(len(actions)), actions],
            squared_distance=0.0,
            squared_radius=confidence_set.squared_radius,
        )

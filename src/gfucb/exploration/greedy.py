"""No exploration: the best actions of the least-squares fit."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.linalg import first_best
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Selection
from gfucb.models import ConfidenceSet


@dataclass(frozen=True)
class Greedy(ActionSelector):
    """argmax_a center(x_a) in each row.

    Every optimistic selector makes this choice at radius zero. Cost: one pass of the
    representation over the candidates.
    """

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

    def select_batched(
        self, means: Tensor, squared_widths: Tensor, squared_radii: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Actions and zero bonuses [replica, row], see `BatchedActionSelector`."""
        actions = first_best(means)
        return actions, torch.zeros_like(means[..., 0])

"""Inverse gap weighting around the fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Selection, require_finite_values
from gfucb.core.validation.settings import validate_not_negative, validate_seed
from gfucb.exploration.draws import generator_for
from gfucb.models import ConfidenceSet


@dataclass(frozen=True)
class InverseGap(ActionSelector):
    """SquareCB (Foster and Rakhlin 2020): inverse gap weighting around the fit.

        P(a) = 1 / (K + gamma_t gap_a)   for all actions but the best, which has the rest,
        gamma_t = scale * sqrt(K t),

    where K is the number of available actions, gap_a the predicted gap to the best action
    divided by the width of the value range, and t - 1 the number of samples of the task. Foster
    and Rakhlin set gamma = sqrt(K T / regression regret) for a known horizon T. The schedule
    sqrt(t) is for an unknown horizon, and `scale` replaces the regression regret. Each
    row is drawn independently. The selector uses the fit only: no widths and no radius. Cost:
    that of `Greedy`. Guarantee (theirs): regret O(sqrt(K T * regression regret)).

    Args:
        scale: larger values are greedier.
        seed: of the draws, which stay the same until the next reward.
    """

    scale: float = 10.0
    seed: int = 0
    is_optimistic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        validate_not_negative(self.scale, "scale")
        validate_seed(self.seed)

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the center and a random action in each row."""
        values = action_sets.values_of(confidence_set.center)
        require_finite_values(values)
        probabilities = self.probabilities(confidence_set, action_sets, values).cpu()
        generator = generator_for(self.seed, "squarecb", confidence_set, action_sets)
        actions = torch.multinomial(probabilities, 1, generator=generator).to(values.device)
        return Selection(
            function=confidence_set.center,
            actions=actions.squeeze(1),
            values=values.gather(1, actions).squeeze(1),
            squared_distance=0.0,
            squared_radius=confidence_set.squared_radius,
        )

    @property
    def monte_carlo_samples(self) -> None:
        """Its probabilities are exact."""
        return None

    def distribution(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Tensor:
        """Probabilities of all actions for `Randomised`: [row, action]."""
        values = action_sets.values_of(confidence_set.center)
        require_finite_values(values)
        return self.probabilities(confidence_set, action_sets, values)

    def probabilities(
        self, confidence_set: ConfidenceSet, action_sets: ActionSets, values: Tensor
    ) -> Tensor:
        """Probabilities of all actions, given predicted values: both [row, action]."""
        low, high = confidence_set.center.value_range or (0.0, 1.0)
        best = action_sets.best_actions(values)[:, None]
        gaps = (values.gather(1, best) - values) / (high - low)
        num_available = action_sets.available.sum(1, keepdim=True)
        samples = confidence_set.data.samples_per_task[action_sets.tasks][:, None]
        gamma = self.scale * (num_available * (samples + 1)).sqrt()
        weights = 1 / (num_available + gamma * gaps)
        weights = weights.masked_fill(~action_sets.available, 0.0).scatter(1, best, 0.0)
        return weights.scatter(1, best, 1 - weights.sum(1, keepdim=True))

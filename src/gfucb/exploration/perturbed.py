"""Exploration by perturbed rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import ActionSets, Selection
from gfucb.exploration.greedy import Greedy
from gfucb.models import ConfidenceSet


@dataclass(frozen=True)
class PerturbedRewards(ActionSelector):
    """NPR, neural bandits with perturbed rewards (Jia, Zhang, Zhou, Gu and Wang 2022).

    The agent fits rewards + N(0, reward_perturbation^2) and acts greedily on the fit. Jia et al.
    retrain from scratch in every round, with new perturbations of all rewards. Here the agent
    draws new perturbations of all rewards when it refits, and perturbs each reward between two
    fits once, when it arrives. The agent adds the perturbations; this selector only requests
    them, and otherwise equals `Greedy` in choice and cost.

    Args:
        reward_perturbation: standard deviation of the noise added to rewards.
    """

    reward_perturbation: float = 0.1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.reward_perturbation) and self.reward_perturbation >= 0):
            raise InvalidInputError(
                "reward_perturbation must be finite and not negative, "
                f"got {self.reward_perturbation}"
            )

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the fit to perturbed rewards and its best actions."""
        return Greedy()(confidence_set, action_sets)

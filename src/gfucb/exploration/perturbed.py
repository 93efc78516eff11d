"""Exploration by perturbed rewards."""

from __future__ import annotations

from dataclasses import dataclass

from gfucb.core.action_sets import ActionSets
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Selection
from gfucb.core.validation.settings import validate_not_negative
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
        validate_not_negative(self.reward_perturbation, "reward_perturbation")

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the fit to perturbed rewards and its best actions."""
        return Greedy()(confidence_set, action_sets)

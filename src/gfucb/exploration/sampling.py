"""Exploration at random: Thompson sampling of heads, inverse gap weighting, perturbed rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.records import ActionSets, Selection, require_finite_values
from gfucb.exploration.greedy import Greedy
from gfucb.exploration.last_layer import prediction_of
from gfucb.models import ConfidenceSet


def generator_of(
    seed: int, name: str, confidence_set: ConfidenceSet, action_sets: ActionSets
) -> torch.Generator:
    """Lots for the tasks of a action_sets, the same until the next reward, whoever asks and how often."""
    return random_stream(seed, name, len(confidence_set.data), *action_sets.tasks.tolist())


@dataclass(frozen=True)
class HeadSampling:
    """Neural-Linear Thompson sampling (Riquelme, Tucker and Snoek 2018).

        w_i  ~  N( center_i, squared_radius * V_i^-1 ),   V_i = Phi_i^T Phi_i + ridge I,

    one sample of all heads until the next reward, believed. The squared radius stands for the
    variance of the noise, which they learn too. Blind, like `LastLayer`, to what is not known of
    the representation. A sample may lie outside the set: the distance says how far. Cost: M
    solves of size k, whatever the number of samples.

    Args:
        seed: of the samples.
    """

    seed: int = 0
    joint: ClassVar[bool] = False

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Choose the best actions for heads that are drawn at random."""
        center, ellipsoid = confidence_set.center, confidence_set.ellipsoid()
        if ellipsoid is None:
            raise InvalidInputError("the confidence set is empty around its own center")
        generator = random_stream(self.seed, "neural-linear-ts", len(confidence_set.data))
        normal = torch.randn(center.heads.shape, generator=generator, dtype=torch.float64)
        # V = L L^T, so L^-T z has the covariance V^-1.
        steps = torch.linalg.solve_triangular(
            ellipsoid.cholesky.transpose(1, 2),
            normal.to(center.heads.device)[..., None],
            upper=True,
        ).squeeze(-1)
        function = center.with_heads(ellipsoid.centers + ellipsoid.squared_radius**0.5 * steps)
        features = action_sets.features(center.representation)
        values = function.values_of_features(features, action_sets.tasks[:, None])
        actions = action_sets.best_actions(values)
        return Selection(
            function=function,
            actions=actions,
            values=values.gather(1, actions[:, None]).squeeze(1),
            squared_distance=ellipsoid.squared_distance(function.heads),
            squared_radius=confidence_set.squared_radius,
            prediction=prediction_of(center, ellipsoid, features, actions, action_sets),
        )


@dataclass(frozen=True)
class InverseGap:
    """SquareCB (Foster and Rakhlin 2020): inverse gap weighting around the fit.

        P(a) = 1 / (K + gamma_t gap_a)   for all but the best action, which has the rest,
        gamma_t = scale * sqrt(K t),

    with K the actions on offer, gap_a how far below the best the fit puts a, in units of the
    value range, and t - 1 the samples of the task. They set gamma = sqrt(K T / regret of the
    regression) for a known T; sqrt(t) is the schedule for an unknown one, and scale stands for
    the regression. Each entry alone. It looks at the fit only: no width, no radius. Cost: that
    of `Greedy`. Guarantee (theirs): regret O(sqrt(K T * regret of the regression)).

    Args:
        scale: larger is greedier.
        seed: of the draws, which are the same until the next reward.
    """

    scale: float = 10.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale >= 0):
            raise InvalidInputError(f"scale must be finite and not negative, got {self.scale}")

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Draw an action in each entry; bonuses are the estimates."""
        values = action_sets.values_of(confidence_set.center)
        require_finite_values(values)
        chances = self.probabilities(confidence_set, action_sets, values).cpu()
        generator = generator_of(self.seed, "squarecb", confidence_set, action_sets)
        actions = torch.multinomial(chances, 1, generator=generator).to(values.device)
        return Selection(
            function=confidence_set.center,
            actions=actions.squeeze(1),
            values=values.gather(1, actions).squeeze(1),
            squared_distance=0.0,
            squared_radius=confidence_set.squared_radius,
        )

    def probabilities(
        self, confidence_set: ConfidenceSet, action_sets: ActionSets, values: Tensor
    ) -> Tensor:
        """The chances of all actions, given what the fit thinks of them: both [row, action]."""
        low, high = confidence_set.center.value_range or (0.0, 1.0)
        best = action_sets.best_actions(values)[:, None]
        gaps = (values.gather(1, best) - values) / (high - low)
        offered = action_sets.available.sum(1, keepdim=True)
        samples = confidence_set.data.samples_per_task[action_sets.tasks][:, None]
        gamma = self.scale * (offered * (samples + 1)).sqrt()
        chances = (1 / (offered + gamma * gaps)).masked_fill(~action_sets.available, 0.0)
        chances = chances.scatter(1, best, 0.0)
        return chances.scatter(1, best, 1 - chances.sum(1, keepdim=True))


@dataclass(frozen=True)
class Perturbed:
    """NPR, neural bandits with perturbed rewards (Jia, Zhang, Zhou, Gu and Wang 2022).

    The fit is told rewards + N(0, perturbation^2) and is believed. They train anew, with fresh
    perturbations of all rewards, in every round; here the fit is refitted when it always is,
    with fresh perturbations, and rewards in between are perturbed once, as they come. It is the
    learner that perturbs: this solver asks for it and is `Greedy` otherwise, at its cost.

    Args:
        perturbation: standard deviation of what is added to rewards.
    """

    perturbation: float = 0.1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.perturbation) and self.perturbation >= 0):
            raise InvalidInputError(
                f"perturbation must be finite and not negative, got {self.perturbation}"
            )

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the perturbed fit and its best actions."""
        return Greedy()(confidence_set, action_sets)

"""Thompson sampling of the heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from gfucb.core.action_sets import ActionSets
from gfucb.core.protocols import ActionSelector
from gfucb.core.random import random_stream
from gfucb.core.records import Selection
from gfucb.core.validation.settings import validate_seed
from gfucb.exploration.last_layer import center_ellipsoid, prediction_of
from gfucb.models import ConfidenceSet


@dataclass(frozen=True)
class HeadSampling(ActionSelector):
    """Neural-Linear Thompson sampling (Riquelme, Tucker and Snoek 2018).

        w_i  ~  N( center_i, squared_radius * V_i^-1 ),   V_i = Phi_i^T Phi_i + ridge I

    The selector acts greedily on the sampled heads, and draws a new sample after each reward.
    The squared radius replaces the noise variance, which Riquelme et al. estimate as
    well. Like `LastLayer`, it ignores the uncertainty of the representation. A sample can lie
    outside the confidence set; `Selection.squared_distance` is its distance. Cost: M solves of
    size k, independent of the number of samples.

    Args:
        seed: of the samples.
    """

    seed: int = 0
    joint: ClassVar[bool] = False
    returns_member: ClassVar[bool] = False
    is_optimistic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        validate_seed(self.seed)

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the sampled function and its best actions."""
        center, ellipsoid = confidence_set.center, center_ellipsoid(confidence_set)
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

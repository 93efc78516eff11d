"""The plan of one stage: its confidence set, and the values derived from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.features import features_of
from gfucb.core.protocols import Representation
from gfucb.episodic.cached_features import FeatureCache, MemberFeatures
from gfucb.episodic.distinct_rows import DistinctRows
from gfucb.models import ConfidenceSet, HeadEllipsoid, MultiheadFunction

Ellipsoids = Sequence[tuple[Representation, HeadEllipsoid]]


@dataclass(frozen=True, eq=False)
class StagePlan:
    """What an agent uses in one stage until the next plan.

    Attributes:
        confidence_set: F_h around the fit; its center has no value range.
        ellipsoids: the feasible heads of every representation in the set.
        value_range: bounds of the values of this stage, or None.
        policy_functions: the functions that actions maximise, where a backup selects some: the
            members of `joint`, the perturbed fits of `randomised`.
        member_features: features of all members of a class with several; None otherwise.
        feature_cache: features of stored inputs.
    """

    confidence_set: ConfidenceSet
    ellipsoids: Ellipsoids
    value_range: tuple[float, float] | None
    policy_functions: tuple[MultiheadFunction, ...] = ()
    member_features: MemberFeatures | None = None
    feature_cache: FeatureCache = field(default_factory=FeatureCache)

    @property
    def center(self) -> MultiheadFunction:
        """The fit of line 4."""
        return self.confidence_set.center

    def cache_features(self, inputs: Tensor) -> None:
        """Store the features of inputs [n, *input] that the next plan may use again."""
        if self.member_features is None:  # which has a cache of its own
            self.feature_cache.store("next observations", self.center.representation, inputs)

    def estimates(self, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Values of the fit, not clipped: [n, *input], [n] -> [n]."""
        return self._values(self.center, inputs, tasks)

    def upper_values(self, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Sup over the set of f_task(x), for each input alone, not clipped: -> [n].

        For one representation this is <w, phi> + sqrt(squared_radius phi^T V^-1 phi).
        """
        centers, inverses, radii = self._stacked
        if self.member_features is None:
            features = self.feature_cache(self.ellipsoids[0][0], inputs)[None]
        else:
            features = self.member_features(inputs)[self._members]
        best = torch.empty(len(inputs), dtype=torch.float64)
        for task in tasks.unique().tolist():
            rows = (tasks == task).nonzero().squeeze(1)
            phi = features[:, rows]
            values = (phi @ centers[:, task, :, None]).squeeze(-1)
            widths = (phi @ inverses[:, task].transpose(1, 2)).norm(dim=-1)
            best[rows] = (values + radii[:, None] * widths).amax(0)
        return self.center.offset + best

    def policy_values(self, inputs: Tensor, tasks: Tensor) -> Tensor:
        """The largest value of the `policy_functions`, not clipped: [n, *input], [n] -> [n]."""
        values = [self._values(function, inputs, tasks) for function in self.policy_functions]
        return torch.stack(values).amax(0)

    def squared_widths(self, features: Tensor, tasks: Tensor) -> Tensor:
        """phi^T V^-1 phi on the fitted representation: [n, feature], [n] -> [n]."""
        factors = self.center_inverse_factor[tasks]
        return (factors @ features.unsqueeze(-1)).squeeze(-1).square().sum(-1)

    def squared_width_of(self, inputs: DistinctRows) -> Callable[[int, int], float]:
        """phi^T V^-1 phi as a function of (task, row of `inputs`)."""

        def squared_width(task: int, row: int) -> float:
            features = features_of(self.center.representation, inputs.row(row)[None])
            return float(self.squared_widths(features, torch.tensor([task])))

        return squared_width

    def clip(self, values: Tensor) -> Tensor:
        """Values clipped to the range of the stage."""
        return values if self.value_range is None else values.clamp(*self.value_range)

    def _values(self, function: MultiheadFunction, inputs: Tensor, tasks: Tensor) -> Tensor:
        features = self.feature_cache(function.representation, inputs)
        return function.values_of_features(features, tasks)

    @cached_property
    def _stacked(self) -> tuple[Tensor, Tensor, Tensor]:
        """Centers, inverse factors and radii, [member, task, ...] and [member]."""
        found = [ellipsoid for _, ellipsoid in self.ellipsoids]
        centers = torch.stack([ellipsoid.centers for ellipsoid in found])
        factors = _inverse_factor(torch.stack([ellipsoid.cholesky for ellipsoid in found]))
        squares = torch.tensor([e.squared_radius for e in found], dtype=torch.float64)
        return centers, factors, squares.sqrt()

    @cached_property
    def _members(self) -> list[int]:
        assert self.member_features is not None
        return [self.member_features.index(member) for member, _ in self.ellipsoids]

    @cached_property
    def center_inverse_factor(self) -> Tensor:
        """L^-1 on the fitted representation, [task, feature, feature]."""
        statistics = self.confidence_set.center_statistics
        assert statistics is not None
        return _inverse_factor(statistics.cholesky(self.confidence_set.ridge))


def _inverse_factor(cholesky: Tensor) -> Tensor:
    """L^-1 of lower factors [task, feature, feature]: |L^-1 phi|^2 = phi^T V^-1 phi."""
    eye = torch.eye(cholesky.shape[-1], dtype=cholesky.dtype).expand_as(cholesky)
    return torch.linalg.solve_triangular(cholesky, eye, upper=False)


def greedy(
    action_sets: ActionSets, values_of: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """The best actions under `values_of`(inputs, tasks), and their values: both [row]."""
    rows, actions = action_sets.available.shape
    tasks = action_sets.tasks.repeat_interleave(actions)
    values = values_of(action_sets.candidates.flatten(0, 1), tasks).unflatten(0, (rows, actions))
    chosen = action_sets.best_actions(values)
    return chosen, values.gather(1, chosen[:, None]).squeeze(1)

"""The confidence set of a table or a catalogue: heads that the posterior allows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Representation
from gfucb.core.records import Prediction
from gfucb.core.shards import ONE_SHARD, Shards, totals
from gfucb.models.confidence_set import ConfidenceSet
from gfucb.models.exploration_rates import exploration_rates
from gfucb.models.head_posterior import HeadPosterior
from gfucb.models.multihead import MultiheadFunction
from gfucb.models.task_covariances import identity_matrices


@dataclass(frozen=True, eq=False)
class PosteriorEllipsoid:
    """{ W : sum_i (w_i - heads_i)^T A_i^-1 (w_i - heads_i) <= squared_radius }.

    A_i is the posterior covariance of the head of task i. It has the members of `HeadEllipsoid`.
    """

    posterior: HeadPosterior
    squared_radius: float
    growing_counts: Tensor | None = None
    limits: tuple[float, float] | None = None
    norm_bound: None = None
    shards: Shards = ONE_SHARD

    @property
    def centers(self) -> Tensor:
        """Posterior means, [task, feature]."""
        return self.posterior.heads

    @cached_property
    def cholesky(self) -> Tensor:
        """Lower factors of A_i^-1, [task, feature, feature]."""
        heads = self.centers
        tasks = torch.arange(len(heads), device=heads.device)
        eye = identity_matrices(len(heads), heads.shape[1], heads)
        covariances = self.posterior.applied(eye, tasks)
        return torch.linalg.cholesky(torch.linalg.inv(0.5 * (covariances + covariances.mT)))

    def center_values(self, features: Tensor, tasks: Tensor) -> Tensor:
        """<heads[task], phi>: [row, action, feature], [row] -> [row, action]."""
        return (features @ self.centers[tasks].unsqueeze(-1)).squeeze(-1)

    def squared_widths(self, features: Tensor, tasks: Tensor) -> Tensor:
        """phi^T A_task phi: [row, action, feature], [row] -> [row, action]."""
        return self.posterior.squared_widths(features, tasks)

    def bonus_widths(self, features: Tensor, tasks: Tensor) -> Tensor:
        """The same for the bonus of a row alone: larger for rare actions without context."""
        return self.known_widths(features, tasks) + self.posterior.untried_widths(features)

    def known_widths(self, features: Tensor, tasks: Tensor) -> Tensor:
        """The same without what makes a row try a rarely tried action."""
        return self.parted_widths(features, tasks)[1]

    def parted_widths(self, features: Tensor, tasks: Tensor) -> tuple[Tensor, Tensor]:
        """The part of `known_widths` that rewards have shown, and all of it, [row, action] each."""
        own, widths = self.posterior.parted_widths(features, tasks)
        if self.growing_counts is not None:
            widths = widths + (exploration_rates(own, self.growing_counts[tasks]) - 1) * own
        return own, widths

    def expecting(self, features: Tensor, tasks: Tensor) -> PosteriorEllipsoid:
        """The heads allowed if chosen features [row, feature] of tasks [row] bring their means."""
        return replace(self, posterior=self.posterior.expecting(features, tasks, self.shards))

    def value_covariances(self, features: Tensor, tasks: Tensor) -> Tensor:
        """Phi A_task Phi^T in each row: [row, action, feature] -> [row, action, action]."""
        return self.posterior.applied(features, tasks) @ features.mT

    def prediction(self, mean: Tensor, chosen: Tensor, tasks: Tensor) -> Prediction:
        """Means [row] with their unit variances, those of features [row, feature]."""
        return Prediction(mean, self.squared_widths(chosen.unsqueeze(1), tasks).squeeze(1))

    def farthest(self, chosen: Tensor, tasks: Tensor) -> tuple[Tensor, float]:
        """The heads with the largest sum of values of features [row, feature], and how far."""
        heads = self.farthest_heads(torch.zeros_like(self.centers).index_add(0, tasks, chosen))
        return heads, self.squared_distance(heads)

    def farthest_heads(self, directions: Tensor) -> Tensor:
        """The W in the set with the largest sum_i <directions[i], w_i>: [task, feature] twice."""
        tasks = directions.any(-1).nonzero().squeeze(1)
        reach = torch.zeros_like(directions)
        reach[tasks] = self.posterior.applied(directions[tasks].unsqueeze(1), tasks).squeeze(1)
        squared_length = self.shards.sum((directions * reach).sum())
        if self.squared_radius == 0 or squared_length == 0:
            return self.centers
        return self.centers + reach * (self.squared_radius / squared_length).sqrt()

    def squared_distance(self, heads: Tensor) -> float:
        """sum_i (w_i - heads_i)^T A_i^-1 (w_i - heads_i) of heads [task, feature]."""
        steps = heads - self.centers
        moved = steps.any(-1).nonzero().squeeze(1)
        eye = identity_matrices(len(moved), heads.shape[1], heads)
        covariances = self.posterior.applied(eye, moved)
        solved = torch.linalg.solve(covariances, steps[moved].unsqueeze(-1)).squeeze(-1)
        return totals(self.shards, float((solved * steps[moved]).sum()))[0]


@dataclass(frozen=True, eq=False)
class PosteriorSet(ConfidenceSet):
    """{ f : f on the representation of the center, heads in the ellipsoid of the posterior }.

    The functional confidence set of a table or a catalogue. With the noise variance as squared
    radius, its intervals are one posterior standard deviation on each side.

    Attributes:
        posterior: of the heads; the center has its means as heads.
        stated_range: the range of expected rewards, if the user knows it.
    """

    # Paper: a set around the least-squares fit in the norm of the data alone. The prior over
    # heads that is learned from all tasks adds to it: a task with little data is close to the
    # others, and no closer than the tasks have been to each other.
    posterior: HeadPosterior = field(kw_only=True)
    stated_range: tuple[float, float] | None = field(default=None, kw_only=True)

    def ellipsoid(  # type: ignore[override]  # it has the members of a HeadEllipsoid
        self, representation: Representation | None = None
    ) -> PosteriorEllipsoid:
        """The heads allowed on the representation of the center."""
        if representation is not None and representation is not self.center.representation:
            raise InvalidInputError("the set of a table has one representation, that of its center")
        return PosteriorEllipsoid(
            self.posterior,
            self.squared_radius,
            self.growing_counts,
            self.limits,
            shards=self.data.shards,
        )

    @property
    def limits(self) -> tuple[float, float] | None:
        """The range that bounds optimism: the stated one for actions in contexts that vary.

        Near the top of the range bounded bonuses are smaller. Contexts that vary make an agent try
        actions again all the same; where the same candidates come in every round, it would not.
        """
        # Paper: actions maximise the largest value in the set, also where it exceeds the range.
        has_arms = getattr(self.center.representation, "has_arms_of_one_task", False)
        return self.stated_range if has_arms else None

    @property
    def growing_counts(self) -> Tensor | None:
        """The numbers of samples [task], if bonuses grow with them, see `exploration_rates`."""
        is_growing = not getattr(self.center.representation, "has_context", True)
        return self.data.samples_per_task if is_growing else None

    def head_prediction(self, features: Tensor, tasks: Tensor) -> Prediction:
        """Means and unit variances of chosen features [row, feature] of tasks [row]."""
        mean = self.center.values_of_features(features, tasks)
        return self.ellipsoid().prediction(mean, features, tasks)

    def squared_distance(self, function: MultiheadFunction) -> float:
        """Squared Mahalanobis distance of the heads from the center's; infinite on another phi."""
        if function.representation is not self.center.representation:
            return math.inf
        return self.ellipsoid().squared_distance(function.heads)

    def contains(self, function: MultiheadFunction, *, tolerance: float = 1e-9) -> bool:
        """Whether `function` is a member, up to rounding."""
        return self.squared_distance(function) <= self.squared_radius * (1 + tolerance)

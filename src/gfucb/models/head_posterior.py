"""The posterior of heads whose prior is shared by all tasks, updated with every reward."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad

from gfucb.core.linalg import task_sums
from gfucb.core.protocols import Representation
from gfucb.core.shards import ONE_SHARD, Shards
from gfucb.models.task_covariances import (
    Covariances,
    after_samples,
    expecting_samples,
    identities,
    matrix_size,
    of_samples,
    products,
    solved,
    with_more_tasks,
)

# An action that was tried fewer than UNTRIED_RATE * log(1 + number of samples) times has the
# exploration variance times UNTRIED_FACTOR: a standard deviation of several reward ranges.
UNTRIED_RATE, UNTRIED_FACTOR = 0.5, 256.0
# All tries beyond the first are together at most about this share of the samples.
LARGEST_UNTRIED_SHARE = 0.25
# With more actions than this, tries beyond the first are a smaller share: they cost as much as
# those of so many actions.
MANY_UNTRIED = 5
# The variance of weights that count as known. It makes covariances invertible.
KNOWN_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class HeadPosterior:
    """Gaussian posterior of the heads w_i ~ N(mean, noise * I), with an uncertain mean.

    In units of the noise variance, for features scaled by the prior,

        V_i = I + Phi_i^T Phi_i,   w_i | mean ~ N( V_i^-1 (Phi_i^T y_i + mean), V_i^-1 ),
        covariance of w_i = V_i^-1 + V_i^-1 C V_i^-1,   C the covariance of the mean.

    A reward updates V_i^-1 by the formula of Sherman and Morrison, at the cost of one matrix-vector
    product; the mean and C change in the next fit. The last columns of the features are linear
    features. Their covariance (I + k X_i^T X_i)^-1, times `exploration_scale`, adds to the
    uncertainty: a linear effect in the range of the rewards that the model has not seen, with the
    precision k, `exploration_precision`. Features after these belong to a function that counts as
    known: they add to the means only.

    Attributes:
        covariances: V_i^-1, [task, feature, feature].
        moments: Phi_i^T y_i, [task, feature].
        mean: [feature].
        mean_covariance: C, [feature, feature].
        exploration: (I + k X_i^T X_i)^-1, [task, linear feature, linear feature].
        exploration_scale: their variance in units of the noise variance.
        noise: the noise variance.
        squared_radius: the default radius of confidence sets, in units of squared rewards.
        tries: the number of samples of each action, at the linear feature that is its constant;
            infinite at all other linear features, [linear feature].
        untried_rate: how often actions must be tried, see `untried_variances`.
        exploration_precision: how much a sample tells about these effects: the ratio of their
            variance to that of the noise in which they are seen.
        known_heads: the posterior means, if they are known; read them as `heads`.
    """

    covariances: Covariances
    moments: Tensor
    mean: Tensor
    mean_covariance: Tensor
    exploration: Covariances
    exploration_scale: float
    noise: float
    squared_radius: float
    tries: Tensor
    untried_rate: float = UNTRIED_RATE
    exploration_precision: float = 1.0
    known_heads: Tensor | None = None

    @classmethod
    def empty(
        cls,
        num_tasks: int,
        feature_dim: int,
        linear_dim: int,
        *,
        mean_variances: Tensor,
        exploration_scale: float,
        noise: float,
        holds_samples: bool = False,
    ) -> HeadPosterior:
        """The prior: no data; the mean of all heads is N(0, diag(mean_variances)).

        With `holds_samples` no matrices are stored, but samples, see `SampleCovariances`.
        """
        moments = mean_variances.new_zeros(num_tasks, feature_dim)
        return cls(
            identities(num_tasks, feature_dim, moments, holds_samples=holds_samples),
            moments,
            moments.new_zeros(feature_dim),
            torch.diag(mean_variances),
            identities(num_tasks, linear_dim, moments, holds_samples=holds_samples),
            exploration_scale,
            noise,
            noise,
            moments.new_full((linear_dim,), torch.inf),
        )

    @cached_property
    def has_mean(self) -> bool:
        """Whether the mean of all heads is uncertain; with one task it is zero."""
        return bool(self.mean_covariance.any())

    @property
    def feature_dim(self) -> int:
        """The number of features that have weights."""
        return self.moments.shape[1]

    @property
    def uncertain_dim(self) -> int:
        """The number of features and linear features."""
        return self.feature_dim + matrix_size(self.exploration)

    @cached_property
    def heads(self) -> Tensor:
        """Posterior means, zero for the linear features: [task, feature + linear feature]."""
        if self.known_heads is not None:
            return self.known_heads
        return self._padded(solved(self.covariances, self.moments + self.mean))

    def _padded(self, weights: Tensor) -> Tensor:
        """Weights of features [n, feature] with zeros for the linear features."""
        return pad(weights, (0, self.uncertain_dim - self.feature_dim))

    @cached_property
    def missing_tries(self) -> Tensor:
        """How many tries actions lack that were tried too rarely, [linear feature].

        With fewer than log(number of samples) / 2 tries one bad reward would exclude it for good.
        """
        counted = self.tries[self.tries.isfinite()]
        total = float(counted.sum())
        count = max(1, len(counted))
        share = LARGEST_UNTRIED_SHARE * min(1.0, MANY_UNTRIED / count)
        most = 0.5 + share * total / count
        fewest = min(self.untried_rate * math.log1p(total), most)
        return (fewest - self.tries).ceil().clamp_min(0)

    @cached_property
    def untried_variances(self) -> Tensor:
        """Additional variances of actions that were tried too rarely, [linear feature]."""
        return torch.where(self.missing_tries > 0, UNTRIED_FACTOR * self.exploration_scale, 0.0)

    def with_tasks(self, count: int) -> HeadPosterior:
        """The same with `count` more tasks, which have no data: their heads have the prior mean."""
        moments = self.moments.new_zeros(count, self.feature_dim)
        return replace(
            self,
            covariances=with_more_tasks(self.covariances, count),
            moments=torch.cat([self.moments, moments]),
            exploration=with_more_tasks(self.exploration, count),
            known_heads=torch.cat([self.heads, self._padded(moments + self.mean)]),
        )

    def with_mean(self, mean: Tensor, *, squared_radius: float) -> HeadPosterior:
        """The same with another known prior mean [feature] and another radius."""
        return replace(self, mean=mean, squared_radius=squared_radius, known_heads=None)

    def given(self, features: Tensor, tasks: Tensor, targets: Tensor) -> HeadPosterior:
        """`after` of a prior, by one factorisation for each task instead of many updates."""
        scaled, linear = self._split(features)
        num_tasks = len(self.moments)
        return replace(
            self,
            covariances=of_samples(self.covariances, scaled, tasks, num_tasks),
            moments=task_sums(scaled * targets[:, None], tasks, num_tasks),
            exploration=of_samples(self.exploration, self.seen(linear), tasks, num_tasks),
            tries=self.tries + (linear != 0).sum(0),
            known_heads=None,
        )

    def after(
        self, features: Tensor, tasks: Tensor, targets: Tensor, shards: Shards = ONE_SHARD
    ) -> HeadPosterior:
        """The posterior with samples [n, feature + linear feature], [n], [n] added.

        With several shards these are the samples of one of them, and tries are counted in all.
        """
        scaled, linear = self._split(features)
        covariances = after_samples(self.covariances, scaled, tasks)
        moments = self.moments.index_add(0, tasks, scaled * targets[:, None])
        changed = tasks.unique()
        heads = self._padded(solved(covariances, moments[changed] + self.mean, changed))
        return replace(
            self,
            covariances=covariances,
            moments=moments,
            exploration=after_samples(self.exploration, self.seen(linear), tasks),
            tries=self.tries + shards.sum((linear != 0).sum(0)),
            known_heads=self.heads.index_copy(0, changed, heads),
        )

    def expecting(
        self, features: Tensor, tasks: Tensor, shards: Shards = ONE_SHARD
    ) -> HeadPosterior:
        """The posterior if samples [n, feature + linear feature], [n] had their means as rewards.

        Variances are smaller, and heads are the same.
        """
        scaled, linear = self._split(features)
        return replace(
            self,
            covariances=expecting_samples(self.covariances, scaled, tasks),
            exploration=expecting_samples(self.exploration, self.seen(linear), tasks),
            tries=self.tries + shards.sum((linear != 0).sum(0)),
            known_heads=self.heads,
        )

    def applied(self, directions: Tensor, tasks: Tensor) -> Tensor:
        """The covariance of tasks [row] times directions [row, n, feature + linear feature]."""
        scaled, linear = self._split(directions)
        once = products(self.covariances, scaled, tasks)
        scaled = once + products(self.covariances, once @ self.mean_covariance, tasks)
        explored = self.exploration_scale * products(self.exploration, linear, tasks)
        linear = explored + linear * self.untried_variances
        known = directions[..., self.uncertain_dim :]
        return torch.cat([scaled, linear, KNOWN_VARIANCE * known], dim=-1)

    def squared_widths(self, features: Tensor, tasks: Tensor) -> Tensor:
        """Variances of the values, in units of the noise: [row, action, feature] -> [row, action].

        Each is a quadratic form, so rounding cannot make one negative by more than itself.
        """
        return self.known_widths(features, tasks) + self.untried_widths(features)

    def known_widths(self, features: Tensor, tasks: Tensor) -> Tensor:
        """The same without the variances of rarely tried actions."""
        return self.parted_widths(features, tasks)[1]

    def parted_widths(self, features: Tensor, tasks: Tensor) -> tuple[Tensor, Tensor]:
        """`model_variances` and `known_widths`, [row, action] each."""
        variances = self.model_variances(features, tasks)
        _, linear = self._split(features)
        explored = (products(self.exploration, linear, tasks) * linear).sum(-1)
        return variances, (variances + self.exploration_scale * explored).clamp_min(0)

    def untried_widths(self, features: Tensor) -> Tensor:
        """The variances of rarely tried actions: [row, action, feature] -> [row, action]."""
        _, linear = self._split(features)
        return (linear.square() * self.untried_variances).sum(-1)

    def lacking(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Which candidates are which of the rarely tried actions, and the tries these lack.

        [row, action, feature] -> [row, action, lacking], booleans, and [lacking].
        """
        is_lacking = self.missing_tries > 0
        _, linear = self._split(features)
        return linear[..., is_lacking] != 0, self.missing_tries[is_lacking]

    def model_variances(self, features: Tensor, tasks: Tensor) -> Tensor:
        """The variances without those of linear features: [row, action]."""
        scaled, _ = self._split(features)
        once = products(self.covariances, scaled, tasks)
        variances = (once * scaled).sum(-1)
        if not self.has_mean:
            return variances
        return variances + ((once @ self.mean_covariance) * once).sum(-1)

    def seen(self, linear: Tensor) -> Tensor:
        """Linear features of samples, in units of the noise in which their effects are seen."""
        precision = self.exploration_precision
        return linear if precision == 1 else math.sqrt(precision) * linear

    def _split(self, features: Tensor) -> tuple[Tensor, Tensor]:
        size, end = self.feature_dim, self.uncertain_dim
        return features[..., :size], features[..., size:end]


@dataclass(frozen=True, eq=False)
class PosteriorFit:
    """A fitted model: features, the posterior of heads on them, and the offset of the rewards."""

    features: Representation
    posterior: HeadPosterior
    offset: float

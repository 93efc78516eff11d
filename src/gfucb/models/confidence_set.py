"""The functional confidence set F_t of equation (*), as a value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.features import features_of
from gfucb.core.linalg import cholesky_solve, task_sums
from gfucb.core.protocols import Representation, WeightStatistics
from gfucb.core.records import Prediction
from gfucb.core.validation.record_fields import require_bound, require_not_negative, require_type
from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.dataset import MultitaskDataset
from gfucb.models.head_ellipsoid import HeadEllipsoid
from gfucb.models.heads import HeadPenalty, HeadStatistics
from gfucb.models.multihead import MultiheadFunction
from gfucb.models.tangents import Arrowhead, TangentStatistics, WeightSketch

# The relative rounding error of sums of squares.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class ConfidenceSet:
    """F_t = { f : |f - center|^2_data + ridge |heads - anchor|^2 <= squared_radius }.

    The first norm sums over all samples of all tasks; with `ridge = 0` this is the paper's
    set. The anchor of a representation is its own least-squares heads, shifted so that the anchor
    of the center's representation is the center's heads. The ridge term is therefore zero at the
    center, bounds heads in directions without data, and, around a least-squares fit, is the same
    for a representation and a rotation of it.

    For one fixed representation the set is an ellipsoid of heads, known in closed form.

    Attributes:
        center: the least-squares fit.
        data: the samples of the norm, all from before this round.
        squared_radius: beta_t, >= 0.
        ridge: >= 0; `ellipsoid` needs a positive one.
        head_norm_bound: members also have |w_i| <= head_norm_bound; None for no bound.
        members: the representations of the set, if they can be listed.
        center_statistics: of the center's representation; computed on demand if None.
        center_tangents: of the center's weights; computed on demand if None.
    """

    center: MultiheadFunction
    data: MultitaskDataset
    squared_radius: float
    # Paper: there is no ridge; heads are bounded by sqrt(k). Without data in some direction the
    # printed set is then the whole ball, and for an unbounded head it has no maximum.
    ridge: float = 0.0
    head_norm_bound: float | None = None
    members: Sequence[Representation] | None = None
    center_statistics: HeadStatistics | None = None
    center_tangents: WeightStatistics | None = None

    def __post_init__(self) -> None:
        require_type(self.center, "center", MultiheadFunction)
        require_type(self.data, "data", MultitaskDataset)
        if self.center.num_tasks != self.data.num_tasks:
            raise InvalidInputError(
                f"the center has {self.center.num_tasks} heads, but the data have "
                f"{self.data.num_tasks} tasks"
            )
        require_not_negative(self.squared_radius, "squared_radius")
        require_not_negative(self.ridge, "ridge")
        require_bound(self.head_norm_bound, "head_norm_bound")

    def squared_distance(self, function: MultiheadFunction) -> float:
        """Left side of the defining inequality; zero for the center."""
        if function.representation is self.center.representation:
            features, anchor = self._center_features, self.center.heads
        else:
            features, anchor = features_of(function.representation, self.data.inputs), None
        distance = float(self.squared_distance_of(features, function.heads.detach(), anchor))
        # With very large features the Gram matrix has no accurate digits left.
        return math.inf if math.isnan(distance) else distance

    def squared_distance_of(
        self, features: Tensor, heads: Tensor, anchor: Tensor | None = None
    ) -> Tensor:
        """The same from the features of the data, differentiable in features and heads.

        Shapes: features [sample, feature], heads and anchor [task, feature]; the anchor is
        computed if it is None. Features that overflow give NaN.
        """
        values = self.center.offset + (features * heads[self.data.tasks]).sum(-1)
        distance = (values - self._center_values).square().sum()
        if self.ridge > 0:
            if anchor is None:
                anchor = self._anchor_of(self._statistics(features))
            distance = distance + self.ridge * (heads - anchor).square().sum()
        return distance

    def contains(self, function: MultiheadFunction, *, tolerance: float = 1e-9) -> bool:
        """Whether `function` is a member, up to rounding (`tolerance` is relative)."""
        bound = self.head_norm_bound
        if bound is not None and float(function.heads.norm(dim=-1).max()) > bound * (1 + tolerance):
            return False
        rounding = ROUNDING * (1 + float(self._center_values.square().sum()))
        slack = tolerance * self.squared_radius + rounding
        return self.squared_distance(function) <= self.squared_radius + slack

    def ellipsoid(self, representation: Representation | None = None) -> HeadEllipsoid | None:
        """The heads allowed on `representation` (default: the center's), None if there are none.

        With Phi the features of the data, f its center values and a the anchor,
        |Phi w - f|^2 + ridge |w - a|^2 = |w - c|^2_V + rest,  V = Phi^T Phi + ridge I,
        V c = Phi^T f + ridge a, so the ellipsoid has the squared radius squared_radius - rest.
        """
        if self.ridge == 0:
            raise InvalidInputError(
                "the heads of a fixed representation form an ellipsoid only with ridge > 0, "
                "got ridge = 0; give the confidence set a positive ridge"
            )
        if representation is None or representation is self.center.representation:
            own, bound, shards = self.center.heads, self.head_norm_bound, self.data.shards
            statistics = self._statistics_of_center
            return statistics.ellipsoid(own, self.ridge, self.squared_radius, bound, shards)

        features = features_of(representation, self.data.inputs)
        tasks, values = self.data.tasks, self._center_values - self.center.offset
        statistics = self._statistics(features)
        factors = statistics.factors(self.ridge)
        anchor = self._anchor_of(statistics)
        moments = task_sums(features * values[:, None], tasks, self.data.num_tasks)
        heads = cholesky_solve(factors.whole, moments + self.ridge * anchor)
        rest = ((features * heads[tasks]).sum(-1) - values).square().sum()
        rest = rest + self.ridge * (heads - anchor).square().sum()
        left = self.squared_radius - float(rest)
        if left < 0:
            return None
        ellipsoid = self._ellipsoid(heads, factors, left)
        return None if ellipsoid.is_empty else ellipsoid

    def head_prediction(self, features: Tensor, tasks: Tensor) -> Prediction:
        """The prediction of the center's heads at features [row, feature] of tasks [row]."""
        ellipsoid = self.ellipsoid()
        assert ellipsoid is not None, "the center is in its own confidence set"
        return ellipsoid.prediction(
            self.center.values_of_features(features, tasks), features, tasks
        )

    def arrowhead(self, sketch: WeightSketch, weight_ridge: float) -> Arrowhead:
        """The Gram matrix of the set linearised at its center, for networks."""
        tangents = self.center_tangents
        if not isinstance(tangents, TangentStatistics) or tangents.sketch != sketch:
            tangents = TangentStatistics.of(sketch, self.center, self.data.inputs, self.data.tasks)
        return Arrowhead(
            self._statistics_of_center,
            tangents,
            self.data.samples_per_task,
            ridge=self.ridge,
            weight_ridge=weight_ridge,
        )

    def upper_values(self, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Sup { f_task(x) : f in the set } of each input, exact: [n, *input], [n] -> [n]."""
        return self._extreme_values(inputs, tasks, sign=1.0)

    def lower_values(self, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Inf { f_task(x) : f in the set } of each input, exact: [n, *input], [n] -> [n]."""
        return self._extreme_values(inputs, tasks, sign=-1.0)

    def widths(self, inputs: Tensor, tasks: Tensor) -> Tensor:
        """upper_values - lower_values: [n, *input], [n] -> [n]."""
        return self.upper_values(inputs, tasks) - self.lower_values(inputs, tasks)

    def joint_width(self, inputs: Tensor, tasks: Tensor) -> float:
        """w_F(X) of Lemma 0: sup - inf over the set of sum_n f_task(x_n), exact.

        Smaller than the sum of `widths`: one member must be extreme at all inputs at once.
        """
        self._require_listed()
        highest, lowest = -math.inf, math.inf
        for representation in self.members or ():
            ellipsoid = self.ellipsoid(representation)
            if ellipsoid is not None:
                features = features_of(representation, inputs)
                directions = task_sums(features, tasks, self.data.num_tasks)
                middle = float((ellipsoid.centers * directions).sum())
                reach = cholesky_solve(ellipsoid.cholesky, directions)
                bonus = math.sqrt(ellipsoid.squared_radius * float((directions * reach).sum()))
                highest, lowest = max(highest, middle + bonus), min(lowest, middle - bonus)
        return highest - lowest

    def _require_listed(self) -> None:
        if self.members is None or self.head_norm_bound is not None:
            raise InvalidInputError(
                "exact upper and lower values need a class whose representations can be listed "
                "(members) and heads without a norm bound; use an action selector instead"
            )

    def _extreme_values(self, inputs: Tensor, tasks: Tensor, sign: float) -> Tensor:
        self._require_listed()
        extremes = []
        for representation in self.members or ():
            ellipsoid = self.ellipsoid(representation)
            if ellipsoid is not None:
                features = features_of(representation, inputs).unsqueeze(1)
                bonus = (
                    ellipsoid.squared_radius * ellipsoid.squared_widths(features, tasks)
                ).sqrt()
                values = sign * ellipsoid.center_values(features, tasks) + bonus
                extremes.append(values.squeeze(1))
        best = extremes[0]
        for values in extremes[1:]:
            best = best.maximum(values)
        return self.center.clip(self.center.offset + sign * best)

    def _ellipsoid(
        self, heads: Tensor, factors: CopyOnWriteRows, squared_radius: float
    ) -> HeadEllipsoid:
        bound, shards = self.head_norm_bound, self.data.shards
        return HeadEllipsoid(heads, factors, squared_radius, bound, shards)

    def _statistics(self, features: Tensor) -> HeadStatistics:
        targets = self.data.targets - self.center.offset
        return HeadStatistics.of(features, self.data.tasks, targets, self.data.num_tasks)

    def _anchor_of(self, statistics: HeadStatistics) -> Tensor:
        return statistics.heads(self._penalty, is_checked=False) + self._center_drift

    @property
    def _penalty(self) -> HeadPenalty:
        return HeadPenalty(self.ridge, self.head_norm_bound)

    @cached_property
    def _statistics_of_center(self) -> HeadStatistics:
        if self.center_statistics is not None:
            return self.center_statistics
        return self._statistics(self._center_features)

    @cached_property
    def _center_drift(self) -> Tensor:
        """The center's heads minus the ridge fit on its own representation."""
        return self.center.heads - self._statistics_of_center.heads(self._penalty)

    @cached_property
    def _center_values(self) -> Tensor:
        return self.center.values_of_features(self._center_features, self.data.tasks)

    @cached_property
    def _center_features(self) -> Tensor:
        return features_of(self.center.representation, self.data.inputs)

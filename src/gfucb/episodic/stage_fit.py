"""Line 4 of Algorithm 2: the least-squares fit of one stage.

What a plan recomputes: targets contain the values of the next stage, which change with every plan,
so moments and heads are solved again. Gram matrices are summed again from the counts of distinct
inputs: updating them would round differently from the sum that a restored agent computes. Features
of stored inputs are computed again only if phi changed or an input was added (`FeatureCache`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.nested import below, with_prefix
from gfucb.core.protocols import Representation
from gfucb.core.random import random_stream
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.episodic.auxiliary_targets import AuxiliaryTargets
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.cached_features import FeatureCache
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.finite_stage import FiniteStage
from gfucb.episodic.fit_settings import FitSettings
from gfucb.episodic.stage_plan import Ellipsoids
from gfucb.estimation.held_out import held_out_error
from gfucb.models import (
    ConfidenceSet,
    HeadEllipsoid,
    HeadStatistics,
    MultiheadFunction,
    MultitaskDataset,
)

# Names of saved tensors.
COUNTERS, REPRESENTATION = "fit.counters", "fit.representation."


@dataclass(frozen=True, eq=False)
class Fitted:
    """The fit of a stage and the confidence set around it.

    Attributes:
        center: the fit; it has no value range.
        statistics: of the center's representation.
        ellipsoids: the feasible heads of every representation in the set.
    """

    center: MultiheadFunction
    statistics: HeadStatistics
    ellipsoids: Ellipsoids


class StageFit:
    """The representation of one stage, and the heads it fits to the targets of a plan.

    The representation is refitted when the data has grown by `refit_growth`; heads are solved in
    closed form in every plan.

    Attributes:
        num_fits: fits of the representation so far.
        samples_at_fit: samples at the last of them.
        feature_cache: features of the stored inputs.
    """

    def __init__(self, settings: FitSettings, seed: int) -> None:
        self.settings = settings
        self.seed = seed
        self.num_fits = 0
        self.samples_at_fit = 0
        self.feature_cache = FeatureCache()
        self._current: MultiheadFunction | None = None  # with zero heads

    def __call__(self, buffer: StageBuffer, targets: Floats, squared_radius: float) -> Fitted:
        """The fit to targets [sample] and the set around it; phi is refitted if that is due."""
        members = self.settings.exhaustive_features
        if members is not None:
            stage = self._finite_stage(buffer, targets)
            if self.is_refit_due(len(targets)):
                self.adopt(members.members[stage.best], buffer.inputs.rows)
                self.count_fit(len(targets))
            return self._fitted(stage, buffer, squared_radius)
        if self.is_refit_due(len(targets)):
            data, inputs = self.data(buffer, targets), buffer.inputs.rows
            self.adopt(self.fit(data, inputs), inputs)
            self.count_fit(len(targets))
        return self.with_best_heads(buffer, targets, squared_radius)

    def is_refit_due(self, num_samples: int) -> bool:
        """Whether the representation is to be refitted."""
        if self.settings.has_one_representation:
            return False
        return num_samples >= self.settings.refit_growth * self.samples_at_fit

    def count_fit(self, num_samples: int) -> None:
        """Record a fit of the representation to this many samples."""
        self.samples_at_fit, self.num_fits = num_samples, self.num_fits + 1

    def with_best_heads(
        self, buffer: StageBuffer, targets: Floats, squared_radius: float
    ) -> Fitted:
        """The current representation with its best heads, and the set around it."""
        if self.settings.exhaustive_features is not None:
            return self._fitted(self._finite_stage(buffer, targets), buffer, squared_radius)
        penalty, several = self.settings.penalty, self.settings.member_features
        # Features of the inputs of these targets only, in one batch: other batches may round
        # differently, and a restored agent would differ from the saved one.
        inputs = buffer.first_inputs(len(targets))
        start = self.current(inputs)
        features = self.feature_cache.store("inputs", start.representation, inputs)
        statistics = buffer.statistics(features, targets, self.settings.offset)
        center = start.with_heads(statistics.heads(penalty))
        if several is not None:
            # Upper values ignore the norm bound: they are those of a larger set.
            unbounded = ConfidenceSet(
                center, buffer.dataset(targets), squared_radius, penalty.ridge
            )
            found = [(member, unbounded.ellipsoid(member)) for member in several.members]
            return Fitted(center, statistics, [(m, e) for m, e in found if e is not None])
        factors = statistics.factors(penalty.ridge)
        only = HeadEllipsoid(center.heads, factors, squared_radius)
        return Fitted(center, statistics, [(center.representation, only)])

    def without_data(self, example: Tensor, squared_radius: float) -> Fitted:
        """The prior, for inputs like `example` [1, *input]."""
        start = self.current(example)
        statistics = HeadStatistics.empty(*start.heads.shape)
        factors = statistics.factors(self.settings.penalty.ridge)
        ellipsoid = HeadEllipsoid(start.heads, factors, squared_radius)
        members = self.settings.representation_class.members or [start.representation]
        return Fitted(start, statistics, [(member, ellipsoid) for member in members])

    def _finite_stage(self, buffer: StageBuffer, targets: Floats) -> FiniteStage:
        ridge, offset = self.settings.penalty.ridge, self.settings.offset
        features = self.settings.exhaustive_features
        assert features is not None
        return FiniteStage.of(features, buffer, targets, offset=offset, ridge=ridge)

    def _fitted(self, stage: FiniteStage, buffer: StageBuffer, squared_radius: float) -> Fitted:
        start = self.current(buffer.inputs.rows)
        assert self.settings.exhaustive_features is not None
        index = self.settings.exhaustive_features.index(start.representation)
        return Fitted(
            start.with_heads(stage.anchors[index]),
            stage.statistics(index),
            stage.ellipsoids(index, squared_radius),
        )

    def current(self, inputs: Tensor) -> MultiheadFunction:
        """The current representation with zero heads, for inputs like these [n, *input]."""
        if self._current is None:
            self._current = self.settings.prior(inputs, self.seed)
        return self._current

    def adopt(self, representation: Representation, example: Tensor) -> None:
        """Use a representation that was fitted elsewhere, for inputs like `example`."""
        self._current = replace(self.current(example), representation=representation)

    def data(
        self, buffer: StageBuffer, targets: Floats, auxiliary: AuxiliaryTargets | None = None
    ) -> MultitaskDataset:
        """The data of a fit of the representation: samples with targets and auxiliary targets.

        `auxiliary` are those of all stages that share the representation.
        """
        if self.settings.representation_class.members is not None:
            return buffer.dataset(targets)
        # Every distinct input counts once for phi, so that a state with few samples weighs as
        # much as one with many. Heads count every sample.
        data = buffer.distinct_dataset(targets)
        if not self.settings.has_auxiliary_targets:
            return data
        auxiliary = auxiliary or self.settings.auxiliary_targets([buffer])
        return data.with_auxiliary_targets(torch.from_numpy(auxiliary(buffer)))

    def fit(self, data: MultitaskDataset, example: Tensor) -> Representation:
        """Least squares on `data`, with zero heads for each of its tasks at the start.

        A fit from the initial weights is used only if its error on held-out samples is not larger
        than that of the current representation.
        """
        settings, current = self.settings, self.current(example)
        start = current if settings.warm_start else settings.prior(example, self.seed)
        heads = start.heads.new_zeros(data.num_tasks, start.heads.shape[1])
        generator = random_stream(self.seed, "fit", self.num_fits)
        found = settings.fit(data, start.with_heads(heads), settings.penalty, generator)
        if settings.warm_start:
            return found.representation
        error_of = partial(
            held_out_error, data=data, offset=settings.offset, ridge=settings.penalty.ridge
        )
        return min(found.representation, current.representation, key=error_of)

    def state(self) -> dict[str, Tensor]:
        """Counters and representation as named tensors."""
        tensors = {COUNTERS: torch.tensor([self.num_fits, self.samples_at_fit])}
        if self._current is not None:
            saved = self.settings.representation_class.state_of(self._current.representation)
            tensors |= with_prefix(REPRESENTATION, saved)
        return tensors

    def restored(self, state: Mapping[str, Tensor], inputs: Tensor) -> StageFit:
        """A fit with this state, for inputs like these [n, *input]; this one does not change."""
        validate_state_names(state, [COUNTERS], [REPRESENTATION])
        counters = validate_state_tensor(state, COUNTERS, [2], dtype=torch.int64, low=0)
        known, saved = self.settings.representation_class, below(REPRESENTATION, state)
        for name in saved:
            _require_finite(saved[name], REPRESENTATION + name)
        generator = random_stream(self.seed, "network")
        representation = known.restored(saved, inputs, generator, "cpu")
        expected = known.state_of(representation).keys()
        if saved.keys() != expected:
            raise InvalidInputError(
                f"the state has the tensors {sorted(saved)} of a representation, expected "
                f"{sorted(expected)}"
            )
        restored = StageFit(self.settings, self.seed)
        restored.num_fits, restored.samples_at_fit = (int(n) for n in counters)
        restored.adopt(representation, inputs)
        return restored


def _require_finite(tensor: Tensor, name: str) -> None:
    if not bool(torch.isfinite(tensor).all()):
        raise InvalidInputError(f"{name!r} of the state must be finite")

"""Line 4 of Algorithm 2: the least-squares fit of one stage, kept up to date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor

from gfucb.core.protocols import LeastSquares, Representation, RepresentationClass
from gfucb.core.random import random_stream
from gfucb.episodic.auxiliary_targets import AuxiliaryTargets
from gfucb.episodic.buffer import Floats, StageBuffer
from gfucb.episodic.finite_stage import Ellipsoids, FiniteStage, MemberFeatures
from gfucb.estimation import Exhaustive
from gfucb.estimation.held_out import held_out_error
from gfucb.models import (
    ConfidenceSet,
    HeadEllipsoid,
    HeadPenalty,
    HeadStatistics,
    MultiheadFunction,
    MultitaskDataset,
    features_of,
    prior_function,
)

REPRESENTATION_PREFIX = "fit.representation."


@dataclass(frozen=True, eq=False)
class FitSettings:
    """What all stages have in common: the class, least squares, penalty, schedule.

    Attributes:
        next_targets: how many directions of the next observation a network also learns to
            predict, see `AuxiliaryTargets`; 0 for none.
        reward_weight: how loud ranks of rewards are among what it also learns to predict: their
            standard deviation, where that of inputs is 1; 0 for none.
        warm_start: whether a fit begins at the one before. States merged by a fit to little data
            are hard to part again by small steps; from the first weights they are not.
    """

    num_tasks: int
    representation_class: RepresentationClass
    fit: LeastSquares
    penalty: HeadPenalty
    offset: float
    refit_growth: float
    next_targets: int = 0
    reward_weight: float = 0.0
    warm_start: bool = True

    @cached_property
    def member_features(self) -> MemberFeatures | None:
        """Features of all members of a finite class of several."""
        members = self.representation_class.members
        return MemberFeatures(members) if members is not None and len(members) > 1 else None

    @property
    def has_auxiliary_targets(self) -> bool:
        """Whether representations learn from more than values."""
        return self.next_targets > 0 or self.reward_weight > 0

    def auxiliary_targets(self, buffers: Sequence[StageBuffer]) -> AuxiliaryTargets:
        """Those of stages that share a representation."""
        return AuxiliaryTargets.of(buffers, self.next_targets, self.reward_weight)

    @property
    def has_one_representation(self) -> bool:
        """Whether the class has a single member, so that there is nothing to fit but heads."""
        members = self.representation_class.members
        return members is not None and len(members) == 1

    @property
    def counts_suffice(self) -> bool:
        """Whether the fit is exact over a finite class, which needs counted samples only."""
        is_exact = isinstance(self.fit, Exhaustive) and self.penalty.norm_bound is None
        return is_exact and self.member_features is not None

    def prior(self, inputs: Tensor, seed: int) -> MultiheadFunction:
        """The initial representation with zero heads, for inputs like these [n, *input]."""
        return prior_function(
            self.representation_class,
            inputs,
            num_tasks=self.num_tasks,
            offset=self.offset,
            value_range=None,
            generator=random_stream(seed, "network"),
            device="cpu",
        )


@dataclass(frozen=True, eq=False)
class Fitted:
    """The fit of a stage and the set around it.

    Attributes:
        center: the fit; it has no value range.
        statistics: of the center's representation.
        ellipsoids: the heads the set leaves on each representation it ranges over.
    """

    center: MultiheadFunction
    statistics: HeadStatistics
    ellipsoids: Ellipsoids


class StageFit:
    """The representation of one stage, and the heads it fits to the targets of a plan.

    The representation is fitted anew when the data has grown by `refit_growth`; heads are solved
    in closed form in every plan.
    """

    def __init__(self, settings: FitSettings, seed: int) -> None:
        self.settings = settings
        self.seed = seed
        self.num_fits = 0
        self.samples_at_fit = 0
        self._present: MultiheadFunction | None = None  # with heads of zero

    def __call__(self, memory: StageBuffer, targets: Floats, squared_radius: float) -> Fitted:
        """The fit to targets [sample] and the set around it, phi fitted anew if that is due."""
        if self.settings.counts_suffice:
            stage = self._finite_stage(memory, targets)
            if self.is_due(len(targets)):
                assert self.settings.member_features is not None
                self.adopt(self.settings.member_features.members[stage.best], memory.inputs.rows)
                self.samples_at_fit, self.num_fits = len(targets), self.num_fits + 1
            return self._fitted(stage, memory, squared_radius)
        if self.is_due(len(targets)):
            self._refit(memory, targets)
        return self.with_best_heads(memory, targets, squared_radius)

    def _finite_stage(self, memory: StageBuffer, targets: Floats) -> FiniteStage:
        ridge, offset = self.settings.penalty.ridge, self.settings.offset
        features = self.settings.member_features
        assert features is not None
        return FiniteStage.of(features, memory, targets, offset=offset, ridge=ridge)

    def _fitted(self, stage: FiniteStage, memory: StageBuffer, squared_radius: float) -> Fitted:
        start = self.start(memory.inputs.rows)
        assert self.settings.member_features is not None
        index = self.settings.member_features.index(start.representation)
        return Fitted(
            start.with_heads(stage.anchors[index]),
            stage.statistics(index),
            stage.ellipsoids(index, squared_radius),
        )

    def is_due(self, num_samples: int) -> bool:
        """Whether the representation is to be fitted anew."""
        if self.settings.has_one_representation:
            return False
        return num_samples >= self.settings.refit_growth * self.samples_at_fit

    def with_best_heads(
        self, memory: StageBuffer, targets: Floats, squared_radius: float
    ) -> Fitted:
        """The present representation with its best heads, and the set around it."""
        penalty, several = self.settings.penalty, self.settings.member_features
        if self.settings.counts_suffice:
            return self._fitted(self._finite_stage(memory, targets), memory, squared_radius)
        # Only inputs the targets speak of, and all at once: what comes later, or in jobs, could
        # be rounded otherwise, and a restored agent would differ from the one that was saved.
        inputs = memory.inputs.rows[: int(memory.played[: len(targets)].max()) + 1]
        start = self.start(inputs)
        features = features_of(start.representation, inputs)
        statistics = memory.statistics(features, targets, self.settings.offset)
        center = start.with_heads(statistics.heads(penalty))
        if several is not None:
            # Upper values know no norm bound: they are those of a larger set.
            unbounded = ConfidenceSet(
                center, memory.dataset(targets), squared_radius, penalty.ridge
            )
            found = [(member, unbounded.ellipsoid(member)) for member in several.members]
            return Fitted(center, statistics, [(m, e) for m, e in found if e is not None])
        factors = statistics.factors(penalty.ridge)
        only = HeadEllipsoid(center.heads, factors, squared_radius)
        return Fitted(center, statistics, [(center.representation, only)])

    def without_data(self, example: Tensor, squared_radius: float) -> Fitted:
        """What is believed before the first sample, for inputs like `example` [1, *input]."""
        start = self.start(example)
        statistics = HeadStatistics.empty(*start.heads.shape)
        factors = statistics.factors(self.settings.penalty.ridge)
        ellipsoid = HeadEllipsoid(start.heads, factors, squared_radius)
        members = self.settings.representation_class.members or [start.representation]
        return Fitted(start, statistics, [(member, ellipsoid) for member in members])

    def start(self, inputs: Tensor) -> MultiheadFunction:
        """The present representation with heads of zero, for inputs like these [n, *input]."""
        if self._present is None:
            self._present = self.settings.prior(inputs, self.seed)
        return self._present

    def adopt(self, representation: Representation, example: Tensor) -> None:
        """Take a representation that was fitted elsewhere, for inputs like `example`."""
        self._present = replace(self.start(example), representation=representation)

    def data(
        self, memory: StageBuffer, targets: Floats, further: AuxiliaryTargets | None = None
    ) -> MultitaskDataset:
        """What the representation is fitted to: samples with targets, and further targets.

        `further` are those of all stages that share the representation.
        """
        if self.settings.representation_class.members is not None:
            return memory.dataset(targets)
        # Every distinct input counts once for phi: the few samples of a state just found are not
        # drowned by the many of one that is known. Heads count every sample.
        data = memory.distinct_dataset(targets)
        if not self.settings.has_auxiliary_targets:
            return data
        further = further or self.settings.auxiliary_targets([memory])
        return data.with_auxiliary_targets(torch.from_numpy(further(memory)))

    def _refit(self, memory: StageBuffer, targets: Floats) -> None:
        data, inputs = self.data(memory, targets), memory.inputs.rows
        self.adopt(self.fitted(data, inputs), inputs)
        self.samples_at_fit, self.num_fits = len(targets), self.num_fits + 1

    def fitted(self, data: MultitaskDataset, example: Tensor) -> Representation:
        """Least squares on `data`, whose tasks have heads of their own.

        A fit that began at the first weights is taken if it errs less on samples held out than
        the representation there is: by bad luck it may not.
        """
        settings, present = self.settings, self.start(example)
        start = present if settings.warm_start else settings.prior(example, self.seed)
        heads = start.heads.new_zeros(data.num_tasks, start.heads.shape[1])
        generator = random_stream(self.seed, "fit", self.num_fits)
        found = settings.fit(data, start.with_heads(heads), settings.penalty, generator)
        if settings.warm_start:
            return found.representation
        error_of = partial(
            held_out_error, data=data, offset=settings.offset, ridge=settings.penalty.ridge
        )
        return min(found.representation, present.representation, key=error_of)

    def state(self) -> dict[str, Tensor]:
        """Counters and representation as named tensors."""
        tensors = {"fit.counters": torch.tensor([self.num_fits, self.samples_at_fit])}
        if self._present is not None:
            saved = self.settings.representation_class.state_of(self._present.representation)
            tensors |= {f"{REPRESENTATION_PREFIX}{name}": t for name, t in saved.items()}
        return tensors

    def load_state(self, state: dict[str, Tensor], inputs: Tensor | None) -> None:
        """Continue from `state`; `inputs` are some that were seen, [n, *input]."""
        self.num_fits, self.samples_at_fit = (int(n) for n in state["fit.counters"])
        self._present = None
        if inputs is None:
            return
        names = [name for name in state if name.startswith(REPRESENTATION_PREFIX)]
        saved = {name.removeprefix(REPRESENTATION_PREFIX): state[name] for name in names}
        representation = self.settings.representation_class.restored(
            saved, inputs, random_stream(self.seed, "network"), "cpu"
        )
        self._present = replace(self.start(inputs), representation=representation)

"""Settings that the fits of all stages share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from gfucb.core.protocols import LeastSquares, RepresentationClass
from gfucb.core.random import random_stream
from gfucb.core.validation.settings import (
    validate_component,
    validate_count,
    validate_flag,
    validate_not_negative,
    validate_number,
)
from gfucb.episodic.auxiliary_targets import AuxiliaryTargets
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.cached_features import MemberFeatures
from gfucb.estimation import Exhaustive
from gfucb.models import HeadPenalty, MultiheadFunction, prior_function


@dataclass(frozen=True, eq=False)
class FitSettings:
    """The class, least squares, penalty and schedule of the fits of all stages.

    Attributes:
        num_tasks: M.
        representation_class: Phi.
        fit: least squares.
        penalty: of the heads, in fits and confidence sets.
        offset: the value of an input whose features are zero.
        refit_growth: phi is refitted when the data of a stage has grown by this factor.
        next_targets: the number of directions of the next observation among the auxiliary
            targets of a network, see `AuxiliaryTargets`; 0 for none.
        reward_weight: the standard deviation of ranks of rewards among the auxiliary targets,
            where that of inputs is 1; 0 for none.
        warm_start: whether a fit starts from the previous one. States that a fit to few data has
            merged are hard to separate by small steps; a fit from the initial weights separates
            them.
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

    def __post_init__(self) -> None:
        expected = "a least-squares fit, such as VariableProjection()"
        validate_component(self.fit, "fit", expected)
        validate_flag(self.warm_start, "warm_start")
        # Plain numbers, so that 2, 2.0 and numpy.float64(2) are the same setting.
        growth = validate_number(self.refit_growth, "refit_growth", at_least=1.0, is_finite=False)
        next_targets = validate_count(self.next_targets, "next_targets", at_least=0)
        reward_weight = validate_not_negative(self.reward_weight, "reward_weight")
        object.__setattr__(self, "offset", validate_number(self.offset, "offset"))
        object.__setattr__(self, "refit_growth", growth)
        object.__setattr__(self, "next_targets", next_targets)
        object.__setattr__(self, "reward_weight", reward_weight)

    @cached_property
    def member_features(self) -> MemberFeatures | None:
        """Features of all members of a class that lists several; None for other classes."""
        members = self.representation_class.members
        return MemberFeatures(members) if members is not None and len(members) > 1 else None

    @property
    def has_one_representation(self) -> bool:
        """Whether the class has a single member, so that only heads are fitted."""
        members = self.representation_class.members
        return members is not None and len(members) == 1

    @cached_property
    def exhaustive_features(self) -> MemberFeatures | None:
        """Features of all members if `FiniteStage` gives the result of the fit, otherwise None.

        It does for the exhaustive fit of a class of several members without a norm bound.
        """
        if self.member_features is None or self.penalty.norm_bound is not None:
            return None
        is_exhaustive = self.fit == Exhaustive(self.representation_class)
        return self.member_features if is_exhaustive else None

    @property
    def has_auxiliary_targets(self) -> bool:
        """Whether representations are fitted to more than values."""
        return self.next_targets > 0 or self.reward_weight > 0

    def auxiliary_targets(self, buffers: Sequence[StageBuffer]) -> AuxiliaryTargets:
        """The auxiliary targets of stages that share a representation."""
        return AuxiliaryTargets.of(buffers, self.next_targets, self.reward_weight)

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

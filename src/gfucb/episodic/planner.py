"""The plan of one stage: targets, fit and confidence set, lines 4 to 8 of Algorithm 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from gfucb.core.protocols import Backup, SquaredRadius
from gfucb.core.random import random_stream
from gfucb.core.setting_descriptions import (
    INITIAL_WEIGHTS,
    describe_initial_weights,
    describe_setting,
)
from gfucb.core.validation.settings import (
    validate_component,
    validate_flag,
    validate_number,
    validate_seed,
)
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.episodic_settings import Range
from gfucb.episodic.fit_settings import FitSettings
from gfucb.episodic.plan_state import PlanState
from gfucb.episodic.stage_fit import Fitted, StageFit
from gfucb.episodic.stage_plan import StagePlan
from gfucb.models import ConfidenceSet


@dataclass(frozen=True, eq=False)
class StageData:
    """What one stage is fitted to.

    Attributes:
        stage: h, from 0.
        buffer: the transitions of the stage.
        targets: R + V_{h+1}(s') of the first samples, [sample].
        example: an input [1, *input], which gives the shape where there is no sample.
    """

    stage: int
    buffer: StageBuffer
    targets: Floats
    example: Tensor


@dataclass(frozen=True, eq=False)
class Planner:
    """Computes the plan of one stage from its buffer and the plan of the next stage.

    Attributes:
        fit_settings: of all stages.
        backup: the variant of Algorithm 2.
        squared_radius: beta_h as a function of the episode.
        value_ranges: bounds of the values of each stage, [stage].
        share_stages: whether phi is fitted for all stages together.
        seed: of the agent; perturbations derive from it.
    """

    fit_settings: FitSettings
    backup: Backup
    squared_radius: SquaredRadius
    value_ranges: tuple[Range | None, ...]
    share_stages: bool
    seed: int

    def __post_init__(self) -> None:
        expected = "a function of the episode, such as ConstantRadius(0.1)"
        validate_component(self.squared_radius, "squared_radius", expected)
        validate_flag(self.share_stages, "share_stages")
        object.__setattr__(self, "seed", validate_seed(self.seed))

    def stage_seed(self, stage: int) -> int:
        """The seed of the fits of a stage."""
        # The first stage draws what a bandit with the same seed draws.
        return self.seed if stage == 0 else random_stream(self.seed, "stage", stage).initial_seed()

    def data(
        self, stage: int, buffer: StageBuffer, next_plan: StagePlan | None, example: Tensor
    ) -> StageData:
        """All samples with the targets R + V_{h+1}(s'); V is zero where `next_plan` is None."""
        num_next = len(buffer.next_observations)
        if next_plan is None or not num_next:
            return StageData(stage, buffer, buffer.targets(np.zeros(num_next)), example)
        inputs = buffer.next_observations.flat_rows
        num_actions = len(inputs) // num_next
        tasks = buffer.next_observations.tasks.repeat_interleave(num_actions)
        next_plan.cache_features(inputs)
        values = self.backup.action_values(next_plan, inputs, tasks)
        best = next_plan.clip(values.reshape(num_next, num_actions).amax(1))
        return StageData(stage, buffer, buffer.targets(np.asarray(best.numpy())), example)

    def fit(self, fit: StageFit, data: StageData) -> Fitted:
        """Program (1): the fit to the targets; phi changes only if a refit is due."""
        if self.share_stages or not len(data.targets):
            return self.fit_heads(fit, data)
        return fit(data.buffer, data.targets, self._radius(data))

    def fit_heads(self, fit: StageFit, data: StageData) -> Fitted:
        """The best heads on the current phi, and the set around them."""
        if not len(data.targets):
            return fit.without_data(data.example, self._radius(data))
        return fit.with_best_heads(data.buffer, data.targets, self._radius(data))

    def stage_plan(
        self, fit: StageFit, data: StageData, fitted: Fitted, plan_index: int
    ) -> StagePlan:
        """F_h of line 8, with what the backup adds to it.

        `plan_index`, the number of plans before this one, names the random draws.
        """
        penalty, center = self.fit_settings.penalty, fitted.center
        members = self.fit_settings.representation_class.members
        confidence_set = ConfidenceSet(
            center,
            data.buffer.dataset(data.targets, data.example),
            self._radius(data),
            ridge=penalty.ridge,
            head_norm_bound=penalty.norm_bound,
            members=members or [center.representation],
            center_statistics=fitted.statistics,
        )
        plan = StagePlan(
            confidence_set,
            fitted.ellipsoids,
            self.value_ranges[data.stage],
            member_features=self.fit_settings.member_features,
            feature_cache=fit.feature_cache,
        )
        generator = random_stream(self.seed, "perturb", plan_index, data.stage)
        return self.backup.prepare(plan, generator)

    def restored_plans(
        self, fits: Sequence[StageFit], buffers: Sequence[StageBuffer], saved: PlanState
    ) -> list[StagePlan]:
        """The plans of a saved state: the same targets, heads and random draws."""
        plans = []
        for stage, (fit, targets) in enumerate(zip(fits, saved.targets, strict=True)):
            data = StageData(stage, buffers[stage], targets, saved.example)
            fitted = self.fit_heads(fit, data)
            plans.append(self.stage_plan(fit, data, fitted, saved.plan_index - 1))
        return plans

    def settings(self) -> dict[str, str]:
        """What a planner must be built with to continue from a saved state."""
        fits = self.fit_settings
        values = {
            "seed": self.seed,
            "warm_start": fits.warm_start,
            "representation": fits.representation_class.fingerprint(),
            "backup": self.backup,
            "fit": fits.fit,
            "squared_radius": self.squared_radius,
            "ridge": fits.penalty.ridge,
            "head_norm_bound": fits.penalty.norm_bound,
            "value_ranges": self.value_ranges,
            "offset": fits.offset,
            "refit_growth": fits.refit_growth,
            "share_stages": self.share_stages,
            "next_targets": fits.next_targets,
            "reward_weight": fits.reward_weight,
        }
        described = {name: describe_setting(value) for name, value in values.items()}
        initial_weights = describe_initial_weights(fits.representation_class)
        if not fits.warm_start:  # every fit starts from them
            described["representation"] += f", initial weights {initial_weights}"
        return described | {INITIAL_WEIGHTS: initial_weights}

    def _radius(self, data: StageData) -> float:
        """beta_h; its argument is one more than the largest number of samples of a task."""
        most_samples = 0
        if len(data.targets):
            indices = data.buffer.input_indices[: len(data.targets)]
            most_samples = int(np.bincount(data.buffer.inputs.tasks.numpy()[indices]).max())
        value = self.squared_radius(1 + most_samples)
        return validate_number(value, "the squared radius", at_least=0.0, is_finite=False)

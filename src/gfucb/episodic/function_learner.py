"""Algorithm 2 with a given representation class: networks, finite classes, given features."""

from __future__ import annotations

import copy
from dataclasses import replace

from torch import Tensor, nn

from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import (
    ActionSelector,
    Backup,
    LeastSquares,
    RepresentationClass,
    SquaredRadius,
)
from gfucb.core.records import Decision, Row
from gfucb.core.setting_descriptions import describe_setting
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import gradients_allowed, validate_action_sets
from gfucb.core.validation.episodes import validate_size, validate_stage
from gfucb.core.validation.settings import validate_ranges, validate_ridge
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.episodic_settings import (
    Range,
    default_offset,
    default_stage_radius,
    stage_ranges,
    validate_backup,
)
from gfucb.episodic.fit_settings import FitSettings
from gfucb.episodic.information_gain import InformationGain
from gfucb.episodic.plan_state import TARGETS, PlanState, validate_plan_state
from gfucb.episodic.plan_validation import RestoredPlan
from gfucb.episodic.planner import Planner
from gfucb.episodic.replanning import ReplanKind, ReplanRule
from gfucb.episodic.replay import ReplayBuffer
from gfucb.episodic.shared_fit import fit_together
from gfucb.episodic.stage_fit import StageFit
from gfucb.episodic.stage_plan import StagePlan
from gfucb.estimation.default_fits import default_fit
from gfucb.exploration.default_selectors import default_action_selector
from gfucb.models import ConfidenceSet, HeadPenalty, as_representation_class


class FunctionLearner:
    """Algorithm 2 with a representation class: fits and confidence sets of every stage.

    The arguments and methods are those of `EpisodicGFUCB`.
    """

    def __init__(
        self,
        num_tasks: int,
        horizon: int,
        representation: nn.Module | RepresentationClass | None,
        *,
        backup: str | Backup,
        seed: int,
        fit: LeastSquares | None,
        squared_radius: SquaredRadius | None,
        action_selector: ActionSelector | None,
        ridge: float,
        head_norm_bound: float | None,
        value_range: tuple[float, float] | None,
        reward_range: tuple[float, float] | None,
        offset: float | None,
        replan: ReplanKind,
        replan_growth: float,
        refit_growth: float | None,
        share_stages: bool,
        next_targets: int,
        reward_weight: float,
        warm_start: bool,
    ) -> None:
        self.num_tasks, self.horizon = validate_size(num_tasks, horizon)
        known = as_representation_class(representation)
        value_range, reward_range = validate_ranges(value_range, reward_range)
        selector = default_action_selector(known) if action_selector is None else action_selector
        self.fit_settings = FitSettings(
            num_tasks=self.num_tasks,
            representation_class=known,
            fit=default_fit(known) if fit is None else fit,
            penalty=HeadPenalty(validate_ridge(ridge), head_norm_bound),
            offset=default_offset(value_range) if offset is None else offset,
            refit_growth=known.default_refit_growth if refit_growth is None else refit_growth,
            next_targets=next_targets,
            reward_weight=reward_weight,
            warm_start=warm_start,
        )
        self._planner = Planner(
            fit_settings=self.fit_settings,
            backup=validate_backup(backup, selector),
            squared_radius=(
                default_stage_radius(value_range) if squared_radius is None else squared_radius
            ),
            value_ranges=stage_ranges(value_range, reward_range, self.horizon),
            share_stages=share_stages,
            seed=seed,
        )
        self._replanning = ReplanRule(replan, replan_growth)
        self._reset()

    def _reset(self) -> None:
        self._replay = ReplayBuffer(self.num_tasks, self.horizon)
        self._gain = InformationGain(self.num_tasks, self.horizon)
        self.fits = [
            StageFit(self.fit_settings, self._planner.stage_seed(stage))
            for stage in range(self.horizon)
        ]
        self.plans: list[StagePlan] = []
        self._plan_state: PlanState | None = None  # None before the first plan

    @property
    def num_transitions(self) -> int:
        """Of all stages."""
        return len(self._replay)

    def describe(self) -> str:
        """The variant, for the repr of the agent."""
        return f"backup={type(self.backup).__name__}"

    @property
    def representation_class(self) -> RepresentationClass:
        """Phi."""
        return self.fit_settings.representation_class

    @property
    def backup(self) -> Backup:
        """The variant of Algorithm 2."""
        return self._planner.backup

    @property
    def plan_index(self) -> int:
        """The number of plans made."""
        return 0 if self._plan_state is None else self._plan_state.plan_index

    @property
    def buffers(self) -> list[StageBuffer]:
        """The transitions of each stage."""
        return self._replay.stages

    @property
    def is_markov(self) -> bool:
        """Whether, between plans, an action depends on its own row and stage alone."""
        return self.backup.is_markov(self.num_tasks)

    @gradients_allowed()
    def plan(self, candidates: ArrayLike, tasks: ArrayLike | None = None) -> None:
        """Prepare an episode: lines 2 to 8 of Algorithm 2, if a plan is due."""
        start = self._validate(candidates, tasks)
        last = self._plan_state
        if last is None or self._replanning.is_due(self._gain, self.buffers, last.targets):
            self._plan_all_stages(start)
        else:
            self._plan_state = replace(last, start=start)
        self.plans = self.backup.start_episode(self.plans, self.buffers, start)

    def _plan_all_stages(self, start: ActionSets) -> None:
        """Backward induction; if a fit fails, the agent does not change."""
        example, fits = start.candidates[0, :1], [copy.copy(fit) for fit in self.fits]
        if self._planner.share_stages:
            # Paper: one phi per stage. A shared phi is fitted to the targets of the previous plan,
            # because the targets of this plan depend on it.
            fit_together(self._planner, fits, self.buffers, self.plans, example)
        planner = self._planner
        plans: list[StagePlan] = []  # line 2: V_{H+1} = 0
        targets: list[Floats] = []
        for stage in reversed(range(self.horizon)):  # line 3
            # Paper: V_{h+1} is the value of the fit. Uncertainty in later stages then never raises
            # a value here, and the proof, which needs an optimistic value, does not apply: see
            # `backup`.
            next_plan = plans[0] if plans else None
            data = planner.data(stage, self.buffers[stage], next_plan, example)  # R + V_{h+1}(s')
            fitted = planner.fit(fits[stage], data)  # line 4: program (1)
            plan = planner.stage_plan(fits[stage], data, fitted, self.plan_index)  # lines 5 and 8
            plans.insert(0, plan)
            targets.insert(0, data.targets)
        self.plans, self.fits = plans, fits
        self._plan_state = PlanState(self.plan_index + 1, targets, start)
        self._gain = InformationGain(self.num_tasks, self.horizon)

    @gradients_allowed()
    def decide(self, stage: int, candidates: ArrayLike, tasks: ArrayLike | None = None) -> Decision:
        """Choose an action for every row of a stage: line 9 of Algorithm 2."""
        stage = validate_stage(stage, self.horizon)
        action_sets = self._validate(candidates, tasks)
        self._require_plan()
        # Paper: f is chosen in line 9, once the state is known, so the next value depends on it.
        # All plans here are fixed when the episode starts; only `literal` chooses f again.
        plan = self.plans[stage]
        actions, values = self.backup.select(plan, action_sets)
        return action_sets.decision(actions, plan.clip(values))

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: ArrayLike,
        next_candidates: ArrayLike | None = None,
        ended: ArrayLike | None = None,
    ) -> None:
        """Learn from the result of a decision: line 10, and the data of the next plan."""
        stage, transitions = self._replay.validate(stage, decision, rewards, next_candidates, ended)
        input_indices = self._replay.append(stage, transitions)
        if self.plans:
            squared_width = self.plans[stage].squared_width_of(self.buffers[stage].inputs)
            self._gain.add(stage, transitions.tasks, input_indices, squared_width)

    def _validate(self, candidates: ArrayLike, tasks: ArrayLike | None) -> ActionSets:
        """The action sets, if their inputs have the shape of earlier inputs."""
        action_sets = validate_action_sets(
            candidates, tasks, None, num_tasks=self.num_tasks, device="cpu"
        )
        shape = action_sets.candidates.shape[2:]
        if self._plan_state is not None and shape != self._plan_state.example.shape[1:]:
            raise InvalidInputError(
                "this agent has planned for inputs of shape "
                f"{list(self._plan_state.example.shape[1:])}, got inputs of shape {list(shape)}"
            )
        if len(self._replay) and shape != self._replay.input_shape:
            raise InvalidInputError(
                f"this agent has learned from inputs of shape {list(self._replay.input_shape)}, "
                f"got inputs of shape {list(shape)}"
            )
        return action_sets

    def _require_plan(self) -> None:
        if not self.plans:
            raise InvalidInputError("there is no plan yet; call plan(candidates) before an episode")

    def confidence_set(self, stage: int) -> ConfidenceSet:
        """F_h of the last plan."""
        self._require_plan()
        return self.plans[validate_stage(stage, self.horizon)].confidence_set

    def range_of(self, stage: int) -> Range | None:
        """The bounds of the values of a stage."""
        return self._planner.value_ranges[validate_stage(stage, self.horizon)]

    def diagnostics(self) -> Row:
        """The number of plans, and of fits of a representation."""
        fits = self.fits[:1] if self._planner.share_stages else self.fits
        return {"plans": self.plan_index, "fits": sum(fit.num_fits for fit in fits)}

    def settings(self) -> dict[str, str]:
        """What an agent must be built with to continue from this one's state."""
        own = {"horizon": self.horizon, "replan": self._replanning}
        return {name: describe_setting(v) for name, v in own.items()} | self._planner.settings()

    def state(self) -> dict[str, Tensor]:
        """All transitions and the last plan, as named tensors; empty for a new agent."""
        plan = self._plan_state
        if plan is None:
            return self._replay.state()
        stage_states = [
            fit.state() | plan.stage_tensors(stage) for stage, fit in enumerate(self.fits)
        ]
        return self._replay.state(stage_states) | plan.tensors() | self._gain.state()

    @gradients_allowed()
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments.

        The whole state is checked before the agent changes.
        """
        replay, stage_states, others = self._replay.restored(state)
        if not (others or any(stage_states)):  # saved before the first plan
            self._reset()
            self._replay = replay
            return
        plan_state = validate_plan_state(others, stage_states, replay.stages)
        gain, example = self._gain.restored(others), plan_state.example
        fits = [
            fit.restored({n: t for n, t in own.items() if n != TARGETS}, example)
            for fit, own in zip(self.fits, stage_states, strict=True)
        ]
        if self._planner.share_stages:
            for fit in fits[1:]:
                fit.adopt(fits[0].current(example).representation, example)
        plans = self._planner.restored_plans(fits, replay.stages, plan_state)
        RestoredPlan(plan_state, fits, plans, replay.stages).validate(self._planner, gain)
        plans = self.backup.start_episode(plans, replay.stages, plan_state.start)
        self._replay, self._gain, self.fits = replay, gain, fits
        self._plan_state, self.plans = plan_state, plans

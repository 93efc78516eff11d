"""GFUCB for multitask episodic MDPs: Algorithm 2, made optimistic (Lu et al., 2022)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import (
    ActionSelector,
    LeastSquares,
    RepresentationClass,
    SquaredRadius,
)
from gfucb.core.random import random_stream
from gfucb.core.records import ActionSets, Decision, Row
from gfucb.core.validation.bandits import gradients_allowed, validate_action_sets
from gfucb.core.validation.episodes import validate_stage
from gfucb.core.validation.settings import validate_count, validate_number, validate_ranges
from gfucb.episodic.backups import Backup, StagePlan
from gfucb.episodic.buffer import Floats, StageBuffer
from gfucb.episodic.joint_backup import Joint, plan_jointly
from gfucb.episodic.replay import InformationGain, ReplayBuffer
from gfucb.episodic.settings import (
    Replanning,
    check_replanning,
    default_offset,
    default_stage_radius,
    make_backup,
    validate_auxiliary_targets,
)
from gfucb.episodic.shared_fit import fit_together
from gfucb.episodic.stage_fit import FitSettings, Fitted, StageFit
from gfucb.estimation.defaults import default_fit
from gfucb.exploration.defaults import default_action_selector
from gfucb.models import ConfidenceSet, HeadPenalty, as_representation_class, features_of


class EpisodicGFUCB:
    """Many related episodic MDPs, one learned representation a stage, optimism over whole episodes.

    >>> import torch, gfucb
    >>> agent = gfucb.EpisodicGFUCB(num_tasks=2, horizon=3, seed=0)
    >>> candidates = torch.rand(2, 4, 5, generator=torch.Generator())  # 2 tasks, 4 actions
    >>> agent.plan(candidates)
    >>> decision = agent.decide(0, candidates)
    >>> agent.observe(0, decision, rewards=[0.1, 0.0], next_candidates=candidates.flip(0))

    An observation is shown as the inputs of all actions in it, [action, *input]; for observations
    that do not depend on the action, `gfucb.environments.with_actions` appends the action.

    Args:
        num_tasks: M.
        horizon: H; stages are numbered 0 .. H - 1.
        representation: the class Phi, as for `GFUCB`; each stage has a phi of its own.
        backup: what stage h + 1 hands to stage h: `pointwise` (default), `literal` (Algorithm 2 as
            printed), `joint`, `randomised`, or a `Backup`; see `gfucb.episodic.backups`.
        seed: all randomness of the agent derives from it.
        fit: least squares; the default is exact for finite classes.
        squared_radius: beta_h as a function of the episode; its root multiplies the width of an
            input. The default is (0.3 times the width of the value range)^2.
        action_selector: solves line 9, for `literal` and the first stage of `joint`.
        ridge: the penalty on heads, in the fit and in the confidence sets.
        head_norm_bound: D of program (1).
        value_range: what sums of expected rewards lie in: 0 <= f <= 1 of program (1).
        reward_range: what expected rewards lie in. With H - h stages to go, values then also lie
            in H - h times this range. None if only `value_range` is known.
        offset: the value of an input whose features are zero; by default 0, or the bottom of a
            `value_range` above it.
        replan: `determinant` plans anew when what was learned in some stage and task since the last
            plan could multiply the determinant of its V by `replan_growth`; `doubling` when
            some stage has that many times the samples; `every` before every episode.
        refit_growth: at a plan, phi is fitted anew if the data of the stage has grown by this.
        share_stages: one phi for all stages, fitted to the targets of the plan before.
        next_targets: networks also learn to predict so many directions of the next observation.
        reward_weight: networks also learn to predict ranks of rewards, of this standard deviation
            (that of inputs is 1). Worth it where rewards are not noisy.
        warm_start: begin a fit of a network at the one before, not at its first weights.
    """

    def __init__(
        self,
        num_tasks: int,
        horizon: int,
        representation: nn.Module | RepresentationClass | None = None,
        *,
        backup: str | Backup = "pointwise",
        seed: int = 0,
        fit: LeastSquares | None = None,
        squared_radius: SquaredRadius | None = None,
        action_selector: ActionSelector | None = None,
        ridge: float = 0.1,
        head_norm_bound: float | None = None,
        value_range: tuple[float, float] | None = (0.0, 1.0),
        reward_range: tuple[float, float] | None = None,
        offset: float | None = None,
        replan: Replanning = "determinant",
        replan_growth: float = 2.0,
        refit_growth: float | None = None,
        share_stages: bool = False,
        next_targets: int = 0,
        reward_weight: float = 0.0,
        warm_start: bool = True,
    ) -> None:
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        self.horizon = validate_count(horizon, "horizon")
        self.representation_class = as_representation_class(representation)
        self.value_range, self.reward_range = validate_ranges(value_range, reward_range)
        self.squared_radius = squared_radius or default_stage_radius(self.value_range)
        solver = action_selector or default_action_selector(self.representation_class)
        self.backup = make_backup(backup, solver) if isinstance(backup, str) else backup
        self.seed = seed
        self.replan, self.replan_growth = check_replanning(replan, replan_growth)
        self.share_stages = share_stages
        next_targets, reward_weight = validate_auxiliary_targets(next_targets, reward_weight)
        self.settings_of_fits = FitSettings(
            num_tasks=self.num_tasks,
            representation_class=self.representation_class,
            fit=fit or default_fit(self.representation_class),
            penalty=HeadPenalty(ridge, head_norm_bound),
            offset=default_offset(self.value_range)
            if offset is None
            else validate_number(offset, "offset"),
            refit_growth=(
                self.representation_class.default_refit_growth
                if refit_growth is None
                else refit_growth
            ),
            next_targets=next_targets,
            reward_weight=reward_weight,
            warm_start=warm_start,
        )
        self.plan_index = 0
        self._forget()

    def _forget(self) -> None:
        self.plan_index = 0
        self._replay = ReplayBuffer(self.num_tasks, self.horizon)
        self._news = InformationGain(self.num_tasks, self.horizon)
        self.fits = [
            StageFit(self.settings_of_fits, self._stage_seed(stage))
            for stage in range(self.horizon)
        ]
        self.plans: list[StagePlan] = []
        self._targets: list[Floats] = [np.zeros(0) for _ in range(self.horizon)]

    @property
    def buffers(self) -> list[StageBuffer]:
        """What was seen of each stage."""
        return self._replay.stages

    @property
    def is_markov(self) -> bool:
        """Whether, between plans, an action depends on its own entry and stage alone."""
        return self.backup.is_markov or (self.backup.name == "literal" and self.num_tasks == 1)

    @gradients_allowed()
    def plan(self, candidates: Any, tasks: Any = None) -> None:
        """Get ready for an episode: lines 2 to 6 of Algorithm 2, if enough was learned since.

        Args:
            candidates: the first observations, [row, action, *input].
            tasks: the task of each entry, [row]; by default all tasks, in order.
        """
        action_sets = self._read(candidates, tasks)
        if self._is_due():
            self._example = action_sets.candidates[0, :1]
            self._plan_all_stages(self._example)
        if isinstance(self.backup, Joint):
            self.plans = plan_jointly(self.backup, self.plans, self.buffers, action_sets)

    def _read(self, candidates: Any, tasks: Any) -> ActionSets:
        """The action_sets, once it is clear that its inputs are like those planned for before."""
        action_sets = validate_action_sets(
            candidates, tasks, None, num_tasks=self.num_tasks, device="cpu"
        )
        if self.plans and action_sets.candidates.shape[2:] != self._example.shape[1:]:
            raise InvalidInputError(
                f"this agent has planned for inputs of shape {list(self._example.shape[1:])}, got "
                f"candidates [row, action, *input] = {list(action_sets.candidates.shape)}"
            )
        return action_sets

    def _plan_all_stages(self, example: Tensor) -> None:
        if self.share_stages:
            # Paper: one phi a stage. Shared, it is fitted to the targets of the plan before: those
            # of this one need it.
            fit_together(self.fits, self.buffers, self._stage_targets, example)
        plans: list[StagePlan] = []
        for stage in reversed(range(self.horizon)):  # line 3; line 2 is the empty list
            memory = self.buffers[stage]
            # Paper: V_{h+1} is the value of the fit. Then nothing unknown further on raises a value
            # here, and the proof, which needs the optimistic value, does not apply: see `backup`.
            next_values = self._place_values(memory, plans[0]) if plans else np.zeros(0)
            targets = memory.targets(next_values)  # R + V_{h+1}(s')
            fitted = self._fit(stage, targets, example)  # line 4: program (1)
            plans.insert(0, self._stage_plan(stage, targets, example, fitted))  # lines 5 and 8
            self._targets[stage] = targets
        self.plans = plans
        self._news = InformationGain(self.num_tasks, self.horizon)
        self.plan_index += 1

    def _place_values(self, memory: StageBuffer, following: StagePlan) -> Floats:
        """V_{h+1} of the places a stage led to: max over actions, in range: [place]."""
        if not len(memory.places):
            return np.zeros(0)
        candidates = memory.places.rows
        places, actions = candidates.shape[:2]
        tasks = memory.places.tasks.repeat_interleave(actions)
        values = self.backup.values(following, candidates.flatten(0, 1), tasks)
        best = following.clip(values.reshape(places, actions).amax(1))
        return np.asarray(best.numpy())

    def _fit(self, stage: int, targets: Floats, example: Tensor) -> Fitted:
        fit, memory = self.fits[stage], self.buffers[stage]
        radius = self._radius(stage, targets)
        if not len(targets):
            return fit.without_data(example, radius)
        if self.share_stages:
            return fit.with_best_heads(memory, targets, radius)
        return fit(memory, targets, radius)

    def _radius(self, stage: int, targets: Floats) -> float:
        """beta_h; t is one more than the largest number of samples a task has."""
        memory = self.buffers[stage]
        if not len(targets):
            return self.squared_radius(1)
        tasks = memory.inputs.tasks.numpy()[memory.played[: len(targets)]]
        return self.squared_radius(1 + int(np.bincount(tasks).max()))

    def _stage_plan(
        self, stage: int, targets: Floats, example: Tensor, fitted: Fitted
    ) -> StagePlan:
        """F_h of line 8, and what the backup wants to know of it."""
        penalty = self.settings_of_fits.penalty
        center = fitted.center
        confidence_set = ConfidenceSet(
            center,
            self.buffers[stage].dataset(targets, example),
            self._radius(stage, targets),
            ridge=penalty.ridge,
            head_norm_bound=penalty.norm_bound,
            members=self.representation_class.members or [center.representation],
            center_statistics=fitted.statistics,
        )
        plan = StagePlan(
            confidence_set,
            fitted.ellipsoids,
            self.range_of(stage),
            member_features=self.settings_of_fits.member_features,
        )
        generator = random_stream(self.seed, "perturb", self.plan_index, stage)
        return self.backup.prepare(plan, generator)

    def range_of(self, stage: int) -> tuple[float, float] | None:
        """What values lie in with the stages from `stage` on to go."""
        if self.reward_range is None:
            return self.value_range
        low, high = self.reward_range
        to_go = self.horizon - stage
        # An episode may end early, so at least one and at most `to_go` rewards follow.
        low, high = min(low, to_go * low), max(high, to_go * high)
        if self.value_range is None:
            return low, high
        return max(low, self.value_range[0]), min(high, self.value_range[1])

    def _stage_targets(self, stage: int) -> Floats:
        """R + V_{h+1}(s') of the samples so far, by the plan there is."""
        memory = self.buffers[stage]
        if stage + 1 == self.horizon or not self.plans:
            return memory.targets(np.zeros(len(memory.places)))
        return memory.targets(self._place_values(memory, self.plans[stage + 1]))

    @gradients_allowed()
    def decide(self, stage: int, candidates: Any, tasks: Any = None) -> Decision:
        """Choose an action in every entry of a stage: line 9 of Algorithm 2.

        Args:
            stage: h, from 0.
            candidates: what can be chosen, [row, action, *input].
            tasks: the task of each entry, [row]; by default all tasks, in order.

        Nothing changes: the same question gets the same answer until the next plan.
        """
        stage = validate_stage(stage, self.horizon)
        action_sets = self._read(candidates, tasks)
        if not self.plans:
            raise InvalidInputError("there is no plan yet; call plan(candidates) before an episode")
        # Paper: f is chosen in line 9, once the state is known, so the next value depends on it.
        # All plans here are fixed when the episode begins; only `literal` chooses f again.
        plan = self.plans[stage]
        actions, values = self.backup.choose(plan, action_sets)
        return action_sets.decision(actions, plan.clip(values))

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: Any,
        next_candidates: Any = None,
        ended: Any = None,
    ) -> None:
        """Learn from what followed a decision: line 10, and the data of the next plan.

        Args:
            stage: the stage of the decision.
            decision: what `decide` returned, or some of its entries.
            rewards: [row].
            next_candidates: what is offered next, [row, action, *input]; None in the last stage.
            ended: where the episode ended, [row] of booleans; by default nowhere, and
                everywhere in the last stage.
        """
        stage, news = self._replay.read(stage, decision, rewards, next_candidates, ended)
        memory = self.buffers[stage]
        played = memory.append(news)
        if not self.plans:
            return
        plan = self.plans[stage]

        def squared_width(task: int, row: int) -> float:
            features = features_of(plan.center.representation, memory.inputs.row(row)[None])
            return float(plan.squared_widths(features, torch.tensor([task])))

        self._news.count(stage, news.tasks, played, squared_width)

    def _is_due(self) -> bool:
        """Whether enough was learned since the last plan."""
        if not self.plans:
            return True
        if self.replan == "determinant":
            return self._news.could_multiply_by(self.replan_growth)
        samples = [(len(m), len(t)) for m, t in zip(self.buffers, self._targets, strict=True)]
        if self.replan == "every":
            return any(now > then for now, then in samples)
        return any(now >= max(then + 1, self.replan_growth * then) for now, then in samples)

    def confidence_set(self, stage: int) -> ConfidenceSet:
        """F_h of the last plan."""
        if not self.plans:
            raise InvalidInputError("there is no plan yet; call plan(candidates) before an episode")
        return self.plans[validate_stage(stage, self.horizon)].confidence_set

    def diagnostics(self) -> Row:
        """How many plans were made, and how many fits of a representation."""
        fits = self.fits[:1] if self.share_stages else self.fits
        return {"plans": self.plan_index, "fits": sum(fit.num_fits for fit in fits)}

    def settings(self) -> dict[str, str]:
        """What an agent must be built with to continue from this one's state."""
        fits = self.settings_of_fits
        return {
            "horizon": str(self.horizon),
            "seed": str(self.seed),
            "backup": self.backup.name,
            "ridge": str(fits.penalty.ridge),
            "head_norm_bound": str(fits.penalty.norm_bound),
            "value_range": str(self.value_range),
            "reward_range": str(self.reward_range),
            "offset": str(fits.offset),
            "replan": f"{self.replan} {self.replan_growth}",
            "refit_growth": str(fits.refit_growth),
            "share_stages": str(self.share_stages),
            "next_targets": str(fits.next_targets),
            "reward_weight": str(fits.reward_weight),
            "warm_start": str(fits.warm_start),
            "fit": type(fits.fit).__name__,
        }

    def state(self) -> dict[str, Tensor]:
        """All that was learned, as named tensors; empty before the first plan."""
        if not self.plans:
            return {}
        beside = [
            fit.state() | {"targets": torch.from_numpy(targets)}
            for fit, targets in zip(self.fits, self._targets, strict=True)
        ]
        return self._replay.state(beside) | {
            "plan_index": torch.tensor(self.plan_index),
            "gains": self._news.state(),
            "example": self._example,
        }

    @gradients_allowed()
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""
        if not state:
            self._forget()
            return
        example = state["example"]
        replay, beside = self._replay.of_state(state)
        targets = [own["targets"].numpy() for own in beside]
        fits = [
            StageFit(self.settings_of_fits, self._stage_seed(stage))
            for stage in range(self.horizon)
        ]
        for fit, own in zip(fits, beside, strict=True):
            fit.load_state(own, example)
        self._forget()
        self._replay, self._news = replay, InformationGain.of_state(state["gains"])
        self.fits, self._targets, self._example = fits, targets, example
        if self.share_stages:
            for fit in self.fits[1:]:
                fit.adopt(self.fits[0].start(example).representation, example)
        # The draws of a plan are named by how many came before it.
        self.plan_index = int(state["plan_index"]) - 1
        self.plans = [
            self._stage_plan(stage, targets[stage], example, self._refitted(stage))
            for stage in range(self.horizon)
        ]
        self.plan_index += 1

    def _refitted(self, stage: int) -> Fitted:
        """The fit of the last plan again, from its targets."""
        targets, fit = self._targets[stage], self.fits[stage]
        radius = self._radius(stage, targets)
        if not len(targets):
            return fit.without_data(self._example, radius)
        return fit.with_best_heads(self.buffers[stage], targets, radius)

    def _stage_seed(self, stage: int) -> int:
        # The first stage draws as a bandit of the same seed would.
        return self.seed if stage == 0 else random_stream(self.seed, "stage", stage).initial_seed()

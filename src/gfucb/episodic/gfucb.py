"""GFUCB for multitask episodic MDPs: Algorithm 2 with optimistic backups (Lu et al., 2022)."""

from __future__ import annotations

import inspect
from typing import Any

from torch import Tensor, nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.memory import memory_of_tasks
from gfucb.core.protocols import (
    ActionSelector,
    Backup,
    LeastSquares,
    RepresentationClass,
    SquaredRadius,
)
from gfucb.core.records import Decision, Row
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.episodes import validate_size, validate_stage
from gfucb.core.validation.settings import validate_ranges
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.class_learner import ClassLearner
from gfucb.episodic.episodic_settings import Range, stage_ranges
from gfucb.episodic.fit_settings import FitSettings
from gfucb.episodic.function_learner import FunctionLearner
from gfucb.episodic.replanning import ReplanKind
from gfucb.episodic.stage_fit import StageFit
from gfucb.episodic.stage_plan import StagePlan
from gfucb.models import ConfidenceSet


class EpisodicGFUCB:
    """Related episodic MDPs with one learned representation per stage and optimistic values.

    >>> import torch, gfucb
    >>> agent = gfucb.EpisodicGFUCB(num_tasks=2, horizon=3, seed=0)
    >>> candidates = torch.rand(2, 4, 5, generator=torch.Generator())  # 2 tasks, 4 actions
    >>> agent.plan(candidates)
    >>> decision = agent.decide(0, candidates)
    >>> agent.observe(0, decision, rewards=[0.1, 0.0], next_candidates=candidates.flip(0))

    With no further argument the agent learns abstract states ("cells"): which observations of a
    stage are one state, from the observations of all tasks; nothing has to be tuned. In linear MDPs
    it learns latent classes of pairs (state, action) too, and uses what predicts better. With a
    `representation` it learns functions of that class instead.

    An observation is given as the inputs of all its actions, [action, *input]; for observations
    that do not depend on the action, `gfucb.with_actions` appends the action.

    Args:
        num_tasks: M.
        horizon: H; stages are numbered 0 .. H - 1.
        representation: the class Phi, as for `GFUCB`; each stage has a phi of its own. By default
            cells or latent classes, see `gfucb.episodic.class_learner`. Some arguments below belong
            to a class: if one is given without a class, the class is a network.
        backup: the values that stage h + 1 passes to stage h: `pointwise` (default), `literal`
            (Algorithm 2 as printed), `joint`, `randomised`, or a `Backup`; see
            `gfucb.episodic.backups`.
        seed: all randomness of the agent derives from it.
        fit: least squares; the default is exact for finite classes.
        squared_radius: beta_h as a function of the episode; the bonus of an input is its root
            times the width of the input. The default is (0.3 times the value range)^2.
        action_selector: solves line 9, for `literal` and the first stage of `joint`.
        ridge: the penalty on heads, in fits and confidence sets.
        head_norm_bound: D of program (1).
        value_range: bounds of the expected *sum* of the rewards of an episode, not of one reward:
            0 <= f <= 1 of program (1). The agent warns once if rewards contradict it.
        reward_range: bounds of expected rewards. With H - h stages left, values then also lie in
            H - h times this range. None if only `value_range` is known.
        offset: the value of an input whose features are zero; by default 0, or the lower end of a
            `value_range` above 0.
        replan: when to plan again. `determinant`: when the transitions since the last plan could
            multiply det V of some stage and task by `replan_growth`; `doubling`: when some stage
            has `replan_growth` times the samples; `every`: before every episode.
        replan_growth: the factor of these rules.
        refit_growth: a plan refits phi if the data of the stage has grown by this factor; by
            default 1.0 for finite classes, 1.3 for others.
        share_stages: one phi for all stages, fitted to the targets of the previous plan.
        next_targets: the number of directions of the next observation that networks also predict.
        reward_weight: the weight of ranks of rewards that networks also predict: their standard
            deviation, where that of inputs is 1. Useful where rewards have little noise.
        warm_start: start the fit of a network from the previous one, not from the initial weights.
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
        replan: ReplanKind = "determinant",
        replan_growth: float = 2.0,
        refit_growth: float | None = None,
        share_stages: bool = False,
        next_targets: int = 0,
        reward_weight: float = 0.0,
        warm_start: bool = True,
    ) -> None:
        self.num_tasks, self.horizon = validate_size(num_tasks, horizon)
        settings: dict[str, Any] = {
            "backup": backup,
            "fit": fit,
            "squared_radius": squared_radius,
            "action_selector": action_selector,
            "ridge": ridge,
            "head_norm_bound": head_norm_bound,
            "offset": offset,
            "replan": replan,
            "replan_growth": replan_growth,
            "refit_growth": refit_growth,
            "share_stages": share_stages,
            "next_targets": next_targets,
            "reward_weight": reward_weight,
            "warm_start": warm_start,
        }
        value_range, reward_range = validate_ranges(value_range, reward_range)
        self.learner: ClassLearner | FunctionLearner
        if representation is None and _are_defaults(settings):
            ranges = stage_ranges(value_range, reward_range, self.horizon)
            self.learner = ClassLearner(self.num_tasks, self.horizon, ranges, seed)
        else:
            settings |= {"value_range": value_range, "reward_range": reward_range, "seed": seed}
            self.learner = FunctionLearner(self.num_tasks, self.horizon, representation, **settings)

    def __repr__(self) -> str:
        return (
            f"EpisodicGFUCB(num_tasks={self.num_tasks}, horizon={self.horizon}, "
            f"{self.learner.describe()}, {self.learner.num_transitions} transitions, "
            f"{self.plan_index} plans)"
        )

    @property
    def plan_index(self) -> int:
        """The number of plans made."""
        return self.learner.plan_index

    @property
    def is_markov(self) -> bool:
        """Whether, between plans, an action depends on its own row and stage alone."""
        return self.learner.is_markov

    def plan(self, candidates: ArrayLike, tasks: ArrayLike | None = None) -> None:
        """Prepare an episode: lines 2 to 8 of Algorithm 2, if a plan is due.

        Args:
            candidates: the first observations, [row, action, *input].
            tasks: the task of each row, [row]; by default all tasks, in order.
        """
        with memory_of_tasks(self.num_tasks):
            self.learner.plan(candidates, tasks)

    def decide(self, stage: int, candidates: ArrayLike, tasks: ArrayLike | None = None) -> Decision:
        """Choose an action for every row of a stage: line 9 of Algorithm 2.

        Args:
            stage: h, from 0.
            candidates: the actions to choose from, [row, action, *input].
            tasks: the task of each row, [row]; by default all tasks, in order.

        Nothing changes: the same arguments give the same decision until the next plan.
        """
        return self.learner.decide(stage, candidates, tasks)

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: ArrayLike,
        next_candidates: ArrayLike | None = None,
        ended: ArrayLike | None = None,
    ) -> None:
        """Learn from the result of a decision: line 10, and the data of the next plan.

        Each call counts, also a second one for the same decision.

        Args:
            stage: the stage of the decision.
            decision: what `decide` returned, or some of its rows.
            rewards: [row].
            next_candidates: the next observations, [row, action, *input]; None in the last stage.
            ended: where the episode ended, [row] of booleans; by default nowhere, and
                everywhere in the last stage.
        """
        self.learner.observe(stage, decision, rewards, next_candidates, ended)

    def range_of(self, stage: int) -> Range | None:
        """The bounds of the values of a stage."""
        return self.learner.range_of(validate_stage(stage, self.horizon))

    def diagnostics(self) -> Row:
        """The number of plans, and of fits of a representation."""
        return self.learner.diagnostics()

    def settings(self) -> dict[str, str]:
        """What an agent must be built with to continue from this one's state."""
        return self.learner.settings()

    def state(self) -> dict[str, Tensor]:
        """All transitions and the last plan, as named tensors; empty for a new agent."""
        return self.learner.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments.

        The whole state is checked before the agent changes.
        """
        self.learner.load_state(state)

    @property
    def _functions(self) -> FunctionLearner:
        if isinstance(self.learner, FunctionLearner):
            return self.learner
        raise InvalidInputError(
            "this agent learns cells, which have no fitted functions; build it with a "
            "representation to look at fits, plans and confidence sets"
        )

    def confidence_set(self, stage: int) -> ConfidenceSet:
        """F_h of the last plan, of an agent with a representation class."""
        return self._functions.confidence_set(stage)

    @property
    def representation_class(self) -> RepresentationClass:
        """Phi."""
        return self._functions.representation_class

    @property
    def backup(self) -> Backup:
        """The variant of Algorithm 2."""
        return self._functions.backup

    @property
    def fit_settings(self) -> FitSettings:
        """The settings of the fits."""
        return self._functions.fit_settings

    @property
    def fits(self) -> list[StageFit]:
        """The fit of each stage, [stage]."""
        return self._functions.fits

    @property
    def plans(self) -> list[StagePlan]:
        """The plan of each stage, [stage]; empty before the first plan."""
        return self._functions.plans

    @property
    def buffers(self) -> list[StageBuffer]:
        """The transitions of each stage, [stage]."""
        return self._functions.buffers


def _are_defaults(settings: dict[str, Any]) -> bool:
    """Whether no setting of agents with a representation class was given."""
    known = inspect.signature(EpisodicGFUCB).parameters
    return all(
        type(value) is type(known[name].default) and value == known[name].default
        for name, value in settings.items()
    )

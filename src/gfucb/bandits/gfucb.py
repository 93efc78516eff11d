"""GFUCB for multitask contextual bandits: Algorithm 1 (Lu et al., 2022, arXiv 2205.15701)."""

from __future__ import annotations

import copy
from typing import Literal

import torch
from torch import Tensor, nn

from gfucb.bandits.bandit_settings import describe_agent, validate_penalty, validate_radius
from gfucb.bandits.build_learner import build_learner
from gfucb.bandits.candidate_learning import candidate_diagnostics
from gfucb.bandits.decision_diagnostics import selection_diagnostics
from gfucb.bandits.default_learner import DefaultLearner
from gfucb.bandits.explained_agent import ExplainedAgent
from gfucb.bandits.forgetting import Forgetting, KeepingRules
from gfucb.bandits.learner import Learner
from gfucb.bandits.log_learning import learn_log
from gfucb.core.action_sets import ActionSets
from gfucb.core.memory import memory_of_tasks
from gfucb.core.protocols import (
    ActionSelector,
    BatchedActionSelector,
    LeastSquares,
    Radius,
    RepresentationClass,
    SelfSupervision,
    SquaredRadius,
)
from gfucb.core.records import Decision, Prediction, Row, Selection
from gfucb.core.shards import num_distinct
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import (
    gradients_allowed,
    validate_catalogue,
    validate_feedback,
    validate_samples,
)
from gfucb.core.validation.components import validate_action_selector
from gfucb.core.validation.settings import validate_count, validate_seed
from gfucb.core.validation.states import validate_state
from gfucb.estimation.calibration import all_scored, with_reward_scale
from gfucb.estimation.radii import initial_radius_state
from gfucb.estimation.reward_scaling import RewardScaling, ValueRange
from gfucb.exploration.default_selectors import TABLE_SELECTOR, default_action_selector
from gfucb.models import ConfidenceSet, as_representation_class
from gfucb.models.head_posterior import HeadPosterior
from gfucb.models.posterior_set import PosteriorSet


class GFUCB(ExplainedAgent):
    """Many related bandits, one learned representation, optimism in the face of uncertainty.

    >>> import torch, gfucb
    >>> agent = gfucb.GFUCB(num_tasks=3, seed=0)
    >>> candidates = torch.linspace(0, 1, 60).reshape(3, 5, 4)  # 3 tasks, 5 actions each
    >>> decision = agent.decide(candidates)
    >>> agent.observe(decision, rewards=[0.1, 0.9, 0.4])
    >>> agent
    GFUCB(num_tasks=3, samples=3, fits=1)

    Args:
        num_tasks: M; tasks are numbered 0 .. M - 1.
        representation: the class Phi: any torch module [n, *input] -> [n, feature] (copied, never
            changed), a `FiniteClass`, `LinearClass`, `NeuralClass` or a class of your own. By
            default it depends on the inputs (`DefaultLearner`): a network for images, and Gaussian
            models in closed form for tables (columns of numbers) and for ids (single integers).
        seed: all randomness of the agent derives from it.
        fit: least squares; the default is exact for finite classes, alternating for linear
            ones, variable projection for networks. A `fit` needs a class: None is then a network.
        squared_radius: beta_t as a function of the round, or a `CalibratedRadius`, the default but
            for tables and ids. It starts at (0.2 times the value range)^2 for each task, then
            follows the prediction errors. The radius of the theory is `CorrectedRadius`.
        action_selector: finds the most optimistic member of the set and its actions; the default
            is exact for finite classes, and varies the heads of the fit otherwise.
        ridge: the penalty on heads, in the fit and in the confidence set; at least 1e-12.
        head_norm_bound: heads also satisfy |w| <= this.
        value_range: the range of expected rewards. It sets the scale of exploration,
            reported values are clipped to it, and rewards that are far from it and from all other
            rewards are clipped. "auto" estimates it from the rewards. None uses rewards as they
            are and clips nothing; only the models of tables and ids still clip outliers.
        offset: the value of an input whose features are zero; by default the middle of
            `value_range`, and 0 if that is None.
        refit_growth: the representation is refitted when the data has grown by this factor;
            1.0 refits at every call of `observe`, as the paper does, and is the default for
            finite classes, 1.1 for ids, 1.3 for others. Heads are updated with every reward.
        self_supervision: trains a network on all offered candidates before each fit, such as
            `Contrastive()`. "auto": this one, for images and the default network. None: nothing.
        forgetting: which rewards still count. `SlidingWindow(n)`: the last n of each task;
            `Discounting(n)`: older ones with a probability that falls exponentially; "auto", or
            `DriftDetection()`: those since the last change of the rewards. None: all.
        max_samples_per_task: about so many samples are stored, a random part of each task's.
        device: where networks and data are stored.
    """

    def __init__(
        self,
        num_tasks: int,
        representation: nn.Module | RepresentationClass | None = None,
        *,
        seed: int = 0,
        fit: LeastSquares | None = None,
        squared_radius: SquaredRadius | Radius | None = None,
        action_selector: ActionSelector | None = None,
        ridge: float = 1.0,
        head_norm_bound: float | None = None,
        value_range: ValueRange = "auto",
        offset: float | None = None,
        refit_growth: float | None = None,
        self_supervision: SelfSupervision | Literal["auto"] | None = "auto",
        forgetting: Forgetting | Literal["auto"] | None = None,
        max_samples_per_task: int | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        self.representation_class = as_representation_class(representation)
        scaling = RewardScaling(value_range, offset)
        self.squared_radius = validate_radius(squared_radius, scaling.value_range)
        self.radius_state = initial_radius_state(self.squared_radius)
        self.action_selector = validate_action_selector(
            default_action_selector(self.representation_class)
            if action_selector is None
            else action_selector
        )
        self.network_learner = build_learner(
            self.num_tasks,
            self.representation_class,
            fit,
            validate_penalty(ridge, head_norm_bound),
            scaling,
            self.action_selector,
            refit_growth=refit_growth,
            seed=validate_seed(seed),
            self_supervision=self_supervision,
            keeping=KeepingRules.of(forgetting, max_samples_per_task),
            device=device,
        )
        self.device = self.network_learner.device
        # Selectors that use only means and widths of the candidates work with any model.
        is_general = action_selector is None or isinstance(action_selector, BatchedActionSelector)
        is_bare = fit is None and head_norm_bound is None and offset is None and ridge == 1
        self.learner: Learner | DefaultLearner = self.network_learner
        if representation is None and is_bare and is_general:
            self.learner = DefaultLearner.beside(self.network_learner)
        self._has_default_radius = squared_radius is None
        self._has_default_selector = action_selector is None
        self._last: tuple[Selection, Prediction] | None = None

    def __repr__(self) -> str:
        samples, fits = self.learner.num_samples, self.learner.num_fits
        return f"GFUCB(num_tasks={self.num_tasks}, samples={samples}, fits={fits})"

    @gradients_allowed()
    def decide(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Choose an action in every row: lines 2 to 4 of Algorithm 1.

        Args:
            candidates: the inputs of all actions, [row, action, *input].
            tasks: the task of each row, [row]; by default all tasks, in order. Tasks may be
                missing, and a task may have several rows.
            available: which actions exist, [row, action] of booleans; by default all.

        A decision changes nothing that was learned: the same call returns the same decision until
        the next reward.
        """
        return self.decide_sets(self._validated(candidates, tasks, available))  # line 3

    @gradients_allowed()
    def decide_sets(self, action_sets: ActionSets) -> Decision:
        """`decide` for contexts and action sets that are checked already."""
        with memory_of_tasks(self.num_tasks):
            confidence_set = self._confidence_set_for(action_sets)  # line 2: F_t
            action_sets = action_sets.caching(confidence_set.center.representation)
            selector = self._selector_for(confidence_set)
            selection = selector(confidence_set, action_sets)  # line 4: f_t and A_t
            return self._decision(confidence_set, action_sets, selection)

    def decide_from(
        self,
        catalogue: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Choose for every row from one catalogue [action, *input] that all rows share.

        The decision is that of `decide` with the catalogue repeated for each row, but every item
        is stored once and its features are computed once: K passes through the network instead of
        M K. `available` [row, action] says which items a row may choose.
        """
        candidates = validate_catalogue(catalogue, tasks, num_tasks=self.num_tasks)
        return self.decide(candidates, tasks, available)

    @gradients_allowed()
    def observe(self, decision: Decision, rewards: ArrayLike) -> None:
        """Learn from rewards [row] of a decision: line 5, and the fit of the next round.

        Rewards may come late, in any order, and for some rows only: pass `decision[rows]`. They
        are at most 1e12 in magnitude. If anything is refused, the agent does not change. Each call
        counts, also a second one for the same decision; `gfucb.Agent` refuses that one.
        """
        tasks, inputs, values = validate_feedback(decision, rewards, num_tasks=self.num_tasks)
        radius_state, shards = self.radius_state, self.network_learner.shards
        if decision.prediction is not None and not self._has_own_radius:
            scored = all_scored(decision.prediction, values, tasks, shards)
            radius_state = radius_state.after(*scored)
        offered = None if decision.offered is None else decision.offered.inputs
        with memory_of_tasks(self.num_tasks):
            self.learner.learn(tasks, inputs, values, decision.valid_features(), offered)
        self.radius_state = with_reward_scale(radius_state, self.learner.scale.scale)

    @gradients_allowed()
    def learn(self, tasks: ArrayLike, inputs: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from samples that are no decision of this agent, such as a log; it may be empty.

        Shapes: tasks [sample], inputs [sample, *input], rewards [sample].
        """
        samples = validate_samples(tasks, inputs, rewards, num_tasks=self.num_tasks)
        with memory_of_tasks(self.num_tasks):
            learn_log(self.learner, *samples)
        self.radius_state = with_reward_scale(self.radius_state, self.learner.scale.scale)

    def add_tasks(self, count: int = 1) -> None:
        """Add tasks, with the next numbers. They start from the prior that all tasks have learned.

        The agent then restores like one that was built with the larger `num_tasks`.
        """
        number, larger = validate_count(count, "count"), self.snapshot()
        with memory_of_tasks(self.num_tasks + number):
            larger.learner.add_tasks(number)
        self.learner, self.network_learner = larger.learner, larger.network_learner
        self.num_tasks = self.network_learner.num_tasks

    def refit(self, *, only_due: bool = False) -> None:
        """Fit all data, or with `only_due` parts whose fit is due; without data nothing changes."""
        refit = self.learner.refit_due if only_due else self.learner.refit
        refit()
        self.radius_state = with_reward_scale(self.radius_state, self.learner.scale.scale)

    def snapshot(self) -> GFUCB:
        """An agent with the same state; what one of them learns does not change the other."""
        same = copy.copy(self)
        same.learner = own = self.learner.snapshot()
        same.network_learner = own if isinstance(own, Learner) else own.network
        return same

    def confidence_set(
        self, inputs: Tensor, *, num_sharing: int | None = None, candidates: Tensor | None = None
    ) -> ConfidenceSet:
        """F_t of equation (*), around the current fit, for inputs like these [n, *input].

        `num_sharing` is the number of tasks that share a calibrated radius, by default all.
        `candidates` [row, action, *input] are those of a decision, if the inputs are.
        """
        center, data, statistics = self.learner.fit_state(inputs, candidates)
        num_sharing = num_sharing or self.num_tasks
        squared_radius = self.radius_state.squared_radius(data.round_index, num_sharing)
        learner = self.network_learner
        if isinstance(statistics, HeadPosterior):
            radius = statistics.squared_radius if self._has_default_radius else squared_radius
            known, own = learner.scaling.stated_range, (center, data.snapshot(), radius)
            return PosteriorSet(*own, posterior=statistics, stated_range=known)
        return ConfidenceSet(
            center,
            data.snapshot(),
            squared_radius,
            ridge=learner.penalty.ridge,
            head_norm_bound=learner.penalty.norm_bound,
            members=self.representation_class.members,
            center_statistics=statistics,
            center_tangents=learner.tangents,
        )

    def _decision(
        self, confidence_set: ConfidenceSet, action_sets: ActionSets, selection: Selection
    ) -> Decision:
        """The decision with its prediction and the features that `observe` uses again."""
        center = confidence_set.center
        features = action_sets.features_of_chosen(center.representation, selection.actions)
        prediction = selection.prediction or confidence_set.head_prediction(
            features, action_sets.tasks
        )
        self._last = (selection, prediction)
        optimistic_values = center.clip(selection.values)
        # Before the first reward an estimated location is unknown: nothing is predicted.
        is_predicted = self.network_learner.scaling.is_located or self.learner.num_samples > 0
        return action_sets.decision(
            selection.actions,
            optimistic_values,
            prediction if is_predicted else None,
            features,
            with_offered=self.learner.uses_candidates(action_sets.items),
        )

    def _confidence_set_for(self, action_sets: ActionSets) -> ConfidenceSet:
        tasks, shards = action_sets.tasks, self.network_learner.shards
        num_sharing = num_distinct(tasks, shards) if self.action_selector.joint else 1
        first = None if self.learner.num_samples else action_sets.offered
        return self.confidence_set(action_sets.items, num_sharing=num_sharing, candidates=first)

    def _selector_for(self, confidence_set: ConfidenceSet) -> ActionSelector:
        is_table = isinstance(confidence_set, PosteriorSet) and self._has_default_selector
        return TABLE_SELECTOR if is_table else self.action_selector

    @property
    def last_selection(self) -> Selection | None:
        """The optimistic function and actions of the last decision; None before the first."""
        return self._last[0] if self._last else None

    def diagnostics(self) -> Row:
        """The number of fits; of the last decision its radius, mean bonus and violation.

        Where they apply also `representation_share` (of the variance) and `coverage` (the share of
        rewards inside the predicted interval).
        """
        fits = {"fits": self.learner.num_fits, **candidate_diagnostics(self.learner.candidates)}
        if self._last is None:
            return fits
        row = {**fits, **selection_diagnostics(*self._last)}
        return row if self._has_own_radius else {**row, **self.radius_state.diagnostics()}

    @property
    def _has_own_radius(self) -> bool:
        """Whether the radius is that of the posterior of a table or a catalogue."""
        return self._has_default_radius and self.learner.has_posterior

    def settings(self) -> dict[str, str]:
        """Everything an agent must be built with to continue from this one's state."""
        return describe_agent(self.network_learner, self.squared_radius, self.action_selector)

    def state(self) -> dict[str, Tensor]:
        """All that was learned, as named tensors."""
        state = self.learner.state()
        return state | self.radius_state.tensors() if state else {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent with the same settings; refuse any other one."""
        validate_state(state)
        radius_state = initial_radius_state(self.squared_radius)
        names = radius_state.tensors().keys()
        if state:
            radius_state = radius_state.restored({n: state[n] for n in names & state.keys()})
        self.learner.load_state({n: t for n, t in state.items() if n not in names})
        self.radius_state = with_reward_scale(radius_state, self.learner.scale.scale)
        self._last = None

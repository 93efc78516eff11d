"""GFUCB for multitask contextual bandits: Algorithm 1 (Lu et al., 2022, arXiv 2205.15701)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gfucb.bandits.learner import Learner
from gfucb.core.protocols import (
    ActionSelector,
    LeastSquares,
    RepresentationClass,
    SquaredRadius,
)
from gfucb.core.records import ActionSets, Decision, Prediction, Row, Selection
from gfucb.core.validation.bandits import (
    gradients_allowed,
    validate_action_sets,
    validate_catalogue,
    validate_feedback,
    validate_samples,
)
from gfucb.core.validation.components import validate_action_selector
from gfucb.core.validation.settings import validate_count, validate_number, validate_pair
from gfucb.estimation import CalibratedRadius
from gfucb.estimation.calibration import Calibration
from gfucb.estimation.defaults import default_fit
from gfucb.exploration.defaults import default_action_selector
from gfucb.models import ConfidenceSet, HeadPenalty, as_representation_class

# Hope before anything is calibrated: this times the width of the value range, for each task.
BONUS_SCALE = 0.2
# What defaults assume of rewards of which nothing is known.
UNKNOWN_RANGE = (-1.0, 1.0)


class GFUCB:
    """Many related bandits, one learned representation, optimism in the face of uncertainty.

    >>> import torch, gfucb
    >>> agent = gfucb.GFUCB(num_tasks=3, seed=0)
    >>> candidates = torch.linspace(0, 1, 60).reshape(3, 5, 4)  # 3 tasks, 5 actions each
    >>> decision = agent.decide(candidates)
    >>> agent.observe(decision, rewards=[0.1, 0.9, 0.4])

    Args:
        num_tasks: M; tasks are numbered 0 .. M - 1.
        representation: the class Phi: any torch module [n, *input] -> [n, feature] (copied, never
            changed), a `FiniteClass`, `LinearClass` or `NeuralClass`. None builds a small
            network suited to the inputs, which ends with `FourierFeatures`.
        seed: all randomness of the agent derives from it.
        fit: least squares; the default is exact for finite classes, alternating for linear
            ones, variable projection for networks.
        squared_radius: beta_t as a function of the round, or a `CalibratedRadius`, the default: it
            begins at (0.2 times the value range)^2 for each task that is asked, and follows the
            errors that rewards show. `CorrectedRadius` is the theory's.
        action_selector: finds the most optimistic member of the set; the default is exact for
            finite classes, and over the heads of the fitted representation otherwise.
        ridge: the penalty on heads, in the fit and in the confidence set.
        head_norm_bound: heads also satisfy |w| <= this.
        value_range: what expected rewards lie in. It sets the scale of the default radius,
            and reported values are clipped to it. None if nothing is known.
        offset: the value of an input whose features are zero; the middle of `value_range`.
        refit_growth: the representation is fitted anew when the data has grown by this factor;
            1.0 fits at every call of `observe`, as the paper does, and is the default for finite
            classes, 1.3 for others. Heads always follow at once.
        device: where networks and data live.
    """

    def __init__(
        self,
        num_tasks: int,
        representation: nn.Module | RepresentationClass | None = None,
        *,
        seed: int = 0,
        fit: LeastSquares | None = None,
        squared_radius: SquaredRadius | CalibratedRadius | None = None,
        action_selector: ActionSelector | None = None,
        ridge: float = 1.0,
        head_norm_bound: float | None = None,
        value_range: tuple[float, float] | None = (0.0, 1.0),
        offset: float | None = None,
        refit_growth: float | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        self.representation_class = as_representation_class(representation)
        if value_range is not None:
            value_range = validate_pair(value_range, "value_range")
        low, high = value_range or UNKNOWN_RANGE
        self.squared_radius = squared_radius or default_radius((low, high))
        self.calibration = (
            Calibration.begin(self.squared_radius)
            if isinstance(self.squared_radius, CalibratedRadius)
            else None
        )
        self.action_selector = validate_action_selector(
            action_selector or default_action_selector(self.representation_class)
        )
        self.learner = Learner(
            num_tasks=self.num_tasks,
            representation_class=self.representation_class,
            fit=fit or default_fit(self.representation_class),
            penalty=HeadPenalty(ridge, head_norm_bound),
            offset=(low + high) / 2 if offset is None else validate_number(offset, "offset"),
            value_range=value_range,
            refit_growth=(
                self.representation_class.default_refit_growth
                if refit_growth is None
                else refit_growth
            ),
            seed=seed,
            device=device,
            sketch=self.action_selector.weight_statistics,
            perturbation=self.action_selector.reward_perturbation,
        )
        self._last: tuple[Selection, Prediction] | None = None

    @gradients_allowed()
    def decide(self, candidates: Any, tasks: Any = None, available: Any = None) -> Decision:
        """Choose an action in every entry: lines 2 to 4 of Algorithm 1.

        Args:
            candidates: what can be chosen, [row, action, *input].
            tasks: the task of each entry, [row]; by default all tasks, in order. Any subset
                will do, and a task may stand more than once.
            available: which actions exist, [row, action] of booleans; by default all.

        Nothing that was learned changes: the same question gets the same answer until the
        next reward.
        """
        action_sets = validate_action_sets(  # line 3: contexts and action sets
            candidates, tasks, available, num_tasks=self.num_tasks, device=self.learner.device
        )
        confidence_set = self.confidence_set(
            action_sets.items, asked=self._sharers(action_sets)
        )  # line 2: F_t
        choice = self.action_selector(confidence_set, action_sets)  # line 4: f_t and A_t
        prediction = choice.prediction or head_prediction(
            confidence_set, action_sets, choice.actions
        )
        optimistic_values = confidence_set.center.clip(choice.values)
        decision = action_sets.decision(choice.actions, optimistic_values, prediction)
        self._last = (choice, prediction)
        return decision

    def decide_from(self, catalogue: Any, tasks: Any = None, available: Any = None) -> Decision:
        """Choose for every entry from one catalogue [action, *input] that all entries share.

        The decision is that of `decide` with the catalogue repeated for each entry; but every
        item is held and represented once: K passes through the network instead of M K. Not
        everything must be on offer everywhere: `available` [row, action] says what is.
        """
        candidates = validate_catalogue(catalogue, tasks, num_tasks=self.num_tasks)
        return self.decide(candidates, tasks, available)

    @gradients_allowed()
    def observe(self, decision: Decision, rewards: Any) -> None:
        """Learn from rewards [row] of a decision: line 5, and the fit of the next round.

        Rewards may come late, in any order, and for some entries only: pass `decision[entries]`.
        """
        tasks, inputs, read = validate_feedback(decision, rewards, num_tasks=self.num_tasks)
        self.learner.learn(tasks, inputs, read)
        if self.calibration is not None and decision.prediction is not None:
            self.calibration = self.calibration.after(decision.prediction, read)

    @gradients_allowed()
    def learn(self, tasks: Any, inputs: Any, rewards: Any) -> None:
        """Learn from samples that are no decision of this agent, such as a log.

        Shapes: tasks [sample], inputs [sample, *input], rewards [sample].
        """
        samples = validate_samples(tasks, inputs, rewards, num_tasks=self.num_tasks)
        self.learner.learn(*samples)

    def confidence_set(self, inputs: Tensor, *, asked: int | None = None) -> ConfidenceSet:
        """F_t of equation (*), around the current fit, for inputs like these [n, *input].

        A calibrated radius is so much for each of the tasks `asked` that share it, by default all.
        """
        center, data, statistics = self.learner.fit_state(inputs)
        if self.calibration is not None:
            # Paper: one radius for all tasks, whoever takes part. A task that is asked alone
            # would then have the bonus_scale of M tasks to itself.
            squared_radius = self.calibration.squared_radius(asked or self.num_tasks)
        else:
            assert not isinstance(self.squared_radius, CalibratedRadius)
            squared_radius = self.squared_radius(data.round_index)
        return ConfidenceSet(
            center,
            data.snapshot(),
            squared_radius,
            ridge=self.learner.penalty.ridge,
            head_norm_bound=self.learner.penalty.norm_bound,
            members=self.representation_class.members,
            center_statistics=statistics,
            center_tangents=self.learner.tangents,
        )

    def _sharers(self, action_sets: ActionSets) -> int:
        """How many tasks share the radius: one where each row uses the whole radius."""
        return len(action_sets.tasks.unique()) if self.action_selector.joint else 1

    @property
    def last_choice(self) -> Selection | None:
        """The optimistic function and actions of the last decision; None before the first."""
        return self._last[0] if self._last else None

    def diagnostics(self) -> Row:
        """Facts about the last decision: radius, mean bonus, violation; and the number of fits.

        Where they apply also the share of the squared widths that is due to the representation,
        and the coverage: the share of rewards within the width predicted for them.
        """
        if self._last is None:
            return {"fits": self.learner.num_fits}
        choice, prediction = self._last
        row = {
            "fits": self.learner.num_fits,
            "squared_radius": choice.squared_radius,
            "bonus": float((choice.values - prediction.mean).mean()),
            "violation": choice.violation,
        }
        if choice.representation_widths is not None:
            share = choice.representation_widths.sum() / prediction.variance.sum()
            row["representation_share"] = float(share)
        if self.calibration is not None:
            row["coverage"] = self.calibration.coverage
        return row

    def settings(self) -> dict[str, str]:
        """What an agent must be built with to continue from this one's state."""
        learner = self.learner
        return {
            "seed": str(learner.seed),
            "ridge": str(learner.penalty.ridge),
            "head_norm_bound": str(learner.penalty.norm_bound),
            "value_range": str(learner.value_range),
            "offset": str(learner.offset),
            "refit_growth": str(learner.refit_growth),
            "fit": type(learner.fit).__name__,
            "squared_radius": type(self.squared_radius).__name__,
            "action_selector": type(self.action_selector).__name__,
        }

    def state(self) -> dict[str, Tensor]:
        """All that was learned, as named tensors."""
        state = self.learner.state()
        return state | self.calibration.tensors() if self.calibration and state else state

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""
        calibration = self.calibration and self.calibration.restored(state)
        self.learner.load_state(state)
        self.calibration = calibration


def default_radius(value_range: tuple[float, float]) -> CalibratedRadius:
    """Begins at a share of the value range for each task, then follows what rewards show."""
    low, high = value_range
    return CalibratedRadius(start=BONUS_SCALE * (high - low))


def head_prediction(
    confidence_set: ConfidenceSet, action_sets: ActionSets, actions: Tensor
) -> Prediction:
    """Estimates at the chosen actions, and the widths that the heads of the fit have there."""
    center, ellipsoid = confidence_set.center, confidence_set.ellipsoid()
    assert ellipsoid is not None, "the center is in its own confidence set"
    features = action_sets.features_of_chosen(center.representation, actions)
    return Prediction(
        center.values_of_features(features, action_sets.tasks),
        ellipsoid.squared_widths(features.unsqueeze(1), action_sets.tasks).squeeze(1),
    )

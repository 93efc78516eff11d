"""GFUCB for multitask contextual bandits: Algorithm 1 (Lu et al., 2022, arXiv 2205.15701)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from gfucb.agents.doors import (
    gradients_allowed,
    positive_count,
    read_feedback,
    read_menu,
    read_samples,
)
from gfucb.agents.learner import Learner, as_class, check_value_range
from gfucb.contracts import (
    Decision,
    LeastSquares,
    OptimismSolver,
    OptimisticChoice,
    Row,
    SquaredRadius,
)
from gfucb.errors import InvalidInputError
from gfucb.estimation import Alternating, ConstantRadius, Exhaustive, VariableProjection
from gfucb.functions import (
    ConfidenceSet,
    FiniteClass,
    HeadPenalty,
    LinearClass,
    MultiheadFunction,
    RepresentationClass,
)
from gfucb.optimism import ExactFinite, LastLayer

# The default squared radius is (this times the width of the value range)^2 for each task.
DEFAULT_HOPE = 0.2
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
            network suited to the inputs.
        seed: all randomness of the agent derives from it.
        fit: least squares; the default is exact for finite classes, alternating for linear
            ones, variable projection for networks.
        squared_radius: beta_t as a function of the round; the default, (0.2 times the value
            range)^2 for each task, is a practical constant. `CorrectedRadius` is the theory's.
        optimism: finds the most hopeful member of the set; the default is exact for finite
            classes, and over the heads of the fitted representation otherwise.
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
        squared_radius: SquaredRadius | None = None,
        optimism: OptimismSolver | None = None,
        ridge: float = 1.0,
        head_norm_bound: float | None = None,
        value_range: tuple[float, float] | None = (0.0, 1.0),
        offset: float | None = None,
        refit_growth: float | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.num_tasks = positive_count(num_tasks, "num_tasks")
        self.representation_class = as_class(representation)
        value_range = check_value_range(value_range)
        low, high = value_range or UNKNOWN_RANGE
        self.squared_radius = squared_radius or default_radius(num_tasks, (low, high))
        self.most_optimistic = optimism or default_optimism(self.representation_class)
        self.learner = Learner(
            num_tasks=self.num_tasks,
            representation_class=self.representation_class,
            fit=fit or default_fit(self.representation_class),
            penalty=HeadPenalty(ridge, head_norm_bound),
            offset=(low + high) / 2 if offset is None else check_offset(offset),
            value_range=value_range,
            refit_growth=default_growth(self.representation_class, refit_growth),
            seed=seed,
            device=device,
        )
        self._last: tuple[MultiheadFunction, OptimisticChoice, Decision] | None = None

    @gradients_allowed()
    def decide(self, candidates: Any, tasks: Any = None, available: Any = None) -> Decision:
        """Choose an action in every entry: lines 2 to 4 of Algorithm 1.

        Args:
            candidates: what can be chosen, [entry, action, *input].
            tasks: the task of each entry, [entry]; by default all tasks, in order. Any subset
                will do, and a task may stand more than once.
            available: which actions exist, [entry, action] of booleans; by default all.

        Nothing that was learned changes: the same question gets the same answer until the
        next reward.
        """
        menu = read_menu(  # line 3: contexts and action sets
            candidates, tasks, available, num_tasks=self.num_tasks, device=self.learner.device
        )
        confidence_set = self.confidence_set(menu.candidates.flatten(0, 1))  # line 2: F_t
        choice = self.most_optimistic(confidence_set, menu)  # line 4: f_t and A_t
        decision = menu.decision(choice.actions, confidence_set.center.clip(choice.values))
        self._last = (confidence_set.center, choice, decision)
        return decision

    @gradients_allowed()
    def observe(self, decision: Decision, rewards: Any) -> None:
        """Learn from rewards [entry] of a decision: line 5, and the fit of the next round.

        Rewards may come late, in any order, and for some entries only: pass `decision[entries]`.
        """
        self.learner.learn(*read_feedback(decision, rewards, num_tasks=self.num_tasks))

    @gradients_allowed()
    def learn(self, tasks: Any, inputs: Any, rewards: Any) -> None:
        """Learn from samples that are no decision of this agent, such as a log.

        Shapes: tasks [sample], inputs [sample, *input], rewards [sample].
        """
        samples = read_samples(tasks, inputs, rewards, num_tasks=self.num_tasks)
        self.learner.learn(*samples)

    def confidence_set(self, inputs: Tensor) -> ConfidenceSet:
        """F_t of equation (*), around the current fit, for inputs like these [n, *input]."""
        center, data, statistics = self.learner.belief(inputs)
        known = self.representation_class
        return ConfidenceSet(
            center,
            data.snapshot(),
            self.squared_radius(data.round_index),
            ridge=self.learner.penalty.ridge,
            head_norm_bound=self.learner.penalty.norm_bound,
            members=known.members if isinstance(known, FiniteClass) else None,
            center_statistics=statistics,
        )

    @property
    def last_choice(self) -> OptimisticChoice | None:
        """The optimistic function and actions of the last decision; None before the first."""
        return self._last[1] if self._last else None

    def diagnostics(self) -> Row:
        """Facts about the last decision: radius, mean bonus, violation; and the number of fits."""
        if self._last is None:
            return {"fits": self.learner.num_fits}
        center, choice, decision = self._last
        estimates = center.values(decision.inputs, decision.tasks)
        return {
            "fits": self.learner.num_fits,
            "squared_radius": choice.squared_radius,
            "bonus": float((choice.values - estimates).mean()),
            "violation": choice.violation,
        }

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
            "optimism": type(self.most_optimistic).__name__,
        }

    def state(self) -> dict[str, Tensor]:
        """All that was learned, as named tensors."""
        return self.learner.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""
        self.learner.load_state(state)


def default_radius(num_tasks: int, value_range: tuple[float, float]) -> ConstantRadius:
    """A constant for each task, chosen on digits; it grows with M because the tasks share it."""
    # Paper: beta_t grows with log t and is far too large to be used; its experiments tune one
    # schedule for a single task. A constant in units of the value range did as well here.
    low, high = value_range
    return ConstantRadius(num_tasks * (DEFAULT_HOPE * (high - low)) ** 2)


def default_growth(
    representation_class: RepresentationClass | None, refit_growth: float | None
) -> float:
    """Exact fits are cheap and exactness is their point; one representation needs one fit."""
    if refit_growth is not None:
        return refit_growth
    if isinstance(representation_class, FiniteClass):
        return 1.0 if len(representation_class.members) > 1 else math.inf
    return 1.3


def check_offset(offset: float) -> float:
    """A finite number."""
    if not math.isfinite(offset):
        raise InvalidInputError(f"offset must be finite, got {offset}")
    return float(offset)


def default_fit(representation_class: RepresentationClass | None) -> LeastSquares:
    """Exact where the class allows it, variable projection for networks."""
    if isinstance(representation_class, FiniteClass):
        return Exhaustive(representation_class)
    if isinstance(representation_class, LinearClass):
        return Alternating(representation_class)
    return VariableProjection()


def default_optimism(representation_class: RepresentationClass | None) -> OptimismSolver:
    """Exact for a finite class, over the heads of the fitted representation otherwise."""
    # Paper: f ranges over the whole set, representation included. For networks that is the
    # fine-tuning of section 6.2, hundreds of passes over the data for every decision.
    return ExactFinite() if isinstance(representation_class, FiniteClass) else LastLayer()

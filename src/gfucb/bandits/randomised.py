"""Decisions that are drawn at random, with the exact probabilities of the draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, cast

import torch
from torch import Tensor

from gfucb.bandits.baselines import AGENT_METHODS
from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.features import features_of
from gfucb.core.nested import below, nested_settings, with_prefix
from gfucb.core.protocols import BanditAgent, Representation
from gfucb.core.random import draw_actions, random_stream
from gfucb.core.records import ChosenFeatures, Decision, Row
from gfucb.core.setting_descriptions import describe_setting
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import (
    gradients_allowed,
    validate_action_sets,
    validate_catalogue,
)
from gfucb.core.validation.distributions import uniform_distribution, validate_distribution
from gfucb.core.validation.settings import validate_methods, validate_number, validate_seed
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.models import ConfidenceSet

HoldbackPolicy = Literal["uniform"] | Callable[[Tensor, Tensor, Tensor], Any]


class ActionDistribution(Protocol):
    """Probabilities of actions from a confidence set: `InverseGap`, `ThompsonSampling`."""

    @property
    def monte_carlo_samples(self) -> int | None:
        """How many samples estimate a probability; None if it is exact."""

    def distribution(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Tensor:
        """Return the probabilities of all actions, [row, action]; the same for the same rewards."""


class HasConfidenceSet(Protocol):
    """An agent from whose confidence set a distribution follows, such as `GFUCB`."""

    def confidence_set(
        self, inputs: Tensor, *, num_sharing: int | None, candidates: Tensor | None
    ) -> ConfidenceSet:
        """Return the confidence set for inputs like these [n, *input]."""


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Probabilities [row, action] of one call, and what they were computed from.

    Attributes:
        probabilities: of all actions, on the CPU.
        samples: that estimate them; None if they are exact.
        decision: of the agent, if it made one.
        representation: of the agent, if it is known.
    """

    probabilities: Tensor
    samples: int | None
    decision: Decision | None
    representation: Representation | None


class Randomised:
    """An agent whose actions are drawn at random, with known probabilities for a log.

    The probability of an action is

        (1 - holdback) ((1 - epsilon) p(action) + epsilon / K) + holdback q(action),

    where p is the distribution, K the number of available actions, and q the holdback policy. The
    decision has the `probabilities` of the chosen actions and the `action_probabilities` of all
    actions, from which `gfucb.evaluation` estimates the value of other policies.

    Every call of `decide` makes new draws. They depend on the seed, on the number of decisions so
    far and on the position of the row, so a log of many decisions between two rewards has
    independent draws. A decision changes nothing that was learned, only this number, which is part
    of the state. `action_probabilities` answers without a draw, and changes nothing.

    >>> import torch, gfucb
    >>> agent = gfucb.Randomised(gfucb.GFUCB(num_tasks=2, seed=0), epsilon=0.3, seed=0)
    >>> decision = agent.decide(torch.linspace(0, 1, 24).reshape(2, 3, 4))
    >>> sorted(round(p, 3) for p in decision.action_probabilities[0].tolist())
    [0.1, 0.1, 0.8]

    Args:
        agent: any agent. If `distribution` is given, one with a confidence set, such as `GFUCB`.
        distribution: p, such as `InverseGap()` or `ThompsonSampling()`. By default the action that
            the agent chooses has all the probability, or those of its own decision if it is random.
        epsilon: each available action has at least the probability (1 - holdback) epsilon / K.
        holdback: the share of rows in which the holdback policy decides.
        holdback_policy: "uniform", or a function (candidates, tasks, available) -> probabilities
            [row, action] that never changes.
        seed: of the draws.
    """

    def __init__(
        self,
        agent: BanditAgent,
        *,
        distribution: ActionDistribution | None = None,
        epsilon: float = 0.0,
        holdback: float = 0.0,
        holdback_policy: HoldbackPolicy = "uniform",
        seed: int = 0,
    ) -> None:
        self.agent = validate_methods(agent, "agent", AGENT_METHODS)
        if distribution is not None:
            validate_methods(distribution, "distribution", ("distribution",))
            validate_methods(agent, "an agent with a distribution", ("confidence_set",))
            if not hasattr(distribution, "monte_carlo_samples"):
                raise InvalidInputError(
                    "distribution must have the attribute monte_carlo_samples, None if its "
                    f"probabilities are exact, got {distribution!r}"
                )
        self.distribution = distribution
        self.epsilon = validate_number(epsilon, "epsilon", at_least=0.0, at_most=1.0)
        self.holdback = validate_number(holdback, "holdback", at_least=0.0, at_most=1.0)
        if holdback_policy != "uniform" and not callable(holdback_policy):
            raise InvalidInputError(
                'holdback_policy must be "uniform" or a function (candidates, tasks, available) -> '
                f"probabilities [row, action], got {holdback_policy!r}"
            )
        self.holdback_policy = holdback_policy
        self.seed = validate_seed(seed)
        self.num_decisions = 0

    def __repr__(self) -> str:
        return f"Randomised({self.agent!r}, epsilon={self.epsilon:g}, holdback={self.holdback:g})"

    @property
    def num_tasks(self) -> int:
        """M."""
        return self.agent.num_tasks

    def decide(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Draw an action in every row; see `GFUCB.decide` for the arguments."""
        action_sets = self._validated(candidates, tasks, available)
        mixture = self._mixture(action_sets)
        generator = random_stream(self.seed, "randomised", self.num_decisions)
        actions = draw_actions(mixture.probabilities, generator)
        decision = mixture.decision
        if decision is None or not torch.equal(actions, decision.actions.cpu()):
            decision = self._forced(action_sets, actions, mixture.representation)
        self.num_decisions += 1
        probabilities = mixture.probabilities.to(decision.actions.device)
        return decision.drawn_from(probabilities, mixture.samples)

    def decide_from(
        self,
        catalogue: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Draw for every row from one catalogue [action, *input] that all rows share."""
        candidates = validate_catalogue(catalogue, tasks, num_tasks=self.num_tasks)
        return self.decide(candidates, tasks, available)

    def action_probabilities(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Tensor:
        """With which probabilities `decide` would draw, [row, action]. Nothing changes."""
        return self._mixture(self._validated(candidates, tasks, available)).probabilities

    def _validated(self, candidates: Any, tasks: Any, available: Any) -> ActionSets:
        return validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )

    def _mixture(self, action_sets: ActionSets) -> _Mixture:
        """The probabilities of all actions, and what was computed for them."""
        own = self._own_distribution(action_sets)
        uniform = uniform_distribution(action_sets.available)
        probabilities = (1 - self.epsilon) * own.probabilities + self.epsilon * uniform
        if self.holdback > 0:
            held_back = uniform
            if callable(self.holdback_policy):
                given = self.holdback_policy(
                    action_sets.candidates, action_sets.tasks, action_sets.available
                )
                name = "the probabilities of the holdback policy"
                held_back = validate_distribution(given, action_sets.available, name)
            probabilities = (1 - self.holdback) * probabilities + self.holdback * held_back
        return replace(own, probabilities=probabilities)

    def _own_distribution(self, action_sets: ActionSets) -> _Mixture:
        """The probabilities p of the class docstring."""
        if self.distribution is not None:
            return self._from_confidence_set(action_sets, self.distribution)
        decision = self.agent.decide(
            action_sets.candidates, action_sets.tasks, action_sets.available
        )
        given = decision.action_probabilities
        if given is None:
            chosen = decision.actions.cpu()[:, None]
            given = torch.zeros(action_sets.available.shape, dtype=torch.float64)
            given = given.scatter(1, chosen, 1.0)
        features = decision.features
        representation = features.representation if isinstance(features, ChosenFeatures) else None
        return _Mixture(given.cpu(), decision.monte_carlo_samples, decision, representation)

    @gradients_allowed()
    def _from_confidence_set(
        self, action_sets: ActionSets, distribution: ActionDistribution
    ) -> _Mixture:
        agent = cast(HasConfidenceSet, self.agent)
        # Draws are independent, so no row shares its radius with others. Candidates show the
        # layout of a table before the first reward.
        confidence_set = agent.confidence_set(
            action_sets.items, num_sharing=1, candidates=action_sets.offered
        )
        device = confidence_set.center.heads.device
        own = ActionSets(
            action_sets.candidates.to(device),
            action_sets.tasks.to(device),
            action_sets.available.to(device),
        ).caching(confidence_set.center.representation)
        given = distribution.distribution(confidence_set, own).detach()
        name = "the probabilities of the distribution"
        checked = validate_distribution(given, action_sets.available, name)
        samples = distribution.monte_carlo_samples
        return _Mixture(checked, samples, None, confidence_set.center.representation)

    def _forced(
        self, action_sets: ActionSets, actions: Tensor, representation: Representation | None
    ) -> Decision:
        """The decision of the agent where only the drawn actions [row] are available."""
        only = action_sets.restricted_to(actions).available
        decision = self.agent.decide(action_sets.candidates, action_sets.tasks, only)
        if not isinstance(decision.features, ChosenFeatures) or representation is None:
            return decision
        if decision.features.representation is representation:
            return decision
        # Before the first reward, one action does not show the layout of a table.
        values = features_of(representation, decision.inputs)
        features = ChosenFeatures.of(representation, decision.inputs, values)
        return replace(decision, features=features)

    def observe(self, decision: Decision, rewards: ArrayLike) -> None:
        """Pass the rewards to the agent."""
        self.agent.observe(decision, cast(Tensor, rewards))

    def diagnostics(self) -> Row:
        """Those of the agent."""
        return self.agent.diagnostics()

    def state(self) -> dict[str, Tensor]:
        """The state of the agent, and the number of decisions, which selects the draws."""
        own = {"num_decisions": torch.tensor(self.num_decisions)}
        return with_prefix("agent/", self.agent.state()) | own

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""
        validate_state_names(state, ["num_decisions"], optional_prefixes=["agent/"])
        number = validate_state_tensor(state, "num_decisions", (), dtype=torch.int64, low=0)
        self.agent.load_state(below("agent/", state))
        self.num_decisions = int(number)

    def settings(self) -> dict[str, str]:
        """The distribution, its mixture, the seed of the draws, and the settings of the agent."""
        own = {
            "distribution": describe_setting(self.distribution),
            "epsilon": str(self.epsilon),
            "holdback": str(self.holdback),
            "holdback_policy": describe_setting(self.holdback_policy),
            "seed": str(self.seed),
        }
        return own | nested_settings({"agent/": self.agent})

"""The random draw of a decision: a value that works with any agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, cast

import torch
from torch import Tensor

from gfucb.core.action_probabilities import certain_distribution, uniform_distribution
from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.features import features_of
from gfucb.core.offered_candidates import OfferedCandidates
from gfucb.core.protocols import BanditAgent, Representation
from gfucb.core.random import draw_actions, random_stream
from gfucb.core.records import ChosenFeatures, Decision
from gfucb.core.validation.bandits import gradients_allowed
from gfucb.core.validation.distributions import validate_distribution
from gfucb.core.validation.settings import validate_methods, validate_number, validate_seed
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

    @property
    def device(self) -> torch.device:
        """Where its data is stored."""

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


@dataclass(frozen=True)
class Randomisation:
    """How actions are drawn, with known probabilities.

    The probability of an action is

        (1 - holdback) ((1 - epsilon) p(action) + epsilon / K) + holdback q(action),

    where p is the distribution, K the number of available actions, and q the holdback policy.

    Args:
        distribution: p, such as `InverseGap()` or `ThompsonSampling()`. By default the action that
            the agent chooses has all the probability, or those of its own decision if it is random.
        epsilon: each available action has at least the probability (1 - holdback) epsilon / K.
        holdback: the share of rows in which the holdback policy decides.
        holdback_policy: "uniform", or a function (candidates, tasks, available) -> probabilities
            [row, action] that never changes.
        seed: of the draws.
    """

    distribution: ActionDistribution | None = None
    epsilon: float = 0.0
    holdback: float = 0.0
    holdback_policy: HoldbackPolicy = "uniform"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.distribution is not None:
            example = "gfucb.exploration.ThompsonSampling()"
            validate_methods(self.distribution, "distribution", ("distribution",), example)
            if not hasattr(self.distribution, "monte_carlo_samples"):
                raise InvalidInputError(
                    "distribution must have the attribute monte_carlo_samples, None if its "
                    f"probabilities are exact, got {self.distribution!r}"
                )
        validate_number(self.epsilon, "epsilon", at_least=0.0, at_most=1.0)
        validate_number(self.holdback, "holdback", at_least=0.0, at_most=1.0)
        if self.holdback_policy != "uniform" and not callable(self.holdback_policy):
            raise InvalidInputError(
                'holdback_policy must be "uniform" or a function (candidates, tasks, available) -> '
                f"probabilities [row, action], got {self.holdback_policy!r}"
            )
        validate_seed(self.seed)

    def require_agent(self, agent: BanditAgent) -> None:
        """Refuse an agent without what the distribution needs."""
        if self.distribution is not None:
            validate_methods(agent, "an agent with a distribution", ("confidence_set",))

    def decide(self, agent: BanditAgent, action_sets: ActionSets, number: int) -> Decision:
        """Draw an action in every row, with the draws of the decision with this number."""
        mixture = self._mixture(agent, action_sets)
        generator = random_stream(self.seed, "randomised", number)
        actions = draw_actions(mixture.probabilities, generator)
        decision = mixture.decision
        if decision is None or not torch.equal(actions, decision.actions.cpu()):
            decision = _forced(agent, action_sets, actions, mixture.representation)
        probabilities = mixture.probabilities.to(decision.actions.device)
        return decision.drawn_from(probabilities, mixture.samples)

    def action_probabilities(self, agent: BanditAgent, action_sets: ActionSets) -> Tensor:
        """With which probabilities `decide` draws, [row, action]. Nothing changes."""
        return self._mixture(agent, action_sets).probabilities

    def _mixture(self, agent: BanditAgent, action_sets: ActionSets) -> _Mixture:
        """The probabilities of all actions, and what was computed for them."""
        own = self._own_distribution(agent, action_sets)
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

    def _own_distribution(self, agent: BanditAgent, action_sets: ActionSets) -> _Mixture:
        """The probabilities p of the class docstring."""
        if self.distribution is not None:
            return _from_confidence_set(
                cast(HasConfidenceSet, agent), action_sets, self.distribution
            )
        decision = agent.decide(action_sets.candidates, action_sets.tasks, action_sets.available)
        given = decision.action_probabilities
        if given is None:
            given = certain_distribution(decision.actions, action_sets.available.shape[1])
        samples = decision.monte_carlo_samples
        return _Mixture(given.cpu(), samples, decision, representation_of(decision))


@gradients_allowed()
def _from_confidence_set(
    agent: HasConfidenceSet, action_sets: ActionSets, distribution: ActionDistribution
) -> _Mixture:
    """The probabilities of a distribution, from the confidence set of the agent."""
    own = ActionSets(
        action_sets.candidates.to(agent.device),
        action_sets.tasks.to(agent.device),
        action_sets.available.to(agent.device),
    )
    # Draws are independent, so no row shares its radius with others. Candidates show the layout of
    # a table before the first reward.
    confidence_set = agent.confidence_set(own.items, num_sharing=1, candidates=own.offered)
    own = own.caching(confidence_set.center.representation)
    given = distribution.distribution(confidence_set, own).detach()
    name = "the probabilities of the distribution"
    checked = validate_distribution(given, action_sets.available, name)
    samples = distribution.monte_carlo_samples
    return _Mixture(checked, samples, None, confidence_set.center.representation)


def _forced(
    agent: BanditAgent,
    action_sets: ActionSets,
    actions: Tensor,
    representation: Representation | None,
) -> Decision:
    """The decision of the agent where only the drawn actions [row] are available."""
    only = action_sets.restricted_to(actions).available
    decision = agent.decide(action_sets.candidates, action_sets.tasks, only)
    if decision.offered is not None:
        device = decision.inputs.device
        offered = OfferedCandidates(
            action_sets.candidates.to(device), action_sets.available.to(device)
        )
        decision = replace(decision, offered=offered)
    return with_representation(decision, representation)


def representation_of(decision: Decision) -> Representation | None:
    """The representation under which the features of a decision were computed, if it is one."""
    features = decision.features
    return features.representation if isinstance(features, ChosenFeatures) else None


def with_representation(decision: Decision, representation: Representation | None) -> Decision:
    """The decision with features under the representation of another decision on the same rows.

    Before the first reward the representation of a table has the layout of its columns, which
    rows with a single available action do not show.
    """
    own = representation_of(decision)
    if own is None or representation is None or own is representation:
        return decision
    values = features_of(representation, decision.inputs)
    features = ChosenFeatures.of(representation, decision.inputs, values)
    return replace(decision, features=features)

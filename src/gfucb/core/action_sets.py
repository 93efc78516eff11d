"""The decisions to make in a round: tasks and candidate actions, with their features."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gfucb.core.features import features_of
from gfucb.core.linalg import first_best
from gfucb.core.offered_candidates import OfferedCandidates, is_repeated
from gfucb.core.records import ChosenFeatures, Decision, Prediction

if TYPE_CHECKING:
    from gfucb.core.protocols import Representation
    from gfucb.models import MultiheadFunction


@dataclass(frozen=True, eq=False)
class ActionSets:
    """The decisions to make in a round: for each row a task and its candidate actions.

    Where all rows choose among the same items, `candidates` is a view that repeats one catalogue
    [action, *input] without copying it (`Tensor.expand`). Each item is then stored once, and its
    features are computed once, for any number of rows.
    """

    candidates: Tensor  # [row, action, *input]
    tasks: Tensor  # [row]
    available: Tensor  # [row, action], bool; at least one True in each row
    cache: ItemFeatures | None = field(default=None, repr=False)

    def caching(self, representation: Representation) -> ActionSets:
        """The same rows; they compute the features of `representation` at most once.

        The representation must be a value, such as the center's: a network in training is not.
        """
        if self.cache is not None and self.cache.representation is representation:
            return self
        return replace(self, cache=ItemFeatures(representation))

    @property
    def is_shared(self) -> bool:
        """Whether the candidates of all rows are one catalogue."""
        return is_repeated(self.candidates)

    @property
    def items(self) -> Tensor:
        """The distinct inputs, those of a shared catalogue once: [item, *input]."""
        return self.candidates[0] if self.is_shared else self.candidates.flatten(0, 1)

    @property
    def offered(self) -> Tensor:
        """Candidates [row, action, *input] without padding: available ones stand in for it.

        Of a shared catalogue only one row is returned, with the items that some row may choose.
        """
        if self.is_shared:
            return self.candidates[:1, self.available.any(0)]
        first = self.inputs_of(self.available.to(torch.int8).argmax(1)).unsqueeze(1)
        mask = self.available.reshape(*self.available.shape, *[1] * (self.candidates.ndim - 2))
        return torch.where(mask, self.candidates, first)

    def by_candidate(self, values: Tensor) -> Tensor:
        """Values of items as values of candidates: [item, ...] -> [row, action, ...]."""
        if self.is_shared:
            return values.expand(len(self.tasks), *values.shape)
        return values.unflatten(0, self.available.shape)

    def features(self, representation: Representation) -> Tensor:
        """Phi of every candidate: [row, action, feature]."""
        if self.cache is not None and self.cache.representation is representation:
            return self.by_candidate(self.cache.features(self.items))
        return self.by_candidate(features_of(representation, self.items))

    def features_of_chosen(self, representation: Representation, actions: Tensor) -> Tensor:
        """Phi of the chosen candidates: actions [row] -> [row, feature]."""
        is_cached = self.cache is not None and self.cache.has_features_of(representation)
        if self.is_shared or is_cached:
            return self.features(representation)[torch.arange(len(actions)), actions]
        return features_of(representation, self.inputs_of(actions))

    def values_of(self, function: MultiheadFunction) -> Tensor:
        """Values of every candidate, not clipped: [row, action]."""
        features = self.features(function.representation)
        return function.values_of_features(features, self.tasks[:, None])

    def inputs_of(self, actions: Tensor) -> Tensor:
        """The chosen candidates: actions [row] -> [row, *input]."""
        return self.candidates[torch.arange(len(actions)), actions]

    def best_actions(self, values: Tensor) -> Tensor:
        """The first available action of the largest value: [row, action] -> [row]."""
        return first_best(values.masked_fill(~self.available, -torch.inf))

    def decision(
        self,
        actions: Tensor,
        values: Tensor,
        prediction: Prediction | None = None,
        features: Tensor | None = None,
        *,
        with_offered: bool = False,
    ) -> Decision:
        """The decision to take `actions` with the optimistic values `values`, both [row].

        `features` [row, feature] are those of the chosen candidates under the cached
        representation. `with_offered` is for agents that learn from all candidates.
        """
        inputs, chosen = self.inputs_of(actions), None
        if features is not None and self.cache is not None:
            chosen = ChosenFeatures.of(self.cache.representation, inputs, features)
        offered = OfferedCandidates(self.candidates, self.available) if with_offered else None
        return Decision(self.tasks, actions, inputs, values, prediction, chosen, offered=offered)

    def upper_bound_decision(
        self, means: Tensor, variances: Tensor, alpha: float
    ) -> tuple[Decision, float]:
        """The largest upper bounds, means + alpha sqrt(variances) [row, action].

        Returns the decision and the mean bonus of its actions.
        """
        upper = means + alpha * variances.sqrt()
        actions = self.best_actions(upper)
        chosen = (torch.arange(len(actions)), actions)
        prediction = Prediction(means[chosen], variances[chosen])
        bonus = float((upper - means)[chosen].mean())
        return self.decision(actions, upper[chosen], prediction), bonus

    def restricted_to(self, actions: Tensor) -> ActionSets:
        """The same rows with one available action each: actions [row]."""
        only = torch.zeros_like(self.available).scatter(1, actions[:, None], True)
        return replace(self, available=only)


class ItemFeatures:
    """The features of the items of one decision under one representation, computed once."""

    def __init__(self, representation: Representation) -> None:
        self.representation = representation
        self._features: Tensor | None = None

    def has_features_of(self, representation: Representation) -> bool:
        """Whether `representation` is the one cached, and its features are computed."""
        return self.representation is representation and self._features is not None

    def features(self, items: Tensor) -> Tensor:
        """Phi of the items [item, *input], always the same ones: [item, feature]."""
        if self._features is None:
            self._features = features_of(self.representation, items)
        return self._features

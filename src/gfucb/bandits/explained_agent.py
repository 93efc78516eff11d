"""Predictions and explanations of an agent, which change nothing of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gfucb.bandits.action_predictions import ActionPredictions
from gfucb.bandits.default_learner import DefaultLearner
from gfucb.bandits.explanations import Explanation
from gfucb.bandits.influences import SampleInfluences
from gfucb.bandits.learner import Learner
from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Decision
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import (
    gradients_allowed,
    validate_action_sets,
    validate_catalogue,
    validate_feedback,
)
from gfucb.core.validation.settings import validate_count
from gfucb.exploration.variance_sources import variance_parts
from gfucb.models import ConfidenceSet

# Samples of the own task, and as many of other tasks, that are listed for each action.
NUM_SAMPLES = 5


class ExplainedAgent(ABC):
    """`predict` and `explain` of an agent with a confidence set."""

    num_tasks: int
    device: torch.device
    learner: Learner | DefaultLearner
    network_learner: Learner

    @abstractmethod
    def _confidence_set_for(self, action_sets: ActionSets) -> ConfidenceSet:
        """The set from which a decision on these rows would be made."""

    @abstractmethod
    def _selector_for(self, confidence_set: ConfidenceSet) -> ActionSelector:
        """The selector that would make it."""

    @gradients_allowed()
    def predict(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> ActionPredictions:
        """Mean and interval of every action, without a decision; the arguments of `decide`."""
        return self.predict_sets(self._validated(candidates, tasks, available))

    def predict_from(
        self,
        catalogue: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> ActionPredictions:
        """The same for one catalogue [action, *input] that all rows share."""
        candidates = validate_catalogue(catalogue, tasks, num_tasks=self.num_tasks)
        return self.predict(candidates, tasks, available)

    @gradients_allowed()
    def explain(
        self,
        decision: Decision,
        candidates: ArrayLike | None = None,
        available: ArrayLike | None = None,
        *,
        num_samples: int = NUM_SAMPLES,
    ) -> Explanation:
        """Explain a decision of this agent by what it knows now, whenever it was made.

        Args:
            decision: what `decide` returned, or some rows of it.
            candidates: those of the decision, [row, action, *input]. A decision stores them only
                if the agent learns from all candidates; without them only the chosen actions
                are explained.
            available: which actions existed, [row, action].
            num_samples: how many samples of the same task, and how many of other tasks, are
                listed for each action.
        """
        num_samples = validate_count(num_samples, "num_samples", at_least=0)
        _require_decision(decision, self.num_tasks)
        if candidates is None and decision.offered is not None:
            candidates, available = decision.offered.candidates, decision.offered.available
        if candidates is None:
            if available is not None:
                raise InvalidInputError("available needs candidates; pass those of the decision")
            sets = self._validated(decision.inputs.unsqueeze(1), decision.tasks, None)
            found = self.explain_sets(sets, torch.zeros_like(decision.actions), num_samples)
            found = found.of_actions(decision.actions)
        else:
            sets = self._validated(candidates, decision.tasks, available)
            _require_candidates(sets, decision)
            found = self.explain_sets(sets, decision.actions, num_samples)
        prediction = decision.prediction
        return found if prediction is None else found.with_means(prediction.mean)

    def _validated(self, candidates: Any, tasks: Any, available: Any) -> ActionSets:
        return validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device=self.device
        )

    @gradients_allowed()
    def predict_sets(self, action_sets: ActionSets) -> ActionPredictions:
        """`predict` for rows that are checked already."""
        return self._predicted(action_sets)[0]

    @gradients_allowed()
    def explain_sets(
        self,
        action_sets: ActionSets,
        actions: Tensor,
        num_samples: int,
        rows: Sequence[int] | None = None,
    ) -> Explanation:
        """`explain` for checked rows with their chosen actions [row]; by default for all of them.

        With `rows` it explains some rows of a decision that was made for all.
        """
        predictions, confidence_set = self._predicted(action_sets)
        influences = SampleInfluences.of(confidence_set, self.learner)
        features = action_sets.features(confidence_set.center.representation)
        tasks = action_sets.tasks.tolist()
        rows = range(len(tasks)) if rows is None else rows
        found = [influences.of_row(features[row], tasks[row], num_samples) for row in rows]
        contributions = torch.stack([total for _, total in found])
        predictions = predictions.taken(rows)
        return Explanation(
            predictions,
            is_chosen=predictions.actions == actions.cpu()[list(rows), None],
            ids=None,
            mean_at_decision=torch.full((len(found),), torch.nan, dtype=torch.float64),
            influences=tuple(tuple(of_row) for of_row, _ in found),
            baseline=predictions.mean - contributions,
            num_samples=self.learner.num_samples,
            num_fits=self.learner.num_fits,
        )

    def _predicted(self, action_sets: ActionSets) -> tuple[ActionPredictions, ConfidenceSet]:
        confidence_set = self._confidence_set_for(action_sets)
        action_sets = action_sets.caching(confidence_set.center.representation)
        parts = variance_parts(confidence_set, action_sets, self._selector_for(confidence_set))
        half = (confidence_set.squared_radius * parts.total).sqrt()
        means = action_sets.values_of(confidence_set.center)
        is_greedy = torch.zeros_like(action_sets.available)
        # Before the first reward an estimated location is unknown: nothing is predicted.
        if self.network_learner.scaling.is_located or self.learner.num_samples > 0:
            is_greedy.scatter_(1, action_sets.best_actions(means)[:, None], True)
        else:
            means = torch.full_like(means, torch.nan)

        def shown(values: Tensor) -> Tensor:
            return values.masked_fill(~action_sets.available, torch.nan).detach().cpu()

        predictions = ActionPredictions(
            tuple(action_sets.tasks.tolist()),
            torch.arange(means.shape[1]).expand(means.shape),
            None,
            action_sets.available.cpu(),
            shown(means),
            shown(means - half),
            shown(means + half),
            shown(parts.head / parts.total),
            shown(parts.shared / parts.total),
            shown(parts.exploration / parts.total),
            is_greedy.cpu(),
        )
        return predictions, confidence_set


def _require_decision(decision: Any, num_tasks: int) -> None:
    if not isinstance(decision, Decision):
        raise InvalidInputError(
            f"explain takes what decide returned, a Decision, got {type(decision).__name__}"
        )
    is_sized = isinstance(decision.tasks, Tensor) and decision.tasks.ndim > 0
    rows = len(decision.tasks) if is_sized else 0
    validate_feedback(decision, [0.0] * rows, num_tasks=num_tasks)
    if rows == 0:
        raise InvalidInputError("the decision has no rows; there is nothing to explain")


def _require_candidates(action_sets: ActionSets, decision: Decision) -> None:
    """Refuse candidates whose chosen ones are not the inputs of the decision."""
    actions, inputs = decision.actions.to(action_sets.tasks.device), decision.inputs
    is_same = int(actions.max()) < action_sets.available.shape[1]
    if is_same:
        chosen = action_sets.inputs_of(actions)
        is_same = chosen.shape == inputs.shape and torch.equal(chosen, inputs.to(chosen))
        is_same &= bool(action_sets.available.gather(1, actions[:, None]).all())
    if not is_same:
        raise InvalidInputError(
            "these are not the candidates of the decision: its chosen inputs are not among them, "
            "or not available; pass what decide was called with"
        )

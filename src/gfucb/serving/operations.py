"""Operations that change a bandit agent: the same ones when they happen and when a log is replayed.

An operation holds all that its result depends on, so an agent that applies the same operations in
the same order has the same state, to the last bit on a CPU. Features of chosen candidates are
therefore computed again from the inputs: in a batch of other inputs they would round differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol

import torch
from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.core.features import features_of
from gfucb.core.log_records import LoggedDecision, LoggedRow
from gfucb.core.offered_candidates import OfferedCandidates
from gfucb.core.records import ChosenFeatures, Decision, Prediction


class Operation(Protocol):
    """A change of an agent."""

    def apply(self, agent: GFUCB) -> None:
        """Change the agent, or raise an error."""


@dataclass(frozen=True)
class GrowTo:
    """At least this many tasks."""

    num_tasks: int

    def apply(self, agent: GFUCB) -> None:
        """Add the tasks that are missing."""
        if self.num_tasks > agent.num_tasks:
            agent.add_tasks(self.num_tasks - agent.num_tasks)


@dataclass(frozen=True, eq=False)
class LearnSamples:
    """Samples of another source than this agent: tasks [n], inputs [n, *input], rewards [n]."""

    tasks: Tensor
    inputs: Tensor
    rewards: Tensor

    def apply(self, agent: GFUCB) -> None:
        """Learn, with all fits that are due."""
        defers, agent.learner.defers_fits = agent.learner.defers_fits, False
        try:
            agent.learn(self.tasks, self.inputs, self.rewards)
        finally:
            agent.learner.defers_fits = defers


@dataclass(frozen=True, eq=False)
class ObserveRows:
    """Rewards of rows of decisions, in order.

    Attributes:
        rows: each with its decision.
        rewards: one for each row.
        defers_fits: whether a fit that becomes due is left to a `fit` event.
        defers_first_fit: whether this holds for the first rewards too.
    """

    rows: Sequence[tuple[LoggedDecision, LoggedRow]]
    rewards: Sequence[float]
    defers_fits: bool
    defers_first_fit: bool = False

    def apply(self, agent: GFUCB) -> None:
        """Learn from all rows; those that can share one call do."""
        agent.learner.defers_fits = self.defers_fits
        agent.learner.defers_first_fit = self.defers_first_fit
        pairs = list(zip(self.rows, self.rewards, strict=True))
        if agent.learner.num_samples == 0:
            # What was offered shows which columns are the same for all actions. Rows of one
            # decision come first, with the representation of that decision.
            first = self.rows[0][0]
            own = [pair for pair in pairs if pair[0][0] is first]
            _observe(agent, own, first)
            pairs = [pair for pair in pairs if pair[0][0] is not first]
        for _, group in groupby(pairs, key=lambda pair: _kind(*pair[0])):
            _observe(agent, list(group), None)


def _kind(decision: LoggedDecision, row: LoggedRow) -> tuple[object, ...]:
    """Rows of one kind form one batch."""
    return decision.candidates.shape[1:], decision.offered.dtype, row.mean is None


def chosen_input(decision: LoggedDecision, row: LoggedRow) -> Tensor:
    """The chosen candidate, [*input]."""
    offered = decision.offered if decision.is_shared else decision.offered[row.row]
    return offered[row.action]


def _observe(
    agent: GFUCB,
    pairs: Sequence[tuple[tuple[LoggedDecision, LoggedRow], float]],
    first: LoggedDecision | None,
) -> None:
    rows = [row for (_, row), _ in pairs]
    prediction = None
    if rows[0].mean is not None:
        prediction = Prediction(
            *(
                torch.tensor([getattr(row, name) for row in rows], dtype=torch.float64)
                for name in ("mean", "variance")
            )
        )
    decision = Decision(
        torch.tensor([row.task for row in rows]),
        torch.tensor([row.action for row in rows]),
        torch.stack([chosen_input(*pair) for pair, _ in pairs]),
        torch.tensor([row.optimistic_value for row in rows], dtype=torch.float64),
        prediction,
    )
    if first is not None:
        decision = replace(decision, features=_first_features(agent, first, decision.inputs))
    if agent.learner.uses_candidates(decision.inputs):
        decision = replace(decision, offered=_offered([pair for pair, _ in pairs]))
    agent.observe(decision, torch.tensor([r for _, r in pairs], dtype=torch.float64))


def _offered(rows: Sequence[tuple[LoggedDecision, LoggedRow]]) -> OfferedCandidates:
    """All candidates of the rows; those of one decision with a catalogue stay in memory once."""
    decision = rows[0][0]
    if all(other is decision for other, _ in rows) and len(rows) > 1:
        index = torch.tensor([row.row for _, row in rows])
        candidates, available = decision.candidates, decision.mask
        return OfferedCandidates(candidates, available).taken(index)
    return OfferedCandidates(
        torch.stack([other.candidates[row.row] for other, row in rows]),
        torch.stack([other.mask[row.row] for other, row in rows]),
    )


def _first_features(agent: GFUCB, first: LoggedDecision, inputs: Tensor) -> ChosenFeatures | None:
    """Features of the inputs under the representation with which the agent would decide now."""
    tasks = [0] * len(first.rows)  # before the first reward all tasks have the same representation
    found = agent.decide(first.candidates, tasks, first.available).valid_features()
    if found is None:
        return None
    values = features_of(found.representation, inputs)
    return ChosenFeatures.of(found.representation, inputs, values)

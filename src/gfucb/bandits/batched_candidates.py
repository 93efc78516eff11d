"""Learning from all candidates in a batch: that of every replica."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.bandits.candidate_learning import CandidateLearning
from gfucb.bandits.candidate_training import train_stack_before_fit
from gfucb.bandits.learner import Learner
from gfucb.core.action_sets import ActionSets
from gfucb.core.offered_candidates import OfferedCandidates
from gfucb.core.records import BatchedDecision, Row
from gfucb.estimation.reward_scale import RewardScale
from gfucb.models import MultitaskDataset
from gfucb.models.gradients import network_of
from gfucb.models.nn.stacked import NetworkStack


@dataclass(frozen=True, eq=False)
class BatchedCandidates:
    """One `CandidateLearning` per replica, as a value.

    Attributes:
        learners: of the replicas; they have the settings and the initial networks.
        learnings: [replica]; empty if the agents do not learn from all candidates.
    """

    learners: tuple[Learner, ...]
    learnings: tuple[CandidateLearning, ...]

    @classmethod
    def of(cls, learners: Sequence[Learner]) -> BatchedCandidates:
        """Those of learners that differ in their seeds only."""
        found = (learner.candidates for learner in learners)
        return cls(tuple(learners), tuple(own for own in found if own is not None))

    def offered(self, action_sets: ActionSets) -> OfferedCandidates | None:
        """All candidates, if the agents learn from them."""
        if not self.learnings or not self.learnings[0].uses(action_sets.candidates[0]):
            return None
        return OfferedCandidates(action_sets.candidates, action_sets.available)

    def with_decision(self, decision: BatchedDecision, like: Tensor) -> BatchedCandidates:
        """After a decision, whose candidates are stored in the form of `like`."""
        return replace(
            self,
            learnings=tuple(
                own.with_candidates(_candidates_of(decision, replica).to(like))
                for replica, own in enumerate(self.learnings)
            ),
        )

    def trained_before_fit(
        self,
        stack: NetworkStack,
        stored: Mapping[int, MultitaskDataset],
        scales: Sequence[RewardScale],
        num_fits: Sequence[int],
    ) -> BatchedCandidates:
        """Train the networks of some replicas, in place, before a fit to their data."""
        if not self.learnings:
            return self
        replicas, learners = list(stored), self.learners
        inputs = stored[replicas[0]].inputs
        trained = train_stack_before_fit(
            [self.learnings[replica] for replica in replicas],
            stack,
            [own.with_targets(scales[r].clip(own.targets)) for r, own in stored.items()],
            lambda index: network_of(learners[replicas[index]].prior(inputs)[0]),
            offsets=[scales[replica].location for replica in replicas],
            ridge=learners[0].penalty.ridge,
            fit_indices=[num_fits[replica] for replica in replicas],
        )
        after = dict(enumerate(self.learnings)) | dict(zip(replicas, trained, strict=True))
        return replace(self, learnings=tuple(after.values()))

    def tensors(self, replica: int) -> dict[str, Tensor]:
        """Those of one replica, for saving."""
        return self.learnings[replica].tensors() if self.learnings else {}

    def diagnostics(self, replica: int) -> Row:
        """Those of one replica."""
        return self.learnings[replica].diagnostics() if self.learnings else {}


def _candidates_of(decision: BatchedDecision, replica: int) -> Tensor:
    """All candidates of one replica; the chosen ones if the decision has no others."""
    num_tasks = decision.actions.shape[1]
    if decision.offered is None:
        return decision.inputs[replica]
    return decision.offered.taken(torch.arange(num_tasks) + replica * num_tasks).inputs

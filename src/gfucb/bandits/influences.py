"""Which past rewards a prediction is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gfucb.bandits.default_learner import DefaultLearner
from gfucb.bandits.learner import Learner
from gfucb.core.features import features_of
from gfucb.models import ConfidenceSet
from gfucb.models.posterior_set import PosteriorSet
from gfucb.models.reward_weights import PosteriorWeights, RewardWeights, RidgeWeights

# The numbers of larger inputs, such as images, are not listed.
LARGEST_INPUT = 50
# At most this many weights of samples are computed at once.
MOST_WEIGHTS = 20_000_000


class Influence(NamedTuple):
    """A past sample and its part in the predicted mean of an action.

    Attributes:
        sample: its position in the data of the agent, from 0.
        task: the number or the name of its task.
        is_own: whether that is the task of the explained row.
        input: the numbers of the input, or the name of the item; None for more than
            `LARGEST_INPUT` numbers.
        reward: as it was learned: an outlier is clipped.
        weight: the change of the mean for a change of the reward by 1, with features, prior scales
            and offset as they are.
        contribution: weight * (reward - offset).
    """

    sample: int
    task: Any
    is_own: bool
    input: Any
    reward: float
    weight: float
    contribution: float


@dataclass(frozen=True, eq=False)
class SampleInfluences:
    """The weights of all samples of an agent, for any prediction.

    Attributes:
        weights: None if there are no samples, or heads are not linear in the rewards.
        tasks: of all samples, [sample].
        inputs: of all samples, [sample, *input].
        rewards: as they were learned, [sample].
        offset: of the fit.
    """

    weights: RewardWeights | None
    tasks: Tensor
    inputs: Tensor
    rewards: Tensor
    offset: float

    @classmethod
    def of(
        cls, confidence_set: ConfidenceSet, learner: Learner | DefaultLearner
    ) -> SampleInfluences:
        """The influences in the center of a confidence set of this learner."""
        center, data = confidence_set.center, confidence_set.data
        weights: RewardWeights | None = None
        if len(data):
            features = features_of(center.representation, data.inputs)
            if isinstance(confidence_set, PosteriorSet):
                chosen = learner.chosen if isinstance(learner, DefaultLearner) else learner
                weights = PosteriorWeights(
                    confidence_set.posterior, features, data.tasks, chosen.samples_at_fit
                )
                if isinstance(learner, DefaultLearner) and learner.averaged is not None:
                    first_dim = confidence_set.posterior.uncertain_dim
                    weights = learner.averaged.reward_weights(weights, features, first_dim)
            elif confidence_set.head_norm_bound is None:
                ellipsoid = confidence_set.ellipsoid()
                assert ellipsoid is not None, "the center is in its own confidence set"
                weights = RidgeWeights(ellipsoid.factors_of, features, data.tasks)
        rewards = learner.scale.clip(data.targets)
        return cls(weights, data.tasks, data.inputs, rewards, center.offset)

    def of_row(
        self, features: Tensor, task: int, num_samples: int
    ) -> tuple[list[tuple[Influence, ...]], Tensor]:
        """Influences on the actions of a row with features [action, feature].

        Returns the largest ones of each action, and the sum of all contributions [action].
        """
        totals = torch.zeros(len(features), dtype=torch.float64)
        if self.weights is None:
            return [()] * len(features), totals
        found, targets = [], self.rewards - self.offset
        chunk = max(1, MOST_WEIGHTS // len(self.tasks))
        for first in range(0, len(features), chunk):
            weights = self.weights.of(features[first : first + chunk], task)
            totals[first : first + chunk] = (weights @ targets).cpu()
            found += [self._largest(of_action, task, num_samples) for of_action in weights]
        return found, totals

    def _largest(self, weights: Tensor, task: int, num_samples: int) -> tuple[Influence, ...]:
        """The samples of the task with the largest weights [sample], then those of others."""
        is_own, found = self.tasks == task, []
        for mask in (is_own, ~is_own):
            positions = (mask & (weights != 0)).nonzero().squeeze(1)
            order = weights[positions].abs().argsort(descending=True, stable=True)[:num_samples]
            found += [
                self._influence(n, float(weights[n]), task) for n in positions[order].tolist()
            ]
        return tuple(found)

    def _influence(self, sample: int, weight: float, task: int) -> Influence:
        """The influence of a sample on a prediction for a task."""
        number, given = int(self.tasks[sample]), self.inputs[sample]
        reward = float(self.rewards[sample])
        return Influence(
            sample,
            number,
            number == task,
            given.tolist() if given.numel() <= LARGEST_INPUT else None,
            reward,
            weight,
            weight * (reward - self.offset),
        )

"""Bonuses from the diagonal of the gradients' Gram matrix: NeuralUCB and NeuralTS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Prediction, Selection
from gfucb.core.validation.settings import validate_seed
from gfucb.exploration.draws import generator_for
from gfucb.exploration.last_layer import center_ellipsoid
from gfucb.models import ConfidenceSet
from gfucb.models.diagonal_gram import DiagonalGram, DiagonalStatistics, GradientSquares


@dataclass(frozen=True)
class DiagonalUCB(ActionSelector):
    """NeuralUCB (Zhou, Li and Gu 2020) with the diagonal approximation that its authors run.

        f_i(x) + sqrt(squared_radius * g^T Z^-1 g),   Z = diag(sum of g g^T + ridges)

    in each row, where g is the gradient of f_i(x) in all weights and in the head of task i
    (`DiagonalGram`). The diagonal ignores all correlations between weights. The widths are far
    too large in absolute terms, so the radius must be tuned or calibrated. Zhou et al. use
    gradients at the weights of the time of each sample; here all are at the weights of the
    current fit. Cost: K M gradients of the network for a decision, one for a reward, those of
    all data for a refit; memory: one number for each weight. No guarantee: theirs is for the
    full matrix and very wide networks.
    """

    joint: ClassVar[bool] = False
    weight_statistics: ClassVar[GradientSquares] = GradientSquares()
    returns_member: ClassVar[bool] = False

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the action with the largest upper value in each row."""
        radius = confidence_set.squared_radius
        return _Widths.at(confidence_set, action_sets).select(
            lambda widths: (radius * widths).sqrt()
        )


@dataclass(frozen=True)
class DiagonalSampling(ActionSelector):
    """NeuralTS (Zhang, Zhou, Li and Gu 2021): rewards sampled with the widths of `DiagonalUCB`.

        sample of f_i(x)  ~  N( f_i(x), squared_radius * g^T Z^-1 g )

    independently for each candidate; the action with the largest sample is taken. Cost and
    limitations are those of `DiagonalUCB`.

    Args:
        seed: of the samples, which stay the same until the next reward.
    """

    seed: int = 0
    joint: ClassVar[bool] = False
    weight_statistics: ClassVar[GradientSquares] = GradientSquares()
    returns_member: ClassVar[bool] = False
    is_optimistic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        validate_seed(self.seed)

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the action with the largest sample in each row."""
        radius = confidence_set.squared_radius
        generator = generator_for(self.seed, "neural-ts", confidence_set, action_sets)
        normal = torch.randn(action_sets.available.shape, generator=generator, dtype=torch.float64)
        normal = normal.to(action_sets.available.device)
        return _Widths.at(confidence_set, action_sets).select(
            lambda widths: (radius * widths).sqrt() * normal
        )


@dataclass(frozen=True, eq=False)
class _Widths:
    """Predicted means and squared widths of all candidates, [row, action] each."""

    confidence_set: ConfidenceSet
    action_sets: ActionSets
    means: Tensor
    of_heads: Tensor
    of_weights: Tensor

    @classmethod
    def at(cls, confidence_set: ConfidenceSet, action_sets: ActionSets) -> _Widths:
        center, gram = confidence_set.center, _gram_of(confidence_set)
        features = action_sets.features(center.representation)
        tasks = action_sets.tasks.repeat_interleave(features.shape[1])
        of_heads, of_weights = gram.squared_widths(
            center, action_sets.candidates.flatten(0, 1), features.flatten(0, 1), tasks
        )
        means = center.values_of_features(features, action_sets.tasks[:, None])
        shape = action_sets.available.shape
        return cls(confidence_set, action_sets, means, of_heads.view(shape), of_weights.view(shape))

    def select(self, bonus_of: Callable[[Tensor], Tensor]) -> Selection:
        """The best actions by mean + bonus_of(squared widths)."""
        widths = self.of_heads + self.of_weights
        values = self.means + bonus_of(widths)
        actions = self.action_sets.best_actions(values)

        def chosen(table: Tensor) -> Tensor:
            return table.gather(1, actions[:, None]).squeeze(1)

        return Selection(
            function=None,
            actions=actions,
            values=chosen(values),
            squared_distance=self.confidence_set.squared_radius,
            squared_radius=self.confidence_set.squared_radius,
            prediction=Prediction(chosen(self.means), chosen(widths)),
            representation_widths=chosen(self.of_weights),
        )


def _gram_of(confidence_set: ConfidenceSet) -> DiagonalGram:
    ellipsoid = center_ellipsoid(confidence_set)
    statistics, data = confidence_set.center_tangents, confidence_set.data
    if not isinstance(statistics, DiagonalStatistics):
        statistics = DiagonalStatistics.of(confidence_set.center, data.inputs, data.tasks)
    diagonals = ellipsoid.cholesky.square().sum(-1)  # of L L^T
    return DiagonalGram(diagonals, statistics, ridge=confidence_set.ridge)

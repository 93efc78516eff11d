"""Bonuses from the diagonal of the gradients' Gram matrix: NeuralUCB and NeuralTS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import ActionSets, Prediction, Selection
from gfucb.exploration.sampling import generator_of
from gfucb.models import ConfidenceSet
from gfucb.models.diagonal_gram import DiagonalGram, DiagonalStatistics, GradientSquares


@dataclass(frozen=True)
class DiagonalUCB:
    """NeuralUCB (Zhou, Li and Gu 2020) with the diagonal its authors compute with.

        f_i(x) + sqrt(squared_radius * g^T Z^-1 g),   Z = diag(sum of g g^T + ridges),

    each entry alone; g is the gradient of f_i(x) in all weights and in the heads of all tasks,
    of which it meets its own (`DiagonalGram`). It takes every weight for independent of every
    other: widths are far too large, and only the radius, tuned or calibrated, puts them right.
    Theirs are gradients at the weights of their time; here those of the present fit. Cost: K M
    gradients of the network a decision, one a reward, and those of all data at a refit; memory
    of one number a weight. No guarantee: theirs is for the whole matrix and very wide networks.
    """

    sketch: GradientSquares = field(default_factory=GradientSquares)
    joint: ClassVar[bool] = False

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Choose, in each entry, the action with the largest upper bound."""
        radius = confidence_set.squared_radius
        return _Widths.at(confidence_set, action_sets).choice(
            lambda widths: (radius * widths).sqrt()
        )


@dataclass(frozen=True)
class DiagonalSampling:
    """NeuralTS (Zhang, Zhou, Li and Gu 2021): rewards sampled with the widths of NeuralUCB.

        sample of f_i(x)  ~  N( f_i(x), squared_radius * g^T Z^-1 g ),   the largest one is taken,

    one independent sample for each candidate. Cost and caveats are those of `DiagonalUCB`.

    Args:
        seed: of the samples, which are the same until the next reward.
    """

    seed: int = 0
    sketch: GradientSquares = field(default_factory=GradientSquares)
    joint: ClassVar[bool] = False

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Choose, in each entry, the action whose sample is largest."""
        radius = confidence_set.squared_radius
        generator = generator_of(self.seed, "neural-ts", confidence_set, action_sets)
        normal = torch.randn(action_sets.available.shape, generator=generator, dtype=torch.float64)
        normal = normal.to(action_sets.available.device)
        return _Widths.at(confidence_set, action_sets).choice(
            lambda widths: (radius * widths).sqrt() * normal
        )


@dataclass(frozen=True, eq=False)
class _Widths:
    """Estimates and squared widths of all candidates, [row, action] each."""

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

    def choice(self, bonus_of: Callable[[Tensor], Tensor]) -> Selection:
        """The best actions when `bonus_of` squared widths is added to the estimates."""
        widths = self.of_heads + self.of_weights
        values = self.means + bonus_of(widths)
        actions = self.action_sets.best_actions(values)

        def taken(table: Tensor) -> Tensor:
            return table.gather(1, actions[:, None]).squeeze(1)

        return Selection(
            function=self.confidence_set.center,
            actions=actions,
            values=taken(values),
            squared_distance=self.confidence_set.squared_radius,
            squared_radius=self.confidence_set.squared_radius,
            prediction=Prediction(taken(self.means), taken(widths)),
            representation_widths=taken(self.of_weights),
        )


def _gram_of(confidence_set: ConfidenceSet) -> DiagonalGram:
    ellipsoid = confidence_set.ellipsoid()
    if ellipsoid is None:
        raise InvalidInputError("the confidence set is empty around its own center")
    statistics, data = confidence_set.center_tangents, confidence_set.data
    if not isinstance(statistics, DiagonalStatistics):
        statistics = DiagonalStatistics.of(confidence_set.center, data.inputs, data.tasks)
    diagonals = ellipsoid.cholesky.square().sum(-1)  # of L L^T
    return DiagonalGram(diagonals, statistics, ridge=confidence_set.ridge)

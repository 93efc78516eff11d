"""The diagonal of the Gram matrix of gradients in the weights, for networks with many weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.validation.states import validate_state_tensor
from gfucb.models.gradients import network_of, num_weights, weight_gradients
from gfucb.models.heads import HeadStatistics
from gfucb.models.multihead import MultiheadFunction


@dataclass(frozen=True, eq=False)
class DiagonalStatistics:
    """The diagonal of the Gram matrix of gradients in the weights.

    Attributes:
        squares: sum over the data of the squared gradient of f_task(x) in each weight, [weight].
    """

    squares: Tensor

    @classmethod
    def of(cls, function: MultiheadFunction, inputs: Tensor, tasks: Tensor) -> DiagonalStatistics:
        """Statistics of samples [n, *input] of tasks [n]: n gradients, bounded memory."""
        weights = num_weights(network_of(function))
        squares = torch.zeros(weights, dtype=torch.float64, device=function.heads.device)
        for _, gradients in weight_gradients(function, inputs, tasks):
            squares += gradients.square().sum(0)
        return cls(squares)

    def with_tasks(self, count: int) -> DiagonalStatistics:
        """The same with `count` more tasks: the weights are those of all tasks."""
        return self

    def plus(self, other: DiagonalStatistics) -> DiagonalStatistics:
        """Statistics of both data sets together, the sum."""
        return DiagonalStatistics(self.squares + other.squares)

    def tensors(self) -> dict[str, Tensor]:
        """The statistics as named tensors."""
        return {"squares": self.squares}


@dataclass(frozen=True)
class GradientSquares:
    """The kind of statistics that holds the squared gradient of each weight, without products."""

    def statistics(
        self, function: MultiheadFunction, inputs: Tensor, tasks: Tensor, features: Tensor | None
    ) -> DiagonalStatistics:
        """Statistics of samples [n, *input] of tasks [n]; `features` are not used."""
        return DiagonalStatistics.of(function, inputs, tasks)

    def restored(self, tensors: Mapping[str, Tensor], heads: HeadStatistics) -> DiagonalStatistics:
        """The statistics that have these `tensors`, if they are squares."""
        squares = tensors["squares"]
        validate_state_tensor(tensors, "squares", squares.shape, low=0.0)
        return DiagonalStatistics(squares)


class DiagonalGram:
    """The diagonal of the Gram matrix of gradients in all weights and heads, with its ridge.

    A gradient (u, phi) of task i has the squared width

        sum_w u_w^2 / (weight_ridge + squares_w)  +  sum_k phi_k^2 / (V_i)_kk.

    `weight_ridge` is `ridge` in units of the data: its ratio to the mean squared coordinate of u
    is that of `ridge` to the mean squared coordinate of phi. The effect of both then vanishes
    after the same number of samples.

    Args:
        head_diagonals: the diagonals of V_i = sum of phi phi^T + ridge I, [task, feature].
        statistics: those of the weights.
        ridge: the one in V_i.
    """

    def __init__(
        self, head_diagonals: Tensor, statistics: DiagonalStatistics, *, ridge: float
    ) -> None:
        self.head_diagonals = head_diagonals
        squares, seen = statistics.squares, head_diagonals - ridge
        # All samples share the weights, but each sample uses the head of one task only.
        sizes = float(squares.mean()) if len(squares) else 0.0, float(seen.sum(0).mean())
        ratio = sizes[0] / sizes[1] if min(sizes) > 0 else 1.0
        self.weight_ridge = ridge * ratio
        self.inverses = 1 / (self.weight_ridge + squares)

    def squared_widths(
        self, function: MultiheadFunction, inputs: Tensor, features: Tensor, tasks: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Squared widths of heads and of weights, [n] each.

        Shapes: inputs [n, *input], their features [n, feature], tasks [n].
        """
        of_heads = (features.square() / self.head_diagonals[tasks]).sum(-1)
        of_weights = torch.zeros_like(of_heads)
        for chunk, gradients in weight_gradients(function, inputs, tasks):
            inverses = self.inverses.to(gradients.dtype)
            of_weights[chunk] = (gradients.square() @ inverses).to(of_weights.dtype)
        return of_heads, of_weights

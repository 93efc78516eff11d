"""Protocols of statistics of gradients in the weights of a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from torch import Tensor

    from gfucb.models import HeadStatistics, MultiheadFunction


class WeightStatistics(Protocol):
    """Sums over samples of statistics of their gradients in the weights of a network."""

    def plus(self, other: Self) -> Self:
        """Return the statistics of both data sets together."""

    def with_tasks(self, count: int) -> Self:
        """Return the same statistics with `count` more tasks, which have no data."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the statistics as named tensors, for saving."""


class WeightStatisticsKind(Protocol):
    """Which statistics of gradients an agent maintains: `WeightSketch`, `GradientSquares`."""

    def statistics(
        self, function: MultiheadFunction, inputs: Tensor, tasks: Tensor, features: Tensor | None
    ) -> WeightStatistics:
        """Return those of samples [n, *input] of tasks [n]; features [n, feature] may be known."""

    def restored(self, tensors: Mapping[str, Tensor], heads: HeadStatistics) -> WeightStatistics:
        """Return those with these `tensors`, or refuse them: no data have both them and `heads`."""

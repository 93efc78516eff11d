"""Least squares over linear representations: alternate between heads and matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.protocols import LeastSquares
from gfucb.core.validation.settings import validate_count, validate_not_negative
from gfucb.estimation.profile import best_on, penalised_error
from gfucb.models import (
    HeadPenalty,
    HeadStatistics,
    LinearRepresentation,
    MultiheadFunction,
    MultitaskDataset,
)
from gfucb.models.representations import flat_inputs


@dataclass(frozen=True)
class Alternating(LeastSquares):
    """Minimise sum (<w_i, B x> - y)^2 + ridge |B^T W|^2 over B [feature, input] and heads W.

    Both half-steps are exact, so the error never increases. The problem is not convex, so there
    are two starts, the previous fit and the leading directions of the ridge solutions of the
    tasks, and the better result is returned. Cost of an iteration: a solve of size
    feature_dim * input_dim.
    """

    iterations: int = 100
    tolerance: float = 1e-10
    """Stop when an iteration decreases the error by less than this fraction."""

    def __post_init__(self) -> None:
        validate_count(self.iterations, "iterations", at_least=0)
        validate_not_negative(self.tolerance, "tolerance")

    def __call__(
        self,
        data: MultitaskDataset,
        start: MultiheadFunction,
        penalty: HeadPenalty,
        generator: torch.Generator,
    ) -> MultiheadFunction:
        """Minimise from both starts and return the function with the smaller error."""
        statistics = HeadStatistics.of(
            flat_inputs(data.inputs), data.tasks, data.targets - start.offset, data.num_tasks
        )
        spectral = leading_directions(statistics.heads(penalty), start.heads.shape[1])
        starts = [
            best_on(representation, data, start, penalty)
            for representation in (LinearRepresentation(spectral), start.representation)
        ]
        fits = [self._descend(function, data, statistics, penalty) for function in starts]
        return min(fits, key=lambda fit: penalised_error(fit, data, penalty))

    def _descend(
        self,
        function: MultiheadFunction,
        data: MultitaskDataset,
        statistics: HeadStatistics,
        penalty: HeadPenalty,
    ) -> MultiheadFunction:
        error = penalised_error(function, data, penalty)
        for _ in range(self.iterations):
            matrix = best_matrix(function.heads, statistics, penalty.ridge)
            # With orthonormal rows |B^T W| = |W|, so the ridge on heads is that of the loss.
            rows = torch.linalg.qr(matrix.T).Q.T
            better = best_on(LinearRepresentation(rows), data, function, penalty)
            lower = penalised_error(better, data, penalty)
            if not lower < error * (1 - self.tolerance):
                break
            function, error = better, lower
        return function


def leading_directions(solutions: Tensor, feature_dim: int) -> Tensor:
    """Orthonormal rows spanning most of the solutions [task, input] -> [feature, input].

    With fewer tasks than features the remaining rows are any orthonormal completion.
    """
    return torch.linalg.svd(solutions, full_matrices=True).Vh[:feature_dim]


def best_matrix(heads: Tensor, statistics: HeadStatistics, ridge: float) -> Tensor:
    """argmin_B sum_i |X_i B^T w_i - y_i|^2 + ridge |B^T w_i|^2, of shape [feature, input].

    Normal equations: sum_i (w_i w_i^T) (x) (X_i^T X_i + ridge I)  vec(B) = sum_i w_i (x) X_i^T y_i.
    """
    num_inputs = statistics.moments.shape[1]
    feature_dim = heads.shape[1]
    eye = torch.eye(num_inputs, dtype=heads.dtype, device=heads.device)
    system = torch.einsum("tf,tg,tij->figj", heads, heads, statistics.grams + ridge * eye)
    right = torch.einsum("tf,ti->fi", heads, statistics.moments)
    size = feature_dim * num_inputs
    # Directions that no head uses are not determined; the least-norm solution sets them to zero.
    # Only LAPACK has a driver for it.
    solution = torch.linalg.lstsq(
        system.reshape(size, size).cpu(), right.reshape(size, 1).cpu(), driver="gelsd"
    ).solution
    return solution.reshape(feature_dim, num_inputs).to(heads.device)

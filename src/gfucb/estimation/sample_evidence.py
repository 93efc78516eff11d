"""Marginal likelihood of the scales of table features from the covariance of samples.

It is the same number as that of `log_evidence`, from a matrix [sample, sample] instead of one
[feature, feature] for each task: cheaper while there are fewer samples than features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.linalg import is_finite_factor
from gfucb.estimation.evidence import PSEUDO_SAMPLES
from gfucb.models.table_features import TableColumns, TableScales, fourier_features


@dataclass(frozen=True, eq=False)
class SampleEvidence:
    """Products of the features of samples, of which scales make covariances of their rewards.

    Attributes:
        columns: standardisation and frequencies.
        directions: standardised columns, [sample, direction].
        targets: [sample].
        same_task: 1 where two samples have one task, otherwise 0, [sample, sample].
        same_action: the same for actions; None without one-hot actions.
        linear: products of the linear features, [sample, sample].
        pooled: products of values of the pooled function, [sample, sample], if it is a feature.
        pseudo_square: see `TaskMoments`.
    """

    columns: TableColumns
    directions: Tensor
    targets: Tensor
    same_task: Tensor
    same_action: Tensor | None
    linear: Tensor
    pooled: Tensor | None
    pseudo_square: float
    _smooth: dict[float, Tensor] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        columns: TableColumns,
        inputs: Tensor,
        tasks: Tensor,
        targets: Tensor,
        pooled: Tensor | None,
        *,
        pseudo_square: float,
    ) -> SampleEvidence:
        """The products of samples [n, column], [n], [n], and values [n] of a pooled function."""
        directions, actions = columns.standardise(inputs)
        linear = directions @ directions.mT / max(1, directions.shape[1])
        return cls(
            columns,
            directions,
            targets,
            (tasks[:, None] == tasks).to(linear.dtype),
            None if actions is None else actions @ actions.mT,
            linear,
            None if pooled is None else pooled[:, None] * pooled,
            pseudo_square,
        )

    def log_evidence(self, scales: TableScales) -> float:
        """Log marginal likelihood of scales, up to a constant."""
        covariance = self._covariance(scales)
        covariance.diagonal().add_(1)
        factor, failure = torch.linalg.cholesky_ex(covariance)
        if not is_finite_factor(factor, failure):
            raise InvalidInputError(
                "the features of the inputs are not finite; inputs are too large"
            )
        whitened = torch.linalg.solve_triangular(factor, self.targets[:, None], upper=False)
        square = float(whitened.square().sum()) + PSEUDO_SAMPLES * self.pseudo_square
        count = len(self.targets) + PSEUDO_SAMPLES
        noise = square / count
        return -0.5 * count * math.log(noise) - float(factor.diagonal().log().sum())

    def _covariance(self, scales: TableScales) -> Tensor:
        """Prior covariances of the values of samples, in units of the noise variance."""
        part = scales.linear * self.linear + scales.bias
        if self.directions.shape[1]:
            part += scales.fourier * self._fourier(scales.length)
        if self.pooled is not None:
            part += scales.pooled * self.pooled
        if self.same_action is not None:
            part *= scales.shared + (1 - scales.shared) * self.same_action
        return part * (self.same_task + scales.mean_ratio)

    def _fourier(self, length: float) -> Tensor:
        if length not in self._smooth:
            features = fourier_features(self.directions, self.columns.frequencies, length)
            self._smooth[length] = features @ features.mT
        return self._smooth[length]

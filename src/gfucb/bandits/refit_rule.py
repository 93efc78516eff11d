"""When a fit should not wait for its turn: rewards are predicted worse than before."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

# Squared one-step-ahead errors this many times larger than before the last fit make it stale, but
# not before the data has grown by this share of the way to the next fit, nor by few rewards.
REFIT_ERROR_RATIO = 2.0
EARLIEST_REFIT = 0.25
FEWEST_ERRORS = 50


@dataclass(frozen=True)
class PredictionErrorMonitor:
    """One-step-ahead squared errors since the last fit, and their mean before it."""

    before: float = math.inf
    total: float = 0.0
    count: float = 0.0

    def plus(self, errors: Tensor) -> PredictionErrorMonitor:
        """With the errors [n] of rewards the fit had not seen."""
        total = self.total + float(errors.square().sum())
        return replace(self, total=total, count=self.count + len(errors))

    def should_refit(self, samples: int, at_fit: int, refit_growth: float) -> bool:
        """Whether a fit should come before its time, with so many samples now and at the last."""
        waited = samples - at_fit >= EARLIEST_REFIT * (refit_growth - 1) * at_fit
        enough = self.count >= FEWEST_ERRORS
        return waited and enough and self.total > REFIT_ERROR_RATIO * self.before * self.count

    def after_fit(self) -> PredictionErrorMonitor:
        """Begin anew, with what was seen so far as the measure."""
        enough = self.count >= FEWEST_ERRORS
        return PredictionErrorMonitor(self.total / self.count if enough else self.before)

    def tensor(self) -> Tensor:
        """For saving."""
        return torch.tensor([self.before, self.total, self.count], dtype=torch.float64)

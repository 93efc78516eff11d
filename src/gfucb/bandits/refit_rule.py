"""Early-refit rule: refit ahead of the schedule if prediction errors have grown."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.core.shards import ONE_SHARD, Shards, totals

# An early refit needs a mean squared one-step-ahead error this many times larger than before the
# last fit, this share of the growth of the data that the schedule waits for, and enough errors.
REFIT_ERROR_RATIO = 2.0
EARLIEST_REFIT = 0.25
FEWEST_ERRORS = 50


@dataclass(frozen=True)
class PredictionErrorMonitor:
    """Squared one-step-ahead errors since the last fit, and their mean before it."""

    before: float = math.inf
    total: float = 0.0
    count: float = 0.0

    def plus(self, errors: Tensor, shards: Shards = ONE_SHARD) -> PredictionErrorMonitor:
        """With the errors [n] of rewards that were not in the fit, those of all shards."""
        squares, count = totals(shards, float(errors.square().sum()), len(errors))
        return replace(self, total=self.total + squares, count=self.count + count)

    def should_refit(self, samples: int, at_fit: int, refit_growth: float) -> bool:
        """Whether to refit early, with this many samples now and at the last scheduled fit."""
        has_grown = samples - at_fit >= EARLIEST_REFIT * (refit_growth - 1) * at_fit
        is_enough = self.count >= FEWEST_ERRORS
        is_worse = self.total > REFIT_ERROR_RATIO * self.before * self.count
        return has_grown and is_enough and is_worse

    def after_fit(self) -> PredictionErrorMonitor:
        """Start to count again, and compare with the mean error so far."""
        is_enough = self.count >= FEWEST_ERRORS
        return PredictionErrorMonitor(self.total / self.count if is_enough else self.before)

    def tensor(self) -> Tensor:
        """The three numbers, for saving."""
        return torch.tensor([self.before, self.total, self.count], dtype=torch.float64)

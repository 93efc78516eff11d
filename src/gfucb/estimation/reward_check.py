"""Whether self-supervision helps, as far as the rewards show it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.protocols import Representation
from gfucb.core.shards import Shards, largest, totals
from gfucb.estimation.held_out import head_errors
from gfucb.estimation.stopping import HeldOutCheck
from gfucb.models import MultitaskDataset, features_of

# Steps that the network of a check is trained for, from its initial weights.
CHECK_STEPS = 100
# The first check has so many samples, and so many for each task that has any, on average.
FEWEST_SAMPLES, FEWEST_OF_TASK = 100, 10
# The next check follows when the data has grown by this factor.
CHECK_GROWTH = 2.0
# Self-supervision is used while errors are lower by so many standard errors. With few samples the
# gain is uncertain, and an end by mistake costs more than a late one: they must not be higher.
LEAST_GAIN = 1.0
FEW_SAMPLES, LEAST_GAIN_OF_FEW = 200, 0.0


@dataclass(frozen=True)
class RewardCheck:
    """Compares two networks that have seen no reward, with and without self-supervision.

    The first is the initial network, the second the same one after `CHECK_STEPS` steps on the
    pool. With the features of each, heads are fitted to the rewards in closed form, and the squared
    leave-one-out errors of both are compared. No reward was used to train either network, so these
    errors are those of new samples. Views that keep the reward give features on which heads
    generalise better than on random ones; views that change it remove what heads need.

    Self-supervision is used before the first check, and then while the mean difference of the
    errors is at least `LEAST_GAIN` standard errors, or `LEAST_GAIN_OF_FEW` with few samples. Checks
    cost passes without gradients and few steps, and no fit.

    Attributes:
        is_used: the answer of the last check; True before the first.
        num_samples: of the last check; 0 before the first.
    """

    is_used: bool = True
    num_samples: int = 0

    def is_due(self, data: MultitaskDataset) -> bool:
        """Whether to check again with these data."""
        (num_tasks,) = totals(data.shards, int((data.samples_per_task > 0).sum()))
        if data.total < max(FEWEST_SAMPLES, CHECK_GROWTH * self.num_samples):
            return False
        return data.total >= FEWEST_OF_TASK * num_tasks

    def ends_use(self, before: RewardCheck) -> bool:
        """Whether self-supervision was used `before` this check, and no longer is."""
        return before.is_used and not self.is_used

    def after(
        self,
        untrained: Representation,
        trained: Representation,
        data: MultitaskDataset,
        *,
        offset: float,
        ridge: float,
    ) -> RewardCheck:
        """The check after a comparison on `data`."""
        gain = standardised_gain(untrained, trained, data, offset=offset, ridge=ridge)
        least = LEAST_GAIN_OF_FEW if data.total < FEW_SAMPLES else LEAST_GAIN
        return RewardCheck(gain >= least, data.total)

    def agreed(self, shards: Shards) -> RewardCheck:
        """The check that all shards had; one without candidates may not know it."""
        if shards.count == 1:
            return self
        is_unused, num_samples = largest(shards, float(not self.is_used), self.num_samples)
        return RewardCheck(not is_unused, int(num_samples))


def standardised_gain(
    one: Representation,
    other: Representation,
    data: MultitaskDataset,
    *,
    offset: float,
    ridge: float,
) -> float:
    """How much lower the squared leave-one-out errors of `other` are, in standard errors."""
    if data.shards.count == 1:
        gains = _gains(one, other, data, offset, ridge)
        error = float(gains.std()) / math.sqrt(len(gains))
        return float(gains.mean()) / error if error > 0 else 0.0
    gains = _gains(one, other, data, offset, ridge) if len(data) else torch.zeros(0)
    sums = (len(gains), float(gains.sum()), float(gains.square().sum()))
    count, total, squares = totals(data.shards, *sums)
    mean = total / count
    variance = max(0.0, squares - count * mean**2) / max(1.0, count - 1)
    return mean / math.sqrt(variance / count) if variance > 0 else 0.0


def _gains(
    one: Representation, other: Representation, data: MultitaskDataset, offset: float, ridge: float
) -> Tensor:
    """How much lower the squared errors of `other` are, for each of some samples."""
    check = HeldOutCheck.of(data, torch.ones(len(data), dtype=torch.bool))
    inputs, targets = check.inputs(data), check.targets(data, offset)
    first, second = (
        head_errors(
            features_of(phi, inputs).unflatten(0, check.samples.shape),
            targets,
            check.present,
            ridge=ridge,
            kind="leave_one_out",
        )[check.present].square()
        for phi in (one, other)
    )
    return (first - second).flatten()

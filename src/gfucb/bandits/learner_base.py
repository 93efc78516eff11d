"""What all learners have in common: the data of tasks whose number grows, and when to fit it."""

from __future__ import annotations

import copy
import logging
from abc import ABC, abstractmethod
from typing import Self

import torch

from gfucb.bandits.forgetting import KeepingRules
from gfucb.bandits.learner_inputs import usable_device
from gfucb.bandits.sample_memory import SampleMemory
from gfucb.core.logs import log
from gfucb.core.shards import ONE_SHARD, Shards, totals
from gfucb.estimation.reward_scaling import RewardScaling
from gfucb.models import MultitaskDataset

LOGGER = logging.getLogger(__name__)


class LearnerBase(ABC):
    """The data and the settings of a learner.

    Attributes:
        defers_fits: with True `learn` updates heads only, and `refit` is called when
            `is_fit_due`, for example by a worker on a `snapshot`. With False, the default, `learn`
            refits itself when a fit is due.
        shards: of which this process holds one, with the data of its tasks.
        all_tasks: the number of tasks of all shards.
        defers_first_fit: whether this holds for the first rewards too. Models in closed form are
            otherwise fitted to them at once, because their prior knows little.
        keeping: which samples are kept.
    """

    def __init__(
        self,
        num_tasks: int,
        scaling: RewardScaling,
        refit_growth: float,
        seed: int,
        device: torch.device | str,
        keeping: KeepingRules,
    ) -> None:
        self.num_tasks = self.all_tasks = num_tasks
        self.scaling = scaling
        self.refit_growth = refit_growth
        self.seed = seed
        self.device = usable_device(device)
        self.num_fits = 0
        self.defers_fits = False
        self.defers_first_fit = False
        self.shards: Shards = ONE_SHARD
        self._samples_at_fit = 0
        self._data: MultitaskDataset | None = None
        self._has_warned = False
        self.keeping = keeping
        self._memory = SampleMemory.empty(keeping, num_tasks, seed)

    def divide(self, shards: Shards) -> None:
        """Become the learner of one shard's tasks; all shards call this together."""
        self.shards = shards
        self.all_tasks = int(totals(shards, self.num_tasks)[0])

    def _count_tasks(self, count: int) -> None:
        """Count more tasks, and remember that they have no samples."""
        self.num_tasks += count
        self.all_tasks += count
        self._memory = self._memory and self._memory.with_tasks(count)

    @property
    def num_samples(self) -> int:
        """How many rewards the learner has seen, those of all shards."""
        if self._memory is not None:
            return self._memory.num_seen
        return 0 if self._data is None else self._data.total

    @property
    def data(self) -> MultitaskDataset | None:
        """All samples that were not dropped; None before the first."""
        return self._data

    @property
    def samples_at_fit(self) -> int:
        """How many of the samples were in the last fit, that of the schedule."""
        return 0 if self._data is None else self._num_fitted(self._data)

    @property
    def is_fit_due(self) -> bool:
        """Whether `learn` would have refitted after the last reward, if it had not deferred it."""
        if self._data is None or self._data.total == 0:
            return False
        return self._has_grown(self._data) or self._is_outdated()

    def _has_grown(self, data: MultitaskDataset) -> bool:
        """Whether there are `refit_growth` times as many samples as in the last fit.

        Samples that were dropped since then count: otherwise a window would have no further fits.
        """
        return self._size_of(data) >= self.refit_growth * self._samples_at_fit

    def _size_of(self, data: MultitaskDataset) -> int:
        """The number of samples with those that were dropped, see `SampleMemory`."""
        return data.total + (0 if self._memory is None else self._memory.num_dropped)

    def _num_fitted(self, data: MultitaskDataset) -> int:
        """How many of the samples were in the last fit."""
        num_new = self._size_of(data) - self._samples_at_fit
        return max(0, len(data) - num_new)

    def _end_fit(self, data: MultitaskDataset) -> None:
        """Note that the schedule continues from a fit to these data."""
        if self._memory is not None:
            self._memory = self._memory.after_fit()
        self._samples_at_fit = self._size_of(data)

    def _count_fit(self, data: MultitaskDataset) -> None:
        self.num_fits += 1
        log(
            LOGGER,
            logging.DEBUG,
            "fit %(num_fits)d, to %(num_samples)d samples of %(num_tasks)d tasks",
            num_fits=self.num_fits,
            num_samples=len(data),
            num_tasks=self.num_tasks,
        )

    @abstractmethod
    def refit(self) -> None:
        """Fit all data again; without data nothing changes."""

    def refit_due(self) -> None:
        """Fit all data again if a fit is due."""
        if self.is_fit_due:
            self.refit()

    @abstractmethod
    def _is_outdated(self) -> bool:
        """Whether the rewards since the last fit require an early one."""

    def snapshot(self) -> Self:
        """A learner with the same state; what one of them learns does not change the other.

        Both share all tensors, which are never changed in place, so this costs nothing.
        """
        same = copy.copy(self)
        if self._data is not None:
            same._data = self._data.snapshot()
        return same

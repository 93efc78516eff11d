"""What all learners have in common: the data of tasks whose number grows, and when to fit it."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Self

import torch

from gfucb.bandits.learner_inputs import usable_device
from gfucb.core.shards import ONE_SHARD, Shards
from gfucb.estimation.reward_scaling import RewardScaling
from gfucb.models import MultitaskDataset


class LearnerBase(ABC):
    """The data and the settings of a learner.

    Attributes:
        defers_fits: with True `learn` updates heads only, and `refit` is called when
            `is_fit_due`, for example by a worker on a `snapshot`. With False, the default, `learn`
            refits itself when a fit is due.
        shards: of which this process holds one, with the data of its tasks.
    """

    def __init__(
        self,
        num_tasks: int,
        scaling: RewardScaling,
        refit_growth: float,
        seed: int,
        device: torch.device | str,
    ) -> None:
        self.num_tasks = num_tasks
        self.scaling = scaling
        self.refit_growth = refit_growth
        self.seed = seed
        self.device = usable_device(device)
        self.num_fits = 0
        self.defers_fits = False
        self.shards: Shards = ONE_SHARD
        self._samples_at_fit = 0
        self._data: MultitaskDataset | None = None
        self._has_warned = False

    @property
    def num_samples(self) -> int:
        """How many rewards the learner has seen."""
        return 0 if self._data is None else self._data.total

    @property
    def data(self) -> MultitaskDataset | None:
        """All samples; None before the first."""
        return self._data

    @property
    def samples_at_fit(self) -> int:
        """How many samples the last fit had, that of the schedule."""
        return self._samples_at_fit

    @property
    def is_fit_due(self) -> bool:
        """Whether `learn` would have refitted after the last reward, if it had not deferred it."""
        size = self.num_samples
        return size > 0 and (self._has_grown(size) or self._is_outdated())

    def _has_grown(self, num_samples: int) -> bool:
        """Whether so many samples are `refit_growth` times those of the last fit."""
        return num_samples >= self.refit_growth * self._samples_at_fit

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

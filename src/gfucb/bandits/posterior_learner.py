"""Learners whose heads have a Gaussian posterior, updated with every reward."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from gfucb.bandits.forgetting import KEEP_ALL, KeepingRules
from gfucb.bandits.forgotten_samples import posterior_of_kept
from gfucb.bandits.learner_base import LearnerBase
from gfucb.bandits.learner_inputs import empty_data, require_alike
from gfucb.bandits.sample_memory import validate_counters
from gfucb.bandits.state_validation import validate_data
from gfucb.core.errors import InvalidInputError
from gfucb.core.features import features_of
from gfucb.core.protocols import Representation
from gfucb.core.records import ChosenFeatures
from gfucb.core.shards import in_any, mean_of_all, totals
from gfucb.core.validation.states import validate_state_names
from gfucb.estimation.reward_scale import RewardScale
from gfucb.estimation.reward_scaling import RewardScaling
from gfucb.models import MultiheadFunction, MultitaskDataset
from gfucb.models.head_posterior import HeadPosterior, PosteriorFit
from gfucb.models.posterior_state import posterior_state, restored_posterior

NAMES = ("counters", "data.inputs", "data.tasks", "data.targets")


class PosteriorLearner(LearnerBase):
    """Keeps a `PosteriorFit` up to date; it has the members of `Learner`.

    All data is fitted again when it has grown by `refit_growth`, or when a reward leaves the
    range so far. Between fits every reward updates the head of its task.

    Attributes:
        has_just_changed: whether the last rewards had changed, so that older ones were dropped.
    """

    kind: ClassVar[str]
    """The names of the tensors of its features begin with this word and a dot."""

    def __init__(
        self,
        *,
        num_tasks: int,
        scaling: RewardScaling,
        refit_growth: float,
        seed: int,
        device: torch.device | str,
        keeping: KeepingRules = KEEP_ALL,
    ) -> None:
        super().__init__(num_tasks, scaling, refit_growth, seed, device, keeping)
        self.scale = RewardScale()
        self.has_just_changed = False
        self._fit: PosteriorFit | None = None

    @abstractmethod
    def prior_fit(self, inputs: Tensor, candidates: Tensor | None) -> PosteriorFit:
        """The fit before any data, for inputs [n, *input] of candidates [row, action, *input]."""

    @abstractmethod
    def fit_all(
        self,
        data: MultitaskDataset,
        rewards: Tensor,
        before: PosteriorFit | None,
        computed: ChosenFeatures | None,
    ) -> PosteriorFit:
        """The fit to all data with clipped rewards [sample], after the fit `before`."""

    @abstractmethod
    def state_of_features(self, fit: PosteriorFit) -> dict[str, Tensor]:
        """The features as tensors; all names begin with `kind` and a dot."""

    @abstractmethod
    def restored_fit(
        self, state: Mapping[str, Tensor], inputs: Tensor, offset: float, posterior: HeadPosterior
    ) -> PosteriorFit:
        """The fit with the features of a state, checked; its inputs are [sample, *input]."""

    @property
    def reward_range(self) -> float | None:
        """The width of the known range of rewards."""
        known = self.scaling.stated_range
        return None if known is None else known[1] - known[0]

    def add_tasks(self, count: int) -> None:
        """Add tasks without data. Their heads start from the prior that all tasks have learned."""
        self._count_tasks(count)
        if self._data is not None and self._fit is not None:
            self._data = self._data.with_tasks(count)
            posterior = self._fit.posterior.with_tasks(count)
            self._fit = replace(self._fit, posterior=posterior)

    def _is_outdated(self) -> bool:
        assert self._data is not None  # `is_fit_due` asks learners with data only
        return self.scale.is_outdated_by(self._data.targets[self._num_fitted(self._data) :])

    def refit(self) -> None:
        """Fit all data again; without data nothing changes."""
        if self._data is not None:
            self._refit(self._data, None)
            self._warn(self._data, len(self._data))

    def _warn(self, data: MultitaskDataset, num_new: int) -> None:
        """Warn once if the last rewards contradict a stated range, or if some are clipped."""
        if self._has_warned or num_new == 0:
            return
        is_fitted = self._size_of(data) == self._samples_at_fit  # otherwise the scale is older
        is_clipped = is_fitted and bool(self.scale.is_outside(data.targets).any())
        limits = self.scale.limits if is_clipped else None
        self._has_warned = self.scaling.warn(data.targets, num_new, limits)

    def fit_state(
        self, inputs: Tensor, candidates: Tensor | None = None
    ) -> tuple[MultiheadFunction, MultitaskDataset, HeadPosterior]:
        """The center, the data and the posterior, for inputs [n, *input].

        `candidates` [row, action, *input] show which columns differ between actions. Before the
        first reward the value is the middle of the value range everywhere. Nothing is stored.
        """
        if self._fit is None or self._data is None:
            fit = self.prior_fit(inputs, candidates)
            data = empty_data(self.num_tasks, inputs, self.device, self.shards)
            return self._center(fit), data, fit.posterior
        require_alike(inputs, self._data.inputs)
        return self._center(self._fit), self._data, self._fit.posterior

    def learn(
        self,
        tasks: Tensor,
        inputs: Tensor,
        rewards: Tensor,
        computed: ChosenFeatures | None = None,
    ) -> None:
        """Add samples [n], [n, *input], [n] and update the fit.

        `computed` are features of the inputs, used if the current features computed them.
        """
        if totals(self.shards, len(tasks))[0] == 0:
            return
        tasks, inputs, rewards = (x.to(self.device) for x in (tasks, inputs, rewards))
        data = self._data
        if data is None:
            data = empty_data(self.num_tasks, inputs, self.device, self.shards)
        require_alike(inputs, data.inputs)
        size_before = len(data)
        errors = self._errors(tasks, inputs, rewards, computed)
        data.append(tasks, inputs, rewards)
        try:
            is_outdated = in_any(self.shards, self.scale.is_outdated_by(rewards))
            is_due = self._has_grown(data) or is_outdated
            if self._fits_now(is_due):
                self._refit(data, computed)
            else:
                fit, scale = self._fit, self.scale
                if fit is None:
                    scale = self.scaling.estimated(rewards, self.shards)
                    fit = self._first_fit(inputs, scale.clip(rewards), computed)
                features = self._features(fit, inputs, computed)
                targets = scale.clip(rewards) - fit.offset
                posterior = fit.posterior.after(features, tasks, targets, self.shards)
                self._fit, self.scale = replace(fit, posterior=posterior), scale
        except BaseException:
            data.truncate(size_before)
            raise
        self._data = data
        self._warn(data, len(rewards))
        if self._memory is not None:
            self._memory = self._memory.after(tasks, errors)
            self._forget(data)

    def _fits_now(self, is_due: bool) -> bool:
        defers = self.defers_fits and (self._fit is not None or self.defers_first_fit)
        return not defers and (is_due or self._fit is None)

    def _first_fit(
        self, inputs: Tensor, rewards: Tensor, computed: ChosenFeatures | None
    ) -> PosteriorFit:
        """The prior around the first rewards [n], on the features that predicted them if known."""
        known = None if computed is None else computed.representation
        fit = self.prior_of(inputs, known)
        is_known = self.scaling.stated_range is not None
        return fit if is_known else replace(fit, offset=float(mean_of_all(self.shards, rewards)))

    def prior_of(self, inputs: Tensor, known: Representation | None) -> PosteriorFit:
        """The fit before any data for inputs [n, *input], if possible on `known` features."""
        return self.prior_fit(inputs, None)

    def _errors(
        self, tasks: Tensor, inputs: Tensor, rewards: Tensor, computed: ChosenFeatures | None
    ) -> Tensor | None:
        """The errors [n] of predictions before these rewards, if changes are to be found."""
        if self._fit is None or self._memory is None or not self._memory.needs_errors:
            return None
        features = self._features(self._fit, inputs, computed)
        heads = self._fit.posterior.heads[tasks]
        return self.scale.clip(rewards) - self._fit.offset - (features * heads).sum(1)

    def _forget(self, data: MultitaskDataset) -> None:
        """Drop the samples that the rules do not keep."""
        assert self._memory is not None and self._fit is not None  # it has samples
        memory, kept, self.has_just_changed = self._memory.kept(data.tasks)
        if kept is None:
            return
        kept = kept.to(self.device)
        remaining = data.taken(kept)
        rewards = self.scale.clip(remaining.targets)
        dropped = (data.tasks[~kept], data.inputs[~kept])
        self._fit = posterior_of_kept(self._fit, remaining, rewards, *dropped)
        self._memory, self._data = memory, remaining
        if self.has_just_changed:
            self._samples_at_fit = 0  # a fit is due
            if not self.defers_fits:
                self._refit(remaining, None)

    def _refit(self, data: MultitaskDataset, computed: ChosenFeatures | None) -> None:
        rewards = data.targets
        scale = self.scaling.estimated(rewards, self.shards)
        self._fit = self.fit_all(data, scale.clip(rewards), self._fit, computed)
        self.scale = scale
        self._end_fit(data)
        self._count_fit(data)

    def _center(self, fit: PosteriorFit) -> MultiheadFunction:
        value_range = self.scaling.reported_range(self.scale)
        return MultiheadFunction(fit.features, fit.posterior.heads, fit.offset, value_range)

    @property
    def initial_offset(self) -> float:
        """The value before any reward."""
        low, high = self.scaling.stated_range or (0.0, 0.0)
        return (low + high) / 2

    @staticmethod
    def _features(fit: PosteriorFit, inputs: Tensor, computed: ChosenFeatures | None) -> Tensor:
        if computed is not None and computed.representation is fit.features:
            return computed.values
        return features_of(fit.features, inputs)

    def state(self) -> dict[str, Tensor]:
        """Named tensors from which `load_state` continues exactly; empty before any reward."""
        if self._data is None or self._fit is None:
            return {}
        return {
            "counters": torch.tensor([self.num_fits, self._samples_at_fit]),
            "data.inputs": self._data.inputs,
            "data.tasks": self._data.tasks,
            "data.targets": self._data.targets,
            **self.scaling.tensors(self.scale),
            **({} if self._memory is None else self._memory.tensors()),
            **posterior_state(self._fit),
            **self.state_of_features(self._fit),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Become the learner that has this `state`; both must have the same settings."""
        if not state:
            self._data = self._fit = None
            self.num_fits = self._samples_at_fit = 0
            self.scale = RewardScale()
            self._memory = self._memory and self._memory.emptied()
            return
        memory = self._memory and self._memory.emptied()
        prefixes = ["posterior.", f"{self.kind}."]
        of_memory = {} if memory is None else memory.tensors()
        names = (*NAMES, *self.scaling.tensors(self.scale), *of_memory)
        validate_state_names(state, names, optional_prefixes=prefixes)
        is_shard = self.shards.count > 1
        num_samples = validate_data(state, self.num_tasks, allow_empty=is_shard)
        memory = memory and memory.restored(state)
        (all_samples,) = totals(self.shards, num_samples)
        num_fits, samples_at_fit = validate_counters(state, int(all_samples), memory)
        scaled = None if memory is not None and memory.num_dropped else state["data.targets"]
        scale = self.scaling.restored(state, scaled, self.shards)
        inputs = state["data.inputs"].to(self.device, copy=True)
        offset, posterior = restored_posterior(state, self.num_tasks, self.device)
        fit = self.restored_fit(state, inputs, offset, posterior)
        known = posterior_state(fit) | self.state_of_features(fit)
        validate_state_names(state, (*names, *known))
        dimension = features_of(fit.features, inputs[:1]).shape[1]
        if dimension != posterior.heads.shape[1]:
            raise InvalidInputError(
                f"the posterior of the state has {posterior.heads.shape[1]} features, "
                f"its inputs have {dimension}"
            )
        data = empty_data(self.num_tasks, inputs, self.device, self.shards)
        tasks, targets = (state[f"data.{name}"].to(self.device) for name in ("tasks", "targets"))
        data.append(tasks, inputs, targets)
        self._data, self._fit, self.scale, self._memory = data, fit, scale, memory
        self.num_fits, self._samples_at_fit = num_fits, samples_at_fit

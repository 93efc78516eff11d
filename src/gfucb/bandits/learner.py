"""The state of a bandit agent: the data, the fit, and the statistics of its heads."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gfucb.bandits.candidate_learning import CandidateLearning
from gfucb.bandits.candidate_training import center_before_fit
from gfucb.bandits.forgetting import KEEP_ALL, KeepingRules
from gfucb.bandits.forgotten_samples import heads_of_kept
from gfucb.bandits.learner_base import LearnerBase
from gfucb.bandits.learner_inputs import features_by, require_alike
from gfucb.bandits.refit_rule import PredictionErrorMonitor
from gfucb.bandits.saved_fit import SavedFit, prior_fit, restored_fit
from gfucb.bandits.scaled_fit import fit_scaled, heads_for, weight_statistics_of
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import (
    LeastSquares,
    RepresentationClass,
    WeightStatistics,
    WeightStatisticsKind,
)
from gfucb.core.random import random_stream
from gfucb.core.records import ChosenFeatures
from gfucb.core.shards import totals
from gfucb.estimation.reward_scaling import RewardScaling
from gfucb.models import (
    HeadPenalty,
    HeadStatistics,
    MultiheadFunction,
    MultitaskDataset,
    features_of,
)


class Learner(LearnerBase):
    """Keeps a least-squares fit of all tasks up to date, at a bounded cost per reward.

    The representation is refitted when the data has grown by `refit_growth` since the last fit
    (1.0: at every call of `learn`), or earlier when the prediction errors since then are much
    larger than before it. Between fits every reward updates the heads in closed form.

    `weight_statistics` and `reward_perturbation` are those of the `ActionSelector`. With the first,
    the learner also updates statistics of gradients in the weights. With the second, the fit gets
    rewards + N(0, reward_perturbation^2) as targets: all are drawn again for a fit, and each reward
    between fits is perturbed once. The first reward fixes the shape of inputs.

    `scaling` says where rewards lie. Far outliers are clipped, and fits of phi get standardised
    targets if the scale is estimated; then it is estimated again with every fit. The data always
    hold the rewards themselves; heads, statistics and predictions have the unit of rewards.

    With `candidates` the learner stores a sample of all candidates that were offered, and trains
    the network on them before each fit.
    """

    has_posterior = False

    def __init__(
        self,
        *,
        num_tasks: int,
        representation_class: RepresentationClass,
        fit: LeastSquares,
        penalty: HeadPenalty,
        scaling: RewardScaling,
        refit_growth: float,
        seed: int,
        device: torch.device | str,
        weight_statistics: WeightStatisticsKind | None = None,
        reward_perturbation: float = 0.0,
        candidates: CandidateLearning | None = None,
        keeping: KeepingRules = KEEP_ALL,
    ) -> None:
        if not refit_growth >= 1:
            raise InvalidInputError(f"refit_growth must be at least 1, got {refit_growth}")
        super().__init__(num_tasks, scaling, refit_growth, seed, device, keeping)
        self.representation_class = representation_class
        self.fit = fit
        self.penalty = penalty
        self.scale = scaling.initial()
        self.weight_statistics = weight_statistics
        self.reward_perturbation = reward_perturbation
        self.candidates = candidates
        self._error_monitor = PredictionErrorMonitor()
        self._center: MultiheadFunction | None = None
        self._statistics: HeadStatistics | None = None
        self.tangents: WeightStatistics | None = None
        self._has_outliers = False

    def add_tasks(self, count: int) -> None:
        """Add tasks without data. Their heads are zero: their values are the offset."""
        self._count_tasks(count)
        if self._data is None or self._center is None or self._statistics is None:
            return
        data, statistics = self._data.with_tasks(count), self._statistics.with_tasks(count)
        heads = torch.cat([self._center.heads, statistics.moments[-count:]])  # zero
        tangents = None if self.tangents is None else self.tangents.with_tasks(count)
        self._store(self._center.with_heads(heads), data, statistics, tangents)

    def uses_candidates(self, inputs: Tensor) -> bool:
        """Whether it learns from all candidates, for inputs like these [n, *input]."""
        return self.candidates is not None and self.candidates.uses(inputs)

    def fit_state(
        self, inputs: Tensor, candidates: Tensor | None = None
    ) -> tuple[MultiheadFunction, MultitaskDataset, HeadStatistics]:
        """The center, the data and the center's statistics, for inputs like these [n, *input].

        Before the first reward the center is a function whose value is the offset everywhere. It
        is built on demand and not stored, so this call never fixes the shape of the inputs.
        """
        center, data, statistics = self._stored_or_prior(inputs)
        return center, self._clipped(data), statistics

    def _stored_or_prior(
        self, inputs: Tensor
    ) -> tuple[MultiheadFunction, MultitaskDataset, HeadStatistics]:
        """The same with the rewards as they came."""
        self.representation_class.validate_inputs(inputs)
        if self._data is None or self._center is None or self._statistics is None:
            return self.prior(inputs)
        require_alike(inputs, self._data.inputs)
        return self._center, self._data, self._statistics

    def _clipped(self, data: MultitaskDataset) -> MultitaskDataset:
        """The data with clipped rewards: the same object where no reward is clipped."""
        return data.with_targets(self.scale.clip(data.targets)) if self._has_outliers else data

    def learn(
        self,
        tasks: Tensor,
        inputs: Tensor,
        rewards: Tensor,
        computed: ChosenFeatures | None = None,
        offered: Tensor | None = None,
    ) -> None:
        """Add samples [n], [n, *input], [n] and update the fit.

        `computed` are features of the inputs, used if the representation that computed them is
        still that of the fit. `offered` [item, *input] are all candidates of the decision; by
        default the inputs, for samples that are no decision.
        """
        if totals(self.shards, len(tasks))[0] == 0:
            return
        tasks, inputs, rewards = (x.to(self.device) for x in (tasks, inputs, rewards))
        center, data, statistics = self._stored_or_prior(inputs)
        size_before, total_before, memory = len(data), data.total, self._memory
        before, was_clipped = (self.scale, self.candidates), self._has_outliers
        data.append(tasks, inputs, rewards)
        try:
            self._add_candidates(inputs if offered is None else offered, data)
            is_rescaled = self._update_scale(data, size_before, total_before)
            if total_before == 0:
                center = self._located(center)
            # Paper: least squares again in every round. Refitting phi at a growth of 30% gave
            # the same regret at a small part of the cost; heads still follow every reward.
            known = features_by(center, computed)
            features = features_of(center.representation, inputs) if known is None else known
            clipped = self.scale.clip(rewards)
            errors = clipped - center.values_of_features(features, tasks)
            monitor = self._error_monitor.plus(errors, self.shards)
            targets = self._targets_of(clipped, memory.num_seen if memory else size_before)
            statistics, rewarded = statistics.after(features, tasks, targets - center.offset)
            is_due = self._has_grown(data)
            if (is_due or self._is_early(monitor, data)) and not self.defers_fits:
                if not is_rescaled and not was_clipped:  # statistics of the data as they are
                    center = center.with_statistics(statistics, data)
                self._refit(center, data)
                self._error_monitor = monitor.after_fit()
                if is_due:  # an early fit does not move the schedule
                    self._end_fit(data)
            else:
                tangents = self._tangents_after(center, inputs, tasks, features)
                if is_rescaled:
                    center, statistics = self._rescaled(center, data)
                else:
                    heads = statistics.heads_solved_at(rewarded, self.penalty, center.heads)
                    center = center.with_heads(heads)
                self._store(self._located(center), data, statistics, tangents)
                self._error_monitor = monitor
        except BaseException:
            data.truncate(size_before)
            (self.scale, self.candidates), self._has_outliers = before, was_clipped
            raise
        if not self._has_warned:
            limits = self.scale.limits if self._has_outliers else None
            self._has_warned = self.scaling.warn(data.targets, len(rewards), limits)
        self._forget(data, tasks, errors)

    def _add_candidates(self, offered: Tensor, data: MultitaskDataset) -> None:
        if self.candidates is not None:
            self.candidates = self.candidates.with_candidates(offered.to(data.inputs))

    def _forget(self, data: MultitaskDataset, tasks: Tensor, errors: Tensor) -> None:
        """Drop the samples that the rules do not keep, after new ones of tasks [n]."""
        center, statistics = self._center, self._statistics
        if self._memory is None or center is None or statistics is None:
            return
        self._memory = self._memory.after(tasks, errors)
        memory, kept, has_changed = self._memory.kept(data.tasks)
        if kept is None:
            return
        kept = kept.to(self.device)
        remaining, dropped = data.taken(kept), data.tasks[~kept]
        targets = self._targets_of(self.scale.clip(remaining.targets), memory.num_seen)
        center, statistics = heads_of_kept(
            center, statistics, remaining.with_targets(targets), dropped, self.penalty
        )
        tangents = weight_statistics_of(self.weight_statistics, center, remaining)
        self._store(center, remaining, statistics, tangents)
        self._memory = memory
        self._has_outliers = bool(self.scale.is_outside(remaining.targets).any())
        if has_changed:  # a fit is due, and earlier errors are of other rewards
            self._samples_at_fit, self._error_monitor = 0, PredictionErrorMonitor()

    def _tangents_after(
        self, center: MultiheadFunction, inputs: Tensor, tasks: Tensor, features: Tensor
    ) -> WeightStatistics | None:
        if self.weight_statistics is None or self.tangents is None:
            return self.tangents
        more = self.weight_statistics.statistics(center, inputs, tasks, features)
        return self.tangents.plus(more)

    def refit(self) -> None:
        """Fit all data again; without data nothing changes."""
        if self._data is not None and self._center is not None:
            self._refit(self._center, self._data)
            self._error_monitor = self._error_monitor.after_fit()
            self._end_fit(self._data)

    def _is_outdated(self) -> bool:
        assert self._data is not None  # `is_fit_due` asks learners with data only
        return self._is_early(self._error_monitor, self._data)

    def _is_early(self, monitor: PredictionErrorMonitor, data: MultitaskDataset) -> bool:
        return monitor.should_refit(self._size_of(data), self._samples_at_fit, self.refit_growth)

    def _update_scale(self, data: MultitaskDataset, size_before: int, total_before: int) -> bool:
        """Update the scale with the samples after `size_before`; whether old targets change."""
        self.scale, is_rescaled = self.scaling.after(
            self.scale,
            data.targets,
            size_before,
            # With few fits of phi the scale is estimated again when the data has doubled.
            is_due=self.refit_growth > 2 and data.total.bit_length() > total_before.bit_length(),
            shards=self.shards,
        )
        is_outside = self.scale.is_outside(data.targets[0 if is_rescaled else size_before :])
        self._has_outliers = bool(is_outside.any()) or (self._has_outliers and not is_rescaled)
        return is_rescaled

    def _rescaled(
        self, center: MultiheadFunction, data: MultitaskDataset
    ) -> tuple[MultiheadFunction, HeadStatistics]:
        """The function on the same representation with heads for the current scale."""
        targets = self._targets_of(self.scale.clip(data.targets), 0)
        return heads_for(self._located(center), data.with_targets(targets), self.penalty)

    def _located(self, center: MultiheadFunction) -> MultiheadFunction:
        """The function with the location and the range of the scale."""
        value_range = self.scaling.reported_range(self.scale)
        return replace(center, offset=self.scale.location, value_range=value_range)

    def _refit(self, center: MultiheadFunction, data: MultitaskDataset) -> None:
        generator = random_stream(self.seed, "fit", self.num_fits)
        self.scale = self.scaling.estimated(data.targets, self.shards)
        self._has_outliers = bool(self.scale.is_outside(data.targets).any())
        fitted_data = self._clipped(data)
        if self.reward_perturbation:
            fitted_data = data.with_targets(self._targets_of(fitted_data.targets, 0))
        candidates, center = center_before_fit(
            self.candidates,
            center,
            self._clipped(data),
            lambda: self.prior(data.inputs)[0].representation,
            offset=self.scale.location,
            ridge=self.penalty.ridge,
            fit_index=self.num_fits,
        )
        fitted, statistics, features = fit_scaled(
            self.fit, fitted_data, center, self.penalty, generator, scale=self.scale
        )
        tangents = weight_statistics_of(self.weight_statistics, fitted, data, features)
        self._store(self._located(fitted), data, statistics, tangents)
        self.candidates = candidates
        self._count_fit(data)

    def _store(
        self,
        center: MultiheadFunction,
        data: MultitaskDataset,
        statistics: HeadStatistics,
        tangents: WeightStatistics | None,
    ) -> None:
        self._center, self._data = center, data
        self._statistics, self.tangents = statistics, tangents

    def _targets_of(self, rewards: Tensor, first: int) -> Tensor:
        """The targets of the fit for rewards [n], those of the samples from `first` on."""
        if not self.reward_perturbation:
            return rewards
        generator = random_stream(self.seed, "perturbation", self.num_fits, first)
        noise = torch.randn(len(rewards), generator=generator, dtype=torch.float64)
        return rewards + self.reward_perturbation * noise.to(rewards.device)

    def prior(self, inputs: Tensor) -> tuple[MultiheadFunction, MultitaskDataset, HeadStatistics]:
        """Center, data and statistics before any reward, for inputs like these [n, *input]."""
        return prior_fit(self, inputs)

    def network_generator(self) -> torch.Generator:
        """The generator of the initial weights."""
        return random_stream(self.seed, "network")

    def state(self) -> dict[str, Tensor]:
        """Named tensors from which `load_state` continues exactly; empty before any reward."""
        if self._data is None or self._center is None or self._statistics is None:
            return {}
        return SavedFit(
            self._center,
            self._data,
            self._statistics,
            self.tangents,
            self.scale,
            self.candidates,
            self._error_monitor,
            self.num_fits,
            self._samples_at_fit,
            self._memory,
        ).tensors(self)

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Become the learner that has this `state`; both must have the same settings."""
        if not state:
            self._data = self._center = self._statistics = self.tangents = None
            self.num_fits = self._samples_at_fit = 0
            self._error_monitor = PredictionErrorMonitor()
            self.scale, self._has_outliers = self.scaling.initial(), False
            self.candidates = self.candidates and self.candidates.emptied()
            self._memory = self._memory and self._memory.emptied()
            return
        saved = restored_fit(self, state)
        self.num_fits, self._samples_at_fit = saved.num_fits, saved.samples_at_fit
        self._error_monitor, self.candidates = saved.monitor, saved.candidates
        self.scale, self._memory = saved.scale, saved.memory
        self._has_outliers = bool(saved.scale.is_outside(saved.data.targets).any())
        self._store(saved.center, saved.data, saved.statistics, saved.tangents)

"""The state of a bandit agent: the data, the fit, and the statistics of its heads."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gfucb.bandits.refit_rule import PredictionErrorMonitor
from gfucb.bandits.state_validation import (
    REPRESENTATION_PREFIX,
    validate_learner_state,
    validate_restored_fit,
)
from gfucb.core.errors import InvalidInputError
from gfucb.core.nested import below, with_prefix
from gfucb.core.protocols import (
    LeastSquares,
    Representation,
    RepresentationClass,
    WeightStatistics,
    WeightStatisticsKind,
)
from gfucb.core.random import random_stream
from gfucb.core.records import ChosenFeatures
from gfucb.core.validation.states import validate_state_like
from gfucb.models import (
    HeadPenalty,
    HeadStatistics,
    MultiheadFunction,
    MultitaskDataset,
    features_of,
    prior_function,
)
from gfucb.models.copy_on_write import CopyOnWriteRows

TANGENTS_PREFIX = "tangents."


class Learner:
    """Keeps a least-squares fit of all tasks up to date, at a bounded cost per reward.

    The representation is refitted when the data has grown by `refit_growth` since the last fit
    (1.0: at every call of `learn`), or earlier when the prediction errors since then are much
    larger than before it. Between fits every reward updates the heads in closed form.

    `weight_statistics` and `reward_perturbation` are those of the `ActionSelector`. With the first,
    the learner also updates statistics of gradients in the weights. With the second, the fit gets
    rewards + N(0, reward_perturbation^2) as targets: all are drawn again for a fit, and each reward
    between fits is perturbed once. The data always hold the rewards themselves. Storage is
    allocated with the first reward, which fixes the shape of inputs.
    """

    def __init__(
        self,
        *,
        num_tasks: int,
        representation_class: RepresentationClass,
        fit: LeastSquares,
        penalty: HeadPenalty,
        offset: float,
        value_range: tuple[float, float] | None,
        refit_growth: float,
        seed: int,
        device: torch.device | str,
        weight_statistics: WeightStatisticsKind | None = None,
        reward_perturbation: float = 0.0,
    ) -> None:
        if not refit_growth >= 1:
            raise InvalidInputError(f"refit_growth must be at least 1, got {refit_growth}")
        self.num_tasks = num_tasks
        self.representation_class = representation_class
        self.fit = fit
        self.penalty = penalty
        self.offset = offset
        self.value_range = value_range
        self.refit_growth = refit_growth
        self.seed = seed
        self.device = _usable(device)
        self.weight_statistics = weight_statistics
        self.reward_perturbation = reward_perturbation
        self.num_fits = 0
        self._samples_at_fit = 0
        self._error_monitor = PredictionErrorMonitor()
        self._data: MultitaskDataset | None = None
        self._center: MultiheadFunction | None = None
        self._statistics: HeadStatistics | None = None
        self.tangents: WeightStatistics | None = None

    @property
    def num_samples(self) -> int:
        """How many rewards the learner has seen."""
        return 0 if self._data is None else len(self._data)

    def fit_state(
        self, inputs: Tensor, candidates: Tensor | None = None
    ) -> tuple[MultiheadFunction, MultitaskDataset, HeadStatistics]:
        """The center, the data and the center's statistics, for inputs like these [n, *input].

        Before the first reward the center is a function whose value is the offset everywhere. It
        is built on demand and not stored, so this call never fixes the shape of the inputs.
        """
        self.representation_class.validate_inputs(inputs)
        if self._data is None or self._center is None or self._statistics is None:
            return self._prior(inputs)
        self._require_alike(inputs, self._data)
        return self._center, self._data, self._statistics

    def learn(
        self,
        tasks: Tensor,
        inputs: Tensor,
        rewards: Tensor,
        computed: ChosenFeatures | None = None,
    ) -> None:
        """Add samples [n], [n, *input], [n] and update the fit.

        `computed` are features of the inputs. They are used if the representation that computed
        them is still that of the fit.
        """
        if len(tasks) == 0:
            return
        tasks, inputs, rewards = (x.to(self.device) for x in (tasks, inputs, rewards))
        center, data, statistics = self.fit_state(inputs)
        size_before = len(data)
        data.append(tasks, inputs, rewards)
        try:
            # Paper: least squares again in every round. Refitting phi at a growth of 30% gave
            # the same regret at a small part of the cost; heads still follow every reward.
            if computed is not None and _is_computed_by(center, computed):
                features = computed.values
            else:
                features = features_of(center.representation, inputs)
            errors = rewards - center.values_of_features(features, tasks)
            monitor = self._error_monitor.plus(errors)
            targets = self._targets_of(rewards, size_before) - self.offset
            statistics, rewarded = statistics.after(features, tasks, targets)
            is_due = len(data) >= self.refit_growth * self._samples_at_fit
            if is_due or monitor.should_refit(len(data), self._samples_at_fit, self.refit_growth):
                self._refit(center.with_statistics(statistics, data), data)
                self._error_monitor = monitor.after_fit()
                if is_due:  # an early fit does not move the schedule
                    self._samples_at_fit = len(data)
            else:
                tangents = self.tangents
                if self.weight_statistics is not None and tangents is not None:
                    more = self.weight_statistics.statistics(center, inputs, tasks, features)
                    tangents = tangents.plus(more)
                heads = statistics.heads_solved_at(rewarded, self.penalty, center.heads)
                self._store(center.with_heads(heads), data, statistics, tangents)
                self._error_monitor = monitor
        except BaseException:
            data.truncate(size_before)
            raise

    def _refit(self, center: MultiheadFunction, data: MultitaskDataset) -> None:
        generator = random_stream(self.seed, "fit", self.num_fits)
        fitted_data = data
        if self.reward_perturbation:
            fitted_data = data.with_targets(self._targets_of(data.targets, 0))
        fitted = self.fit(fitted_data, center, self.penalty, generator)
        known = fitted.head_fit_of(fitted_data)
        if known is not None:
            statistics, features = known.statistics, known.features
        else:
            features = features_of(fitted.representation, data.inputs)
            targets = fitted_data.targets - self.offset
            statistics = HeadStatistics.of(features, data.tasks, targets, self.num_tasks)
        fitted = fitted.with_heads(statistics.heads(self.penalty))
        tangents = None
        if self.weight_statistics is not None:
            tangents = self.weight_statistics.statistics(fitted, data.inputs, data.tasks, features)
        self._store(fitted, data, statistics, tangents)
        self.num_fits += 1

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

    def _prior(self, inputs: Tensor) -> tuple[MultiheadFunction, MultitaskDataset, HeadStatistics]:
        center = prior_function(
            self.representation_class,
            inputs,
            num_tasks=self.num_tasks,
            offset=self.offset,
            value_range=self.value_range,
            generator=self._network_generator(),
            device=self.device,
        )
        feature_dim = center.heads.shape[1]
        statistics = HeadStatistics.empty(self.num_tasks, feature_dim, self.device)
        return center, self._empty_data(inputs), statistics

    def _empty_data(self, inputs: Tensor) -> MultitaskDataset:
        dtype = inputs.dtype
        if inputs.is_floating_point():
            dtype = torch.promote_types(dtype, torch.float32)  # half would round later inputs
        return MultitaskDataset(self.num_tasks, inputs.shape[1:], dtype, device=self.device)

    def _network_generator(self) -> torch.Generator:
        """The generator of the initial weights."""
        return random_stream(self.seed, "network")

    def _require_alike(self, inputs: Tensor, data: MultitaskDataset) -> None:
        stored = data.inputs
        if inputs.shape[1:] != stored.shape[1:]:
            raise InvalidInputError(
                f"this agent has learned from inputs of shape {list(stored.shape[1:])}, "
                f"got inputs of shape {list(inputs.shape[1:])}"
            )
        alike = inputs.dtype == stored.dtype or (
            inputs.is_floating_point() and stored.is_floating_point()
        )
        if not alike:
            raise InvalidInputError(
                f"this agent has learned from {stored.dtype} inputs, got {inputs.dtype}; "
                "bytes are read as images in [0, 1], so the two do not mean the same"
            )

    def state(self) -> dict[str, Tensor]:
        """Named tensors from which `load_state` continues exactly; empty before any reward."""
        if self._data is None or self._center is None or self._statistics is None:
            return {}
        tensors = {
            "counters": torch.tensor([self.num_fits, self._samples_at_fit]),
            "monitor": self._error_monitor.tensor(),
            "data.inputs": self._data.inputs,
            "data.tasks": self._data.tasks,
            "data.targets": self._data.targets,
            "statistics.grams": self._statistics.grams,
            "statistics.moments": self._statistics.moments,
            "heads": self._center.heads,
        }
        if self.tangents is not None:
            tensors |= with_prefix(TANGENTS_PREFIX, self.tangents.tensors())
        return tensors | self.representation_state(self._center.representation)

    def representation_state(self, representation: Representation) -> dict[str, Tensor]:
        """The part of `state` that holds the representation."""
        return with_prefix(
            REPRESENTATION_PREFIX, self.representation_class.state_of(representation)
        )

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Become the learner that has this `state`; both must have the same settings."""
        if not state:
            self._data = self._center = self._statistics = self.tangents = None
            self.num_fits = self._samples_at_fit = 0
            self._error_monitor = PredictionErrorMonitor()
            return
        kind = self.weight_statistics
        prefixes = [REPRESENTATION_PREFIX, *([TANGENTS_PREFIX] if kind is not None else [])]
        validate_learner_state(state, num_tasks=self.num_tasks, prefixes=prefixes)
        state = {name: tensor.to(self.device, copy=True) for name, tensor in state.items()}
        inputs = state["data.inputs"]
        center, data, _ = self._prior(inputs)
        data.append(state["data.tasks"], inputs, state["data.targets"])
        representation = self.representation_class.restored(
            below(REPRESENTATION_PREFIX, state), inputs, self._network_generator(), self.device
        )
        statistics = HeadStatistics(
            CopyOnWriteRows(state["statistics.grams"]), state["statistics.moments"]
        )
        statistics.factors(self.penalty.ridge)  # raises if a Gram matrix has none
        heads = state["heads"]
        if heads.shape != center.heads.shape:
            raise InvalidInputError(
                f"the saved heads have shape {list(heads.shape)}, "
                f"this agent's have {list(center.heads.shape)}"
            )
        restored = replace(center, representation=representation, heads=heads)
        has_noise = self.reward_perturbation > 0
        validate_restored_fit(restored, data, statistics, self.penalty, has_noise=has_noise)
        tangents = None
        if kind is not None:
            # Statistics of one sample have the names, types and shapes of those of all.
            one = kind.statistics(restored, inputs[:1], state["data.tasks"][:1], None)
            saved = below(TANGENTS_PREFIX, state)
            validate_state_like(saved, one.tensors())
            tangents = kind.restored(saved, statistics)
        num_fits, samples_at_fit = (int(n) for n in state["counters"])
        monitor = PredictionErrorMonitor(*state["monitor"].tolist())

        self.num_fits, self._samples_at_fit = num_fits, samples_at_fit
        self._error_monitor = monitor
        self._store(restored, data, statistics, tangents)


def _usable(device: torch.device | str) -> torch.device:
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError) as error:
        raise InvalidInputError(f"device {device!r} cannot be used here: {error}") from error


def _is_computed_by(center: MultiheadFunction, computed: ChosenFeatures) -> bool:
    is_same = computed.representation is center.representation
    return is_same and computed.values.shape[1] == center.heads.shape[1]

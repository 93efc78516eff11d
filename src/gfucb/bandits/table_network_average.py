"""A table model and a network for the same table: an average of both predicts."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.bandits.learner import Learner
from gfucb.bandits.log_learning import learn_log
from gfucb.bandits.table_learner import TableLearner
from gfucb.core.errors import InvalidInputError
from gfucb.core.features import features_of
from gfucb.core.linalg import ridge_cholesky
from gfucb.core.nested import below, with_prefix
from gfucb.core.records import ChosenFeatures
from gfucb.core.shards import ONE_SHARD, Shards, totals
from gfucb.estimation.reward_scale import RewardScale
from gfucb.models import MultiheadFunction, MultitaskDataset
from gfucb.models.head_posterior import HeadPosterior
from gfucb.models.network_classes import StandardisedNetworkClass
from gfucb.models.posterior_state import checked_floats
from gfucb.models.representations import JoinedFeatures
from gfucb.models.reward_weights import (
    AverageWeights,
    PosteriorWeights,
    RewardWeights,
    RidgeWeights,
)

# The network starts with this many samples. It is given up after so many, if it lowers the squared
# errors to no less than this share: its fits take most of the time.
FIRST_SAMPLES, LAST_SAMPLES, LARGEST_RATIO = 30, 2000, 0.97
SMALL_SHARE = 0.1
# While its share is small, the network is fitted when the data has grown by this factor.
GROWTH_BESIDE = 1.5
# Errors count for about this many samples. The share starts at zero, as if so many errors had
# spoken for the table model alone.
HORIZON, PRIOR_ERRORS = 200, 20.0
PREFIX, COMPARISON = "network.", "comparison"


@dataclass(frozen=True)
class ErrorComparison:
    """Discounted sums over the errors of predictions that were made before the rewards came.

    Attributes:
        table: of squared errors of the table model.
        network: of squared errors of the network.
        product: of the products of both errors.
        count: the sum of the weights.
        has_given_up: whether the network has been given up.
    """

    table: float = 0.0
    network: float = 0.0
    product: float = 0.0
    count: float = 0.0
    has_given_up: bool = False

    @property
    def share(self) -> float:
        """Of the network in the average whose squared errors would have been smallest."""
        difference = self.table + self.network - 2 * self.product
        if difference <= 0:
            return 0.0
        best = min(1.0, max(0.0, (self.table - self.product) / difference))
        return best * self.count / (self.count + PRIOR_ERRORS)

    @property
    def error_ratio(self) -> float:
        """The squared errors of the average, relative to those of the table model; at most 1."""
        own, other = 1 - self.share, self.share
        average = own**2 * self.table + 2 * own * other * self.product + other**2 * self.network
        return min(1.0, max(0.0, average) / self.table) if self.table > 0 else 1.0

    def after(
        self, table: Tensor, network: Tensor, num_samples: int, shards: Shards = ONE_SHARD
    ) -> ErrorComparison:
        """With the errors [n] of both models; `num_samples` is the number of all samples."""
        sums = (float(sum_of.sum()) for sum_of in (table**2, network**2, table * network))
        added = totals(shards, *sums, len(table))
        old = (1 - 1 / HORIZON) ** added[-1]
        before = (self.table, self.network, self.product, self.count)
        found = ErrorComparison(*(old * x + new for x, new in zip(before, added, strict=True)))
        is_last = num_samples >= LAST_SAMPLES and found.error_ratio > LARGEST_RATIO
        return replace(found, has_given_up=is_last)

    def tensor(self) -> Tensor:
        """All numbers, to be saved."""
        numbers = (self.table, self.network, self.product, self.count, float(self.has_given_up))
        return torch.tensor(numbers, dtype=torch.float64)

    @classmethod
    def restored(cls, state: dict[str, Tensor]) -> ErrorComparison:
        """The comparison of a state, checked."""
        saved = checked_floats(state, COMPARISON, (5,))
        table, network, product, count, flag = saved.tolist()
        if min(table, network, count) < 0 or flag not in (0.0, 1.0):
            raise InvalidInputError(
                f"{COMPARISON!r} of the state is {saved.tolist()}; sums of squares and counts "
                "are not negative, and the last number is 0 or 1"
            )
        return cls(table, network, product, count, bool(flag))


class TableNetworkAverage:
    """A table model, and for wide tables a network beside it; it has the members of `Learner`.

    Both learn all samples. Where rewards depend on many columns at once, such as the pixels of an
    image, the network finds better features. The predicted mean is an average of both. The share
    of the network follows from the errors of both predictions of new rewards: it is that of the
    average with the smallest squared errors. Uncertainty is that of the table model, reduced as
    its errors are.
    """

    def __init__(self, table: TableLearner, network: Learner) -> None:
        self.table, self.network = table, network
        self.comparison = ErrorComparison()
        self._growth = network.refit_growth
        self._set_growth()

    @property
    def share(self) -> float:
        """Of the network in predictions."""
        return self.comparison.share if self.has_network else 0.0

    @property
    def has_network(self) -> bool:
        """Whether the network has data."""
        return self.network.num_samples > 0

    def fit_state(
        self, inputs: Tensor, candidates: Tensor | None = None
    ) -> tuple[MultiheadFunction, MultitaskDataset, HeadPosterior]:
        """The average of both models, the data, and the posterior of its heads."""
        center, data, posterior = self.table.fit_state(inputs, candidates)
        share = self.share
        if share == 0:
            return center, data, posterior
        other, _, _ = self.network.fit_state(inputs)
        heads = torch.cat([(1 - share) * center.heads, share * other.heads], dim=1)
        average = MultiheadFunction(
            JoinedFeatures(center.representation, other.representation),
            heads,
            (1 - share) * center.offset + share * other.offset,
            center.value_range,
        )
        radius = self.comparison.error_ratio * posterior.squared_radius
        return average, data, replace(posterior, known_heads=heads, squared_radius=radius)

    def reward_weights(
        self, of_table: PosteriorWeights, features: Tensor, first_dim: int
    ) -> RewardWeights:
        """The weights of rewards in the average, for samples with joined features [n, feature].

        The first `first_dim` features are those of the table model.
        """
        data = self.table.data
        assert data is not None  # it has samples
        _, _, statistics = self.network.fit_state(data.inputs[:1])
        ridge = self.network.penalty.ridge
        of_network = RidgeWeights(
            lambda tasks: ridge_cholesky(statistics.taken(tasks).grams, ridge),
            features[:, first_dim:],
            data.tasks,
        )
        return AverageWeights(of_table, of_network, self.share, first_dim)

    def learn(
        self,
        tasks: Tensor,
        inputs: Tensor,
        rewards: Tensor,
        computed: ChosenFeatures | None = None,
    ) -> None:
        """Add samples [n], [n, *input], [n] to both models, and compare their predictions.

        One call fits one model at most: the network waits for a call in which the table does not.
        """
        comparison, num_fits = self.comparison, self.table.num_fits
        if self.has_network:
            comparison = self._compared(tasks, inputs, rewards)
            self._learn_without_fit(tasks, inputs, rewards, computed)
        try:
            self.table.learn(tasks, inputs, rewards, computed)
        except BaseException:
            # The network has learned what the table has not: it starts again with the next reward.
            self._drop_network()
            raise
        self.comparison = comparison
        self._set_growth()
        if comparison.has_given_up or self.table.has_just_changed:
            self._drop_network()
        if not self.defers_fits and self.table.num_fits == num_fits:
            self._fit_network()

    def _learn_without_fit(
        self,
        tasks: Tensor,
        inputs: Tensor,
        rewards: Tensor,
        computed: ChosenFeatures | None,
    ) -> None:
        before = self.network.defers_fits
        self.network.defers_fits = True
        try:
            self.network.learn(tasks, inputs, rewards, computed)
        finally:
            self.network.defers_fits = before

    def _fit_network(self) -> None:
        """Start the network or fit it again, if it is time."""
        if self._should_start():
            self._start()
        elif self.has_network and self.network.is_fit_due:
            self.network.refit()

    def _compared(self, tasks: Tensor, inputs: Tensor, rewards: Tensor) -> ErrorComparison:
        device = self.table.device
        tasks, inputs = tasks.to(device), inputs.to(device)
        clipped = self.table.scale.clip(rewards.to(device))

        def errors(learner: TableLearner | Learner) -> Tensor:
            center, _, _ = learner.fit_state(inputs)
            features = features_of(center.representation, inputs)
            return clipped - center.values_of_features(features, tasks)

        shards = self.table.shards
        num_samples = self.num_samples + int(totals(shards, len(tasks))[0])
        return self.comparison.after(errors(self.table), errors(self.network), num_samples, shards)

    def _should_start(self) -> bool:
        is_due = self.num_samples >= FIRST_SAMPLES and self.table.has_wide_inputs
        return is_due and not self.has_network and not self.comparison.has_given_up

    def _start(self) -> None:
        """Fit the network to all samples so far."""
        data = self.table.data
        assert data is not None  # it has samples
        learn_log(self.network, data.tasks, data.inputs, data.targets)

    def _drop_network(self) -> None:
        self.network.load_state({})
        self.comparison = ErrorComparison(has_given_up=self.comparison.has_given_up)
        self._set_growth()

    def _set_growth(self) -> None:
        is_beside = self.comparison.share < SMALL_SHARE
        self.network.refit_growth = max(self._growth, GROWTH_BESIDE) if is_beside else self._growth

    def add_tasks(self, count: int) -> None:
        """Add tasks without data."""
        self.table.add_tasks(count)
        self.network.add_tasks(count)

    def divide(self, shards: Shards) -> None:
        """Become the learner of one shard's tasks; all shards call this together."""
        self.table.divide(shards)
        self.network.divide(shards)
        self.network.representation_class = StandardisedNetworkClass(shards=shards)

    def refit(self) -> None:
        """Fit all data again, and start the network if it is time."""
        self.table.refit()
        if self.has_network:
            self.network.refit()
        elif self._should_start():
            self._start()

    def refit_due(self) -> None:
        """Fit the model whose fit is due, or both."""
        self.table.refit_due()
        if self.has_network:
            self.network.refit_due()
        elif self._should_start():
            self._start()

    def snapshot(self) -> TableNetworkAverage:
        """A learner with the same state; what one of them learns does not change the other."""
        same = copy.copy(self)
        same.table, same.network = self.table.snapshot(), self.network.snapshot()
        return same

    @property
    def defers_fits(self) -> bool:
        """Whether `learn` updates heads only, and fits are made by `refit`."""
        return self.table.defers_fits

    @defers_fits.setter
    def defers_fits(self, value: bool) -> None:
        self.table.defers_fits = self.network.defers_fits = value

    @property
    def defers_first_fit(self) -> bool:
        """Whether the first rewards are not fitted at once either."""
        return self.table.defers_first_fit

    @defers_first_fit.setter
    def defers_first_fit(self, value: bool) -> None:
        self.table.defers_first_fit = self.network.defers_first_fit = value

    @property
    def is_fit_due(self) -> bool:
        """Whether one of the models should be fitted again."""
        is_network_due = self.has_network and self.network.is_fit_due
        return self.table.is_fit_due or is_network_due or self._should_start()

    @property
    def scale(self) -> RewardScale:
        """The scale of rewards."""
        return self.table.scale

    @property
    def num_samples(self) -> int:
        """How many rewards the learner has seen."""
        return self.table.num_samples

    @property
    def num_fits(self) -> int:
        """How often all data was fitted, by both models."""
        return self.table.num_fits + self.network.num_fits

    def state(self) -> dict[str, Tensor]:
        """The states of both models."""
        state = self.table.state()
        if not state or not self.table.has_wide_inputs:
            return state
        network = with_prefix(PREFIX, self.network.state())
        return state | {COMPARISON: self.comparison.tensor()} | network

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Become the learner that has this `state`; both must have the same settings."""
        of_network = below(PREFIX, state)
        comparison = ErrorComparison.restored(state) if COMPARISON in state else ErrorComparison()
        if comparison.count > 0 and not of_network:
            raise InvalidInputError(
                f"{COMPARISON!r} of the state compares a network, but the state has none"
            )
        names = {COMPARISON, *(f"{PREFIX}{name}" for name in of_network)}
        network = self.network.snapshot()
        network.load_state(of_network)
        self.table.load_state({name: t for name, t in state.items() if name not in names})
        self.network, self.comparison = network, comparison
        self._set_growth()

"""The learner of catalogues: items with ids, whose values have a prior learned from all tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from gfucb.bandits.posterior_learner import PosteriorLearner
from gfucb.core.errors import InvalidInputError
from gfucb.core.features import features_of
from gfucb.core.records import ChosenFeatures
from gfucb.core.shards import mean_of_all
from gfucb.core.validation.states import validate_state_tensor
from gfucb.estimation.item_prior import ItemPrior
from gfucb.estimation.item_prior_fit import fit_item_prior
from gfucb.models import MultitaskDataset
from gfucb.models.head_posterior import HeadPosterior, PosteriorFit
from gfucb.models.item_features import ItemEmbeddings, positions_of
from gfucb.models.posterior_state import checked_floats
from gfucb.models.table_sizes import MANY_TASKS

# The prior is estimated again when the data has grown by this factor: on Jester regret was 0.3 to
# 2% less than with 1.25.
CATALOGUE_GROWTH = 1.1
# Intervals of this many posterior standard deviations. On Jester (300 users, five tuning seeds) the
# regret of a decision was 0.2123 with 0, 0.2115 with 0.3, 0.2127 with 0.6 and 0.2144 with 1.
DEVIATIONS = 0.5
# At most this many numbers in the covariance matrices of all tasks.
LARGEST_COVARIANCES = 20_000_000
# The mean of an item is the value of one more feature, whose weight is known up to this share.
MEAN_SHARE = 1e-3
# Before any reward: the standard deviation of the values, and of the noise, relative to the range.
FIRST_DEVIATION = 0.25


class CatalogueLearner(PosteriorLearner):
    """Keeps a Gaussian model of the values of items up to date, see `fit_item_prior`.

    The values of all items for a task have a prior with a mean and a covariance over tasks. A
    task therefore starts from what is popular, and a reward for one item tells about others.
    """

    kind: ClassVar[str] = "catalogue"

    def prior_fit(self, inputs: Tensor, candidates: Tensor | None) -> PosteriorFit:
        """Equal means and independent values of the items at hand."""
        ids = self._all_ids(inputs)
        width = self.reward_range or 1.0
        variance = (FIRST_DEVIATION * width) ** 2
        zeros = torch.zeros(len(ids), dtype=torch.float64, device=self.device)
        prior = ItemPrior(
            zeros, zeros.new_zeros(len(ids), 0), zeros + variance, zeros.new_tensor(variance)
        )
        return self._without_data(prior, ids, self.initial_offset)

    def fit_all(
        self,
        data: MultitaskDataset,
        rewards: Tensor,
        before: PosteriorFit | None,
        computed: ChosenFeatures | None,
    ) -> PosteriorFit:
        """Estimate the prior over all tasks, and condition every task on its own rewards."""
        inputs, offset = data.inputs.flatten(), float(mean_of_all(self.shards, rewards))
        ids = self._all_ids(inputs)
        prior = fit_item_prior(
            positions_of(inputs, ids),
            data.tasks,
            rewards - offset,
            num_items=len(ids),
            shards=self.shards,
        )
        fit = self._without_data(prior, ids, offset)
        features = features_of(fit.features, data.inputs)
        posterior = fit.posterior.given(features, data.tasks, rewards - offset)
        return PosteriorFit(fit.features, posterior, offset)

    def _all_ids(self, inputs: Tensor) -> Tensor:
        """The distinct ids of the inputs [n] or [n, 1] of all shards, in ascending order."""
        ids = inputs.flatten().unique()
        return ids if self.shards.count == 1 else self.shards.gather(ids).unique()

    def _without_data(self, prior: ItemPrior, ids: Tensor, offset: float) -> PosteriorFit:
        """The prior as embeddings of known items and of an unknown one, with independent heads."""
        grown = prior.grown(len(ids) + 1)
        largest = math.isqrt(LARGEST_COVARIANCES // self.all_tasks)
        rows, noise = grown.embeddings(largest_exact=largest), float(prior.noise)
        if grown.num_items > largest:  # what is specific to a pair is then further noise
            total = noise + float(grown.diagonal.mean())
            rows, noise = rows * math.sqrt(noise / total), total
        size = float(grown.mean.abs().max()) or 1.0
        # The last feature times its known weight is the mean of the item.
        rows = torch.cat([rows, MEAN_SHARE * grown.mean[:, None] / size], dim=1)
        mean = rows.new_zeros(rows.shape[1])
        mean[-1] = size / MEAN_SHARE
        empty = HeadPosterior.empty(
            self.num_tasks,
            rows.shape[1],
            0,
            mean_variances=torch.zeros_like(mean),
            exploration_scale=0.0,
            noise=noise,
            holds_samples=self.all_tasks > MANY_TASKS,
        )
        posterior = empty.with_mean(mean, squared_radius=DEVIATIONS**2 * noise)
        return PosteriorFit(ItemEmbeddings(ids, rows), posterior, offset)

    def state_of_features(self, fit: PosteriorFit) -> dict[str, Tensor]:
        """The known ids and the embeddings."""
        assert isinstance(fit.features, ItemEmbeddings)
        return {"catalogue.ids": fit.features.ids, "catalogue.rows": fit.features.rows}

    def restored_fit(
        self, state: Mapping[str, Tensor], inputs: Tensor, offset: float, posterior: HeadPosterior
    ) -> PosteriorFit:
        """The fit with the saved ids and embeddings."""
        ids = validate_state_tensor(state, "catalogue.ids", (None,), dtype=inputs.dtype)
        if not bool((ids[1:] > ids[:-1]).all()):
            raise InvalidInputError("'catalogue.ids' of the state must be ascending")
        shape = (len(ids) + 1, posterior.feature_dim)
        rows = checked_floats(state, "catalogue.rows", shape)
        features = ItemEmbeddings(ids.to(self.device), rows.to(self.device))
        return PosteriorFit(features, posterior, offset)

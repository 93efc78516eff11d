"""The learner of the default agent: it depends on the inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gfucb.bandits.candidate_learning import CandidateLearning
from gfucb.bandits.catalogue_learner import CATALOGUE_GROWTH, CatalogueLearner
from gfucb.bandits.learner import Learner
from gfucb.bandits.posterior_learner import PosteriorLearner
from gfucb.bandits.table_learner import TableLearner
from gfucb.bandits.table_network_average import TableNetworkAverage
from gfucb.core.errors import InvalidInputError
from gfucb.core.records import ChosenFeatures
from gfucb.core.shards import Shards
from gfucb.estimation.reward_scale import RewardScale
from gfucb.models import HeadStatistics, MultiheadFunction, MultitaskDataset
from gfucb.models.head_posterior import HeadPosterior
from gfucb.models.network_classes import REFIT_GROWTH, StandardisedNetworkClass
from gfucb.models.nn.networks import is_image_shape

# Grey, red-green-blue, and with transparency.
CHANNELS = (1, 3, 4)


class DefaultLearner:
    """A network for images, Gaussian models for tables and items; it has the members of `Learner`.

    Inputs of at least 8 x 8 numbers are images, single integers are ids of items, all others are
    tables. The first rewards fix the choice. Wide tables also have a network, see
    `TableNetworkAverage`.
    """

    def __init__(
        self, network: Learner, tables: TableNetworkAverage, catalogue: CatalogueLearner
    ) -> None:
        self.network, self.tables, self.catalogue = network, tables, catalogue
        self._chosen: Learner | TableNetworkAverage | CatalogueLearner | None = None

    @classmethod
    def beside(cls, network: Learner) -> DefaultLearner:
        """With learners of tables and items that have the same settings as that of the network."""
        settings: dict[str, Any] = {
            "num_tasks": network.num_tasks,
            "scaling": network.scaling,
            "seed": network.seed,
            "device": network.device,
            "keeping": network.keeping,
        }
        growth = network.refit_growth
        beside = Learner(
            representation_class=StandardisedNetworkClass(),
            fit=network.fit,
            penalty=network.penalty,
            refit_growth=growth,
            # The table model beside it finds changes, and the network then starts again.
            **{**settings, "keeping": network.keeping.without_drift()},
        )
        tables = TableNetworkAverage(TableLearner(refit_growth=growth, **settings), beside)
        # Without a growth of the user's own, catalogues have another default than networks.
        own = CATALOGUE_GROWTH if growth == REFIT_GROWTH else growth
        catalogue = CatalogueLearner(refit_growth=own, **settings)
        return cls(network, tables, catalogue)

    @property
    def chosen(self) -> Learner | PosteriorLearner:
        """The learner that decides; the network before any reward."""
        found = self._holder
        return found.table if isinstance(found, TableNetworkAverage) else found

    @property
    def averaged(self) -> TableNetworkAverage | None:
        """The learner of a table, if the network beside it is part of its predictions."""
        found = self._holder
        return found if isinstance(found, TableNetworkAverage) and found.share > 0 else None

    def for_inputs(self, inputs: Tensor) -> Learner | TableNetworkAverage | CatalogueLearner:
        """The learner of inputs [n, *input]."""
        if self._chosen is not None:
            return self._chosen
        if is_item(inputs):
            return self.catalogue
        _require_channels_first(inputs.shape[1:])
        return self.tables if is_table(inputs) else self.network

    @property
    def _holder(self) -> Learner | TableNetworkAverage | CatalogueLearner:
        """The learner that has data; the network before any reward."""
        return self._chosen or self.network

    @property
    def _all(self) -> tuple[Learner, TableNetworkAverage, CatalogueLearner]:
        return self.network, self.tables, self.catalogue

    def fit_state(
        self, inputs: Tensor, candidates: Tensor | None = None
    ) -> tuple[MultiheadFunction, MultitaskDataset, HeadStatistics | HeadPosterior]:
        """The center, the data and the statistics of the heads, for inputs [n, *input].

        `candidates` [row, action, *input] show which columns of a table are the same for all
        actions.
        """
        return self.for_inputs(inputs).fit_state(inputs, candidates)

    def learn(
        self,
        tasks: Tensor,
        inputs: Tensor,
        rewards: Tensor,
        computed: ChosenFeatures | None = None,
        offered: Tensor | None = None,
    ) -> None:
        """Add samples [n], [n, *input], [n] and update the fit; see `Learner.learn`."""
        if len(tasks) == 0 and self.network.shards.count == 1:
            return
        learner = self.for_inputs(inputs)
        if isinstance(learner, Learner):
            learner.learn(tasks, inputs, rewards, computed, offered)
        else:
            learner.learn(tasks, inputs, rewards, computed)
        self._chosen = learner

    def add_tasks(self, count: int) -> None:
        """Add tasks without data."""
        for learner in self._all:
            learner.add_tasks(count)

    def divide(self, shards: Shards) -> None:
        """Become the learner of one shard's tasks; all shards call this together."""
        for learner in self._all:
            learner.divide(shards)

    def refit(self) -> None:
        """Fit all data again; without data nothing changes."""
        self._holder.refit()

    def refit_due(self) -> None:
        """Fit all data again where a fit is due."""
        self._holder.refit_due()

    def snapshot(self) -> DefaultLearner:
        """A learner with the same state; what one of them learns does not change the other."""
        same = DefaultLearner(
            self.network.snapshot(), self.tables.snapshot(), self.catalogue.snapshot()
        )
        if self._chosen is not None:
            same._chosen = same._all[self._all.index(self._chosen)]
        return same

    @property
    def defers_fits(self) -> bool:
        """Whether `learn` updates heads only, and fits are made by `refit`."""
        return self.network.defers_fits

    @defers_fits.setter
    def defers_fits(self, value: bool) -> None:
        for learner in self._all:
            learner.defers_fits = value

    @property
    def defers_first_fit(self) -> bool:
        """Whether the first rewards are not fitted at once either."""
        return self.network.defers_first_fit

    @defers_first_fit.setter
    def defers_first_fit(self, value: bool) -> None:
        for learner in self._all:
            learner.defers_first_fit = value

    @property
    def is_fit_due(self) -> bool:
        """Whether all data should be fitted again."""
        return self._holder.is_fit_due

    @property
    def candidates(self) -> CandidateLearning | None:
        """What the chosen learner learns from all candidates."""
        return self.chosen.candidates if isinstance(self.chosen, Learner) else None

    def uses_candidates(self, inputs: Tensor) -> bool:
        """Whether the learner of inputs [n, *input] learns from all candidates."""
        learner = self.for_inputs(inputs)
        return isinstance(learner, Learner) and learner.uses_candidates(inputs)

    @property
    def scale(self) -> RewardScale:
        """The scale of rewards."""
        return self.chosen.scale

    @property
    def has_posterior(self) -> bool:
        """Whether the heads have a posterior, with a radius of its own."""
        return self._chosen is not None and isinstance(self.chosen, PosteriorLearner)

    @property
    def num_samples(self) -> int:
        """How many rewards the learner has seen."""
        return self._holder.num_samples

    @property
    def num_fits(self) -> int:
        """How often all data was fitted."""
        return self._holder.num_fits

    def state(self) -> dict[str, Tensor]:
        """The state of the learner that has data."""
        return self._holder.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Become the learner that has this `state`; both must have the same settings."""
        learner: Learner | TableNetworkAverage | CatalogueLearner = self.network
        for kind, found in (("table.", self.tables), ("catalogue.", self.catalogue)):
            if any(name.startswith(kind) for name in state):
                learner = found
        learner.load_state(state)
        for other in self._all:
            if other is not learner:
                other.load_state({})
        self._chosen = learner if state else None


def _require_channels_first(shape: torch.Size) -> None:
    """Refuse images [height, width, channel], which would be read as columns of a table."""
    if len(shape) == 3 and shape[2] in CHANNELS and is_image_shape(shape[:2]):
        raise InvalidInputError(
            f"inputs of shape {list(shape)} look like images whose channels are the last axis; "
            "pass [row, action, channel, height, width], such as images.movedim(-1, -3) of a "
            "tensor, or flatten inputs that are no images"
        )


def is_item(inputs: Tensor) -> bool:
    """Whether inputs [n, *input] are single integers: ids of items."""
    is_integer = inputs.dtype in (torch.int8, torch.int16, torch.int32, torch.int64)
    return is_integer and inputs.shape[1:].numel() <= 1  # a shard may have no rows


def is_table(inputs: Tensor) -> bool:
    """Whether inputs [n, *input] are columns of numbers: neither images nor item numbers."""
    shape = inputs.shape[1:]
    is_number = inputs.is_floating_point() or inputs.dtype == torch.uint8
    return is_number and len(shape) > 0 and not is_image_shape(shape)


def network_learner(learner: Learner | DefaultLearner, inputs: Tensor) -> Learner:
    """The learner of a network for inputs [n, *input]; other learners are refused."""
    if isinstance(learner, Learner):
        return learner
    found = learner.for_inputs(inputs)
    if isinstance(found, Learner):
        return found
    raise InvalidInputError(
        f"for {inputs.dtype} inputs of shape {list(inputs.shape[1:])} the default agent has no "
        "network, and replicas share one batch only if they have; "
        "pass representation=DefaultNetworkClass()"
    )

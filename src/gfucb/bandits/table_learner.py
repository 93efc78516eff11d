"""The learner of tables: features chosen by marginal likelihood, heads updated in closed form."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gfucb.bandits.table_state import restored_fit, state_of_fit
from gfucb.core.errors import InvalidInputError
from gfucb.core.features import features_of
from gfucb.core.random import random_stream
from gfucb.core.records import ChosenFeatures
from gfucb.estimation.reward_scale import RewardScale
from gfucb.estimation.reward_scaling import RewardScaling
from gfucb.estimation.table_fit import TableFit, fit_table, prior_fit
from gfucb.models import MultiheadFunction, MultitaskDataset
from gfucb.models.head_posterior import HeadPosterior
from gfucb.models.table_features import (
    FEWEST_FREQUENCIES,
    TableColumns,
    TableFeatures,
    TableScales,
    largest_size,
)
from gfucb.models.table_layout import TableLayout

# The scales of the features are chosen again when the data has grown by this factor.
REFIT_GROWTH = 1.3


class TableLearner:
    """Keeps a two-level linear model of a table up to date; it has the members of `Learner`.

    All data is fitted again when it has grown by 30%: standardisation, scales of the features,
    noise, and the mean of all heads. Between fits every reward updates the head of its task.
    """

    def __init__(
        self,
        *,
        num_tasks: int,
        scaling: RewardScaling,
        refit_growth: float = REFIT_GROWTH,
        seed: int,
        device: torch.device | str,
    ) -> None:
        self.num_tasks = num_tasks
        self.scaling = scaling
        self.refit_growth = refit_growth
        self.seed = seed
        self.device = torch.device(device)
        self.num_fits = 0
        self._samples_at_fit = 0
        self._data: MultitaskDataset | None = None
        self._fit: TableFit | None = None
        self.scale = RewardScale()
        self._has_warned = False

    @property
    def num_samples(self) -> int:
        """How many rewards the learner has seen."""
        return 0 if self._data is None else len(self._data)

    @property
    def reward_range(self) -> float | None:
        """The width of the known range of rewards."""
        known = self.scaling.stated_range
        return None if known is None else known[1] - known[0]

    def fit_state(
        self, inputs: Tensor, candidates: Tensor | None = None
    ) -> tuple[MultiheadFunction, MultitaskDataset, HeadPosterior]:
        """The center, the data and the posterior, for inputs [n, *input].

        `candidates` [row, action, *input] show which columns differ between actions.

        Before the first reward the columns are standardised by the candidates, and the value is
        the middle of the value range everywhere. Nothing is stored.
        """
        if self._fit is None or self._data is None:
            layout = TableLayout(inputs[0].numel())
            if candidates is not None:
                layout = TableLayout.of_candidates(candidates.flatten(2))
            fit = self._prior(layout, inputs.flatten(1).to(torch.float64))
            return self._center(fit), self._empty_data(inputs), fit.posterior
        self._require_alike(inputs)
        return self._center(self._fit), self._data, self._fit.posterior

    def learn(
        self,
        tasks: Tensor,
        inputs: Tensor,
        rewards: Tensor,
        computed: ChosenFeatures | None = None,
    ) -> None:
        """Add samples [n], [n, *input], [n] and update the fit.

        `computed` are features of the inputs. The first ones also tell which columns are actions.
        """
        if len(tasks) == 0:
            return
        tasks, inputs, rewards = (x.to(self.device) for x in (tasks, inputs, rewards))
        data = self._empty_data(inputs) if self._data is None else self._data
        if self._data is not None:
            self._require_alike(inputs)
        size_before = len(data)
        data.append(tasks, inputs, rewards)
        try:
            is_outlier = self._fit is not None and self.scale.is_outdated_by(rewards)
            if (
                self._fit is None
                or len(data) >= self.refit_growth * self._samples_at_fit
                or is_outlier
            ):
                self._refit(data, computed)
            else:
                features = self._features(self._fit, inputs, computed)
                targets = self.scale.clip(rewards) - self._fit.offset
                posterior = self._fit.posterior.after(features, tasks, targets)
                self._fit = replace(self._fit, posterior=posterior)
        except BaseException:
            data.truncate(size_before)
            raise
        self._data = data
        if not self._has_warned and len(data) == self._samples_at_fit:  # after a fit
            limits = self.scale.limits if bool(self.scale.is_outside(data.targets).any()) else None
            self._has_warned = self.scaling.warn(data.targets, len(rewards), limits, stacklevel=6)

    def _refit(self, data: MultitaskDataset, computed: ChosenFeatures | None) -> None:
        inputs = data.inputs.flatten(1).to(torch.float64)
        if self._fit is None:
            columns, scales = self._first_columns(inputs, computed), TableScales()
        else:
            columns = self._fit.features.columns.standardised_by(inputs)
            scales = self._fit.features.scales
        scale = self._reward_scale(data.targets)
        fit = fit_table(
            inputs,
            data.tasks,
            scale.clip(data.targets),
            num_tasks=self.num_tasks,
            columns=columns,
            start=scales,
            reward_range=self.reward_range,
            generator=random_stream(self.seed, "table-fit", self.num_fits),
        )
        self._fit, self.scale = fit, scale
        self._samples_at_fit = len(data)
        self.num_fits += 1

    def _reward_scale(self, rewards: Tensor) -> RewardScale:
        if self.scaling.stated_range is not None:
            return self.scaling.estimated(rewards)
        return RewardScale.estimated(rewards)

    def _first_columns(self, inputs: Tensor, computed: ChosenFeatures | None) -> TableColumns:
        """Columns for the layout that the first decision has found, or that of the samples."""
        layout = self._affordable(TableLayout.of_samples(inputs))
        if computed is not None and isinstance(computed.representation, TableFeatures):
            layout = computed.representation.columns.layout
        return self._columns(layout, inputs)

    def _columns(self, layout: TableLayout, inputs: Tensor) -> TableColumns:
        generator = random_stream(self.seed, "table-frequencies")
        return TableColumns.of(layout, inputs, self.num_tasks, generator)

    def _affordable(self, layout: TableLayout) -> TableLayout:
        """The layout without actions, if weights for each action are too many."""
        part = 1 + layout.num_context + 2 * FEWEST_FREQUENCIES
        is_large = (layout.num_actions + 1) * part > 2 * largest_size(self.num_tasks)
        return TableLayout(layout.num_columns) if is_large else layout

    def _prior(self, layout: TableLayout, inputs: Tensor) -> TableFit:
        columns = self._columns(self._affordable(layout), inputs)
        posterior = prior_fit(
            inputs, num_tasks=self.num_tasks, columns=columns, reward_range=self.reward_range
        )
        low, high = self.scaling.stated_range or (0.0, 0.0)
        return TableFit(TableFeatures(columns, TableScales()), posterior, (low + high) / 2)

    def _center(self, fit: TableFit) -> MultiheadFunction:
        value_range = self.scaling.reported_range(self.scale)
        return MultiheadFunction(fit.features, fit.posterior.heads, fit.offset, value_range)

    @staticmethod
    def _features(fit: TableFit, inputs: Tensor, computed: ChosenFeatures | None) -> Tensor:
        if computed is not None and computed.representation is fit.features:
            return computed.values
        return features_of(fit.features, inputs)

    def _empty_data(self, inputs: Tensor) -> MultitaskDataset:
        dtype = inputs.dtype
        if inputs.is_floating_point():
            dtype = torch.promote_types(dtype, torch.float32)
        return MultitaskDataset(self.num_tasks, inputs.shape[1:], dtype, device=self.device)

    def _require_alike(self, inputs: Tensor) -> None:
        assert self._data is not None
        stored = self._data.inputs.shape[1:]
        if inputs.shape[1:] != stored:
            raise InvalidInputError(
                f"this agent has learned from inputs of shape {list(stored)}, "
                f"got inputs of shape {list(inputs.shape[1:])}"
            )

    def state(self) -> dict[str, Tensor]:
        """Named tensors from which `load_state` continues exactly; empty before any reward."""
        if self._data is None or self._fit is None:
            return {}
        return {
            "counters": torch.tensor([self.num_fits, self._samples_at_fit]),
            "data.inputs": self._data.inputs,
            "data.tasks": self._data.tasks,
            "data.targets": self._data.targets,
            **self.scale.tensors(),
            **state_of_fit(self._fit),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Become the learner that has this `state`; both must have the same settings."""
        if not state:
            self._data = self._fit = None
            self.num_fits = self._samples_at_fit = 0
            self.scale = RewardScale()
            return
        fit, scale, counters = restored_fit(state, self.num_tasks, self.device)
        inputs = state["data.inputs"].to(self.device, copy=True)
        data = self._empty_data(inputs)
        tasks, targets = (state[f"data.{name}"].to(self.device) for name in ("tasks", "targets"))
        data.append(tasks, inputs, targets)
        self._data, self._fit, self.scale = data, fit, scale
        self.num_fits, self._samples_at_fit = counters

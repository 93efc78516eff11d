"""The learner of tables: features chosen by marginal likelihood, heads updated in closed form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, fields, replace
from typing import ClassVar

import torch
from torch import Tensor

from gfucb.bandits.posterior_learner import PosteriorLearner
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Representation
from gfucb.core.random import random_stream
from gfucb.core.records import ChosenFeatures
from gfucb.core.validation.states import validate_state_tensor
from gfucb.estimation.pooled_fit import MOST_FREQUENCIES
from gfucb.estimation.table_fit import fit_table, prior_posterior
from gfucb.estimation.table_search import LIMITS
from gfucb.models import MultitaskDataset
from gfucb.models.continuous_actions import MOST_CONTINUOUS, ContinuousActions
from gfucb.models.head_posterior import HeadPosterior, PosteriorFit
from gfucb.models.posterior_state import checked_floats
from gfucb.models.table_features import PooledFunction, TableColumns, TableFeatures, TableScales
from gfucb.models.table_layout import TableLayout
from gfucb.models.table_sizes import most_directions

# A table with this many columns is wide.
WIDE_TABLE = 16
PROJECTION, FACTOR = "table.projection", "table.factor"
CONTINUOUS = "table.continuous"
POOLED_FREQUENCIES, POOLED_WEIGHTS, POOLED_SCALES = (
    f"table.pooled_{name}" for name in ("frequencies", "weights", "scales")
)


class TableLearner(PosteriorLearner):
    """Keeps a two-level linear model of a table up to date, see `fit_table`.

    A fit chooses standardisation, scales of the features, noise, and mean and covariance of heads.
    """

    kind: ClassVar[str] = "table"

    @property
    def has_wide_inputs(self) -> bool:
        """Whether its data has many columns and no one-hot actions."""
        if self._fit is None or not isinstance(self._fit.features, TableFeatures):
            return False
        layout = self._fit.features.columns.layout
        return layout.num_actions == 0 and layout.num_columns >= WIDE_TABLE

    def prior_fit(self, inputs: Tensor, candidates: Tensor | None) -> PosteriorFit:
        """Columns are standardised by the inputs."""
        layout = TableLayout(inputs.shape[1:].numel())
        if candidates is not None:
            layout = TableLayout.of_candidates(candidates.flatten(2), self.shards)
        flat = inputs.flatten(1).to(torch.float64)
        columns = self._columns(self._affordable(layout), flat)
        if candidates is not None and layout.num_actions == 0:
            continuous = ContinuousActions.of_candidates(candidates.flatten(2), self.shards)
            columns = replace(columns, continuous=continuous)
        posterior = prior_posterior(
            flat, num_tasks=self.num_tasks, columns=columns, reward_range=self.reward_range
        )
        features = TableFeatures(columns, columns.usual_scales)
        return PosteriorFit(features, posterior, self.initial_offset)

    def prior_of(self, inputs: Tensor, known: Representation | None) -> PosteriorFit:
        """The prior on the columns that the first decision has found."""
        flat, is_single = inputs.flatten(1).to(torch.float64), self.all_tasks == 1
        layout = TableLayout.of_samples(flat, self.shards)
        columns = self._columns(self._affordable(layout), flat)
        if isinstance(known, TableFeatures):
            columns = known.columns
        posterior = prior_posterior(
            flat, num_tasks=self.num_tasks, columns=columns, reward_range=self.reward_range
        )
        scales = columns.usual_scales
        if is_single:
            scales = replace(scales, mean_ratio=0.0)
        return PosteriorFit(TableFeatures(columns, scales), posterior, self.initial_offset)

    def fit_all(
        self,
        data: MultitaskDataset,
        rewards: Tensor,
        before: PosteriorFit | None,
        computed: ChosenFeatures | None,
    ) -> PosteriorFit:
        """Standardise again, and search scales from those of the fit before."""
        inputs = data.inputs.flatten(1).to(torch.float64)
        if before is not None and isinstance(before.features, TableFeatures):
            start = self._next_start(before.features, inputs)
        else:
            columns = self._first_columns(inputs, computed)
            start = TableFeatures(columns, columns.usual_scales)
        return fit_table(
            inputs,
            data.tasks,
            rewards,
            num_tasks=self.num_tasks,
            start=start,
            reward_range=self.reward_range,
            generator=random_stream(self.seed, "table-fit", self.num_fits),
            pooled_frequencies=self._pooled_frequencies(start.columns),
            shards=self.shards,
        )

    def _pooled_frequencies(self, columns: TableColumns) -> Tensor:
        generator = random_stream(self.seed, "pooled-frequencies")
        shape = (MOST_FREQUENCIES, columns.num_directions)
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(self.device)

    def _next_start(self, before: TableFeatures, inputs: Tensor) -> TableFeatures:
        """The features of the fit before, standardised by all inputs [sample, column]."""
        columns, scales = before.columns, before.scales
        layout = columns.layout.corrected_by(inputs, self.shards)
        is_same, has_new_tasks = layout == columns.layout, columns.num_tasks != self.all_tasks
        if is_same and not has_new_tasks:
            return replace(before, columns=columns.standardised_by(inputs, self.shards))
        continuous = columns.continuous if is_same else None
        columns = replace(self._columns(self._affordable(layout), inputs), continuous=continuous)
        if has_new_tasks and scales.mean_ratio == 0:  # of a single task
            scales = replace(scales, mean_ratio=TableScales().mean_ratio)
        return TableFeatures(columns, scales, pooled=before.pooled if is_same else None)

    def _first_columns(self, inputs: Tensor, computed: ChosenFeatures | None) -> TableColumns:
        """Columns for the layout that the first decision has found, or that of the samples."""
        if computed is not None and isinstance(computed.representation, TableFeatures):
            known = computed.representation.columns
            layout = known.layout.corrected_by(inputs, self.shards)
            columns = self._columns(self._affordable(layout), inputs)
            return replace(columns, continuous=known.continuous)
        layout = TableLayout.of_samples(inputs, self.shards)
        return self._columns(self._affordable(layout), inputs)

    def _columns(self, layout: TableLayout, inputs: Tensor) -> TableColumns:
        generator = random_stream(self.seed, "table-frequencies")
        return TableColumns.of(layout, inputs, self.all_tasks, generator, self.shards)

    def _affordable(self, layout: TableLayout) -> TableLayout:
        """The layout without actions, if weights for each action are too many."""
        is_large = most_directions(layout, self.all_tasks) == 0
        return TableLayout(layout.num_columns) if is_large else layout

    def state_of_features(self, fit: PosteriorFit) -> dict[str, Tensor]:
        """Layout, standardisation, frequencies, scales, correlation, continuous actions."""
        assert isinstance(fit.features, TableFeatures)
        columns, layout = fit.features.columns, fit.features.columns.layout
        numbers = (
            layout.num_columns,
            layout.first_action,
            layout.num_actions,
            int(columns.explores_columns),
            columns.num_tasks,
        )
        state = {
            "table.layout": torch.tensor(numbers),
            "table.location": columns.location,
            "table.spread": columns.spread,
            "table.frequencies": columns.frequencies,
            "table.scales": _scales_tensor(fit.features.scales),
            # Without continuous actions an empty one: its absence is an error.
            CONTINUOUS: _continuous_state(columns),
        }
        if columns.projection is not None:
            state[PROJECTION] = columns.projection
        elif columns.has_directions:  # an empty one: its absence is an error
            state[PROJECTION] = columns.location.new_zeros(len(columns.location), 0)
        if columns.num_tasks > 1:  # without a covariance an empty one: its absence is an error
            factor = fit.features.factor
            state[FACTOR] = columns.location.new_zeros(0, 0) if factor is None else factor
        if fit.features.pooled is not None:
            state |= _pooled_state(fit.features.pooled)
        return state

    def restored_fit(
        self, state: Mapping[str, Tensor], inputs: Tensor, offset: float, posterior: HeadPosterior
    ) -> PosteriorFit:
        """The fit with the saved layout, standardisation, frequencies, scales and correlation."""
        saved = validate_state_tensor(state, "table.layout", (5,), dtype=torch.int64, low=0)
        num_columns, first_action, num_actions, explores_columns, num_tasks = saved.tolist()
        width = inputs.shape[1:].numel()
        if num_columns != width or first_action + num_actions > width:
            raise InvalidInputError(
                f"'table.layout' of the state is {saved.tolist()}, "
                f"but its inputs have {width} columns"
            )
        if not 1 <= num_tasks <= self.all_tasks:  # tasks may have been added since the last fit
            raise InvalidInputError(
                f"'table.layout' of the state is for {num_tasks} tasks, "
                f"but the agent has {self.all_tasks}"
            )
        layout = TableLayout(num_columns, first_action, num_actions)
        context = layout.num_context
        columns = TableColumns(
            layout,
            checked_floats(state, "table.location", (context,)).to(self.device),
            checked_floats(state, "table.spread", (context,), low=math.ulp(0.0)).to(self.device),
            None,
            checked_floats(state, "table.frequencies", (None, None)).to(self.device),
            num_tasks,
            bool(explores_columns),
            has_pooled=POOLED_WEIGHTS in state,
            continuous=self._restored_continuous(state, layout),
        )
        if PROJECTION in state or columns.has_directions:
            projection = checked_floats(state, PROJECTION, (context, None)).to(self.device)
            columns = columns.along(projection if projection.shape[1] else None)
        checked_floats(state, "table.frequencies", (None, columns.num_directions))
        features = TableFeatures(
            columns,
            _restored_scales(state, "table.scales", has_mean=num_tasks > 1),
            self._restored_factor(state, posterior.feature_dim) if num_tasks > 1 else None,
            self._restored_pooled(state, columns) if columns.has_pooled else None,
        )
        return PosteriorFit(features, posterior, offset)

    def _restored_continuous(
        self, state: Mapping[str, Tensor], layout: TableLayout
    ) -> ContinuousActions | None:
        """The saved continuous actions, None if empty; columns that are no actions are refused."""
        saved = checked_floats(state, CONTINUOUS, (3, None)).to(self.device)
        if saved.shape[1] == 0:
            return None
        columns, (_, center, half_range) = saved[0].long(), saved
        is_valid = layout.num_actions == 0 and len(columns) <= MOST_CONTINUOUS
        is_valid &= torch.equal(columns.to(saved), saved[0]) and bool((half_range > 0).all())
        is_valid &= bool((columns >= 0).all()) and bool((columns < layout.num_columns).all())
        if not is_valid:
            raise InvalidInputError(
                f"{CONTINUOUS!r} of the state must have at most {MOST_CONTINUOUS} columns of "
                f"inputs without one-hot actions, with positive ranges, got {saved.tolist()}"
            )
        return ContinuousActions(columns, center, half_range)

    def _restored_pooled(
        self, state: Mapping[str, Tensor], columns: TableColumns
    ) -> PooledFunction:
        """The saved function of all tasks, checked."""
        directions, num_actions = columns.num_directions, max(1, columns.layout.num_actions)
        frequencies = checked_floats(state, POOLED_FREQUENCIES, (None, directions))
        size = 1 + directions + 2 * len(frequencies)
        weights = checked_floats(state, POOLED_WEIGHTS, (num_actions, size))
        scales = _restored_scales(state, POOLED_SCALES, has_mean=num_actions > 1)
        return PooledFunction(frequencies.to(self.device), scales, weights.to(self.device))

    def _restored_factor(self, state: Mapping[str, Tensor], size: int) -> Tensor | None:
        """The saved factor, None if it is empty; what is no lower Cholesky factor is refused."""
        if FACTOR in state and state[FACTOR].numel() == 0:
            checked_floats(state, FACTOR, (0, 0))
            return None
        factor = checked_floats(state, FACTOR, (size, size))
        if bool(factor.triu(1).any()) or not bool((factor.diagonal() > 0).all()):
            raise InvalidInputError(f"'{FACTOR}' of the state is not a lower Cholesky factor")
        return factor.to(self.device)


def _continuous_state(columns: TableColumns) -> Tensor:
    """Indices, centers and half ranges of continuous actions: [3, continuous]."""
    found = columns.continuous
    if found is None:
        return columns.location.new_zeros(3, 0)
    return torch.stack([found.columns.to(found.center), found.center, found.half_range])


def _pooled_state(pooled: PooledFunction) -> dict[str, Tensor]:
    return {
        POOLED_FREQUENCIES: pooled.frequencies,
        POOLED_WEIGHTS: pooled.weights,
        POOLED_SCALES: _scales_tensor(pooled.scales),
    }


def _scales_tensor(scales: TableScales) -> Tensor:
    return torch.tensor(astuple(scales), dtype=torch.float64)


def _restored_scales(state: Mapping[str, Tensor], key: str, *, has_mean: bool) -> TableScales:
    """The saved scales; those that no search can find are refused."""
    names = [field.name for field in fields(TableScales)]
    scales = TableScales(*checked_floats(state, key, (len(names),)).tolist())
    for name in names:
        low, high = LIMITS[name]
        if name == "mean_ratio" and not has_mean:
            low = high = 0.0
        if not low <= getattr(scales, name) <= high:
            raise InvalidInputError(
                f"{key!r} of the state: {name} must lie between {low:g} and {high:g}, "
                f"got {getattr(scales, name):g}"
            )
    return scales

"""Features of tables: a linear part and random Fourier features, with weights for each action."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.core.shards import ONE_SHARD, Shards, mean_of_all, totals
from gfucb.models.column_directions import FEWEST_COLUMNS, MOST_COLUMNS, ColumnDirections
from gfucb.models.continuous_actions import ContinuousActions
from gfucb.models.possible_effects import possible_effects
from gfucb.models.table_layout import TableLayout
from gfucb.models.table_sizes import largest_size, most_directions, num_frequencies

# Standardised columns are clipped here, so that one typing error does not dominate a fit.
LARGEST_STANDARDISED = 10.0
# A column whose spread is this small, relative to its values, is constant up to rounding.
CONSTANT_SPREAD = 1e-9
# A column with its lowest or its highest value in this share of the samples has another unit.
USUAL_SHARE = 0.5
# The usual prior variance of constants of one-hot actions in a context, relative to that of all
# linear effects of the context. Without a context the constants are all there is, and have 1.
CONSTANT_IN_CONTEXT = 0.1


@dataclass(frozen=True)
class TableScales:
    """Prior scales of the weights of table features, chosen by `fit_table`.

    `bias`, `linear`, `fourier` and `pooled` are prior variances of the parts of a head, in units
    of the noise variance. With one-hot actions, a share `shared` of each variance is common to all
    actions. The mean of the heads of all tasks has `mean_ratio` times the variance of the
    deviation of one task from it.
    """

    bias: float = 1.0
    linear: float = 1.0
    fourier: float = 0.3
    length: float = 1.0
    shared: float = 0.2
    pooled: float = 1.0
    mean_ratio: float = 1.0


@dataclass(frozen=True, eq=False)
class TableColumns:
    """Standardised context columns, and the random frequencies: what scales do not change.

    Attributes:
        layout: of the inputs.
        location: of the context columns, [context column].
        spread: their units, [context column], see `standardised_by`.
        projection: [context column, direction]: to fewer directions, or so that directions in
            which columns vary together count more; None for the columns as they are.
        frequencies: standard normal, [frequency, direction].
        num_tasks: for how many tasks the sizes of features were chosen.
        explores_columns: whether `linear_features` include the columns; with very many actions
            and columns they are a constant for each action.
        has_pooled: whether the value of a `PooledFunction` is a feature.
        continuous: columns whose smooth effects `linear_features` include, if there are any.
    """

    layout: TableLayout
    location: Tensor
    spread: Tensor
    projection: Tensor | None
    frequencies: Tensor
    num_tasks: int = 1
    explores_columns: bool = True
    has_pooled: bool = False
    continuous: ContinuousActions | None = None

    @classmethod
    def of(
        cls,
        layout: TableLayout,
        inputs: Tensor,
        num_tasks: int,
        generator: torch.Generator,
        shards: Shards = ONE_SHARD,
    ) -> TableColumns:
        """Standardise by inputs [n, column], and draw projection and frequencies."""
        context, _ = layout.split(inputs.to(torch.float64))
        columns, projection = context.shape[1], None
        size = largest_size(num_tasks)
        most = most_directions(layout, num_tasks) or most_directions(TableLayout(0), num_tasks)
        if columns > most:
            normal = torch.randn(columns, most, generator=generator, dtype=torch.float64)
            projection = torch.linalg.qr(normal).Q.contiguous().to(inputs.device)
            columns = most
        count = num_frequencies(layout, columns, num_tasks)
        draws = torch.randn(count, columns, generator=generator, dtype=torch.float64)
        empty = context.new_zeros(context.shape[1])
        explores_columns = max(1, layout.num_actions) * (columns + 1) <= size
        frequencies = draws.to(inputs.device)
        plain = cls(layout, empty, empty + 1, projection, frequencies, num_tasks, explores_columns)
        return plain.standardised_by(inputs, shards)

    def standardised_by(self, inputs: Tensor, shards: Shards = ONE_SHARD) -> TableColumns:
        """The same with location and spread of these inputs [n, column].

        The spread is the standard deviation, but for columns that mostly have their lowest or their
        highest value, such as indicators and counts: the rarer other values are, the larger they
        would be in its units. Their spread is half of the range, but at most the root mean square
        of the distances of other values from the usual one, so that one far value is not the unit.
        """
        context, _ = self.layout.split(inputs.to(torch.float64))
        (total,) = totals(shards, len(context))
        if total == 0:
            return self
        location = mean_of_all(shards, context)
        spread = mean_of_all(shards, (context - location).square()).sqrt()
        low, high = _range_of_all(context, shards)
        varies = spread > CONSTANT_SPREAD * torch.maximum(low.abs(), high.abs())
        counts = shards.sum(torch.stack([context == low, context == high]).sum(1))
        most, usual = counts.amax(0), torch.where(counts[0] >= counts[1], low, high)
        distances = shards.sum((context - usual).square().sum(0))
        far = (distances / (total - most).clamp_min(1)).sqrt()
        is_mostly_one = most >= USUAL_SHARE * total
        spread = torch.where(is_mostly_one, torch.minimum((high - low) / 2, far), spread)
        spread = torch.where(varies, spread, torch.ones_like(spread))
        return replace(self, location=location, spread=spread)

    def standardise(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """Standardised directions [n, direction] and one-hot actions [n, action]."""
        columns, actions = self._standardised(inputs)
        if self.projection is not None:
            columns = columns @ self.projection
        return columns, actions

    def _standardised(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """The same before the projection, [n, context column]."""
        context, actions = self.layout.split(inputs.to(torch.float64))
        columns = (context - self.location) / self.spread
        return columns.clamp(-LARGEST_STANDARDISED, LARGEST_STANDARDISED), actions

    @property
    def has_directions(self) -> bool:
        """Whether correlations of the columns are used.

        Not those of a context of one-hot actions: each action has weights of its own there, and
        rare values that matter, such as the smell of a mushroom, have little variance.
        """
        is_usual = FEWEST_COLUMNS <= len(self.location) <= MOST_COLUMNS
        return is_usual and self.layout.num_actions == 0

    def directions(self, inputs: Tensor, shards: Shards = ONE_SHARD) -> ColumnDirections | None:
        """Directions in which the columns of inputs [n, column] vary together, if used."""
        if not self.has_directions:
            return None
        return ColumnDirections.of(self._standardised(inputs)[0], self.num_directions, shards)

    def along(self, projection: Tensor | None) -> TableColumns:
        """The same with another projection, to as many directions."""
        return replace(self, projection=projection)

    def of_context(self, frequencies: Tensor) -> TableColumns:
        """The same for inputs without the action, [n, context column], and other frequencies."""
        layout = TableLayout(self.layout.num_context)
        return replace(self, layout=layout, frequencies=frequencies, has_pooled=False)

    @property
    def num_directions(self) -> int:
        """The number of standardised columns, after a projection."""
        return len(self.location) if self.projection is None else self.projection.shape[1]

    @property
    def has_arms_of_one_task(self) -> bool:
        """Whether there is one task, whose candidates are one-hot actions in a context."""
        has_arms = self.num_directions > 0 and self.layout.num_actions > 0
        return has_arms and self.num_tasks == 1

    @property
    def usual_scales(self) -> TableScales:
        """The scales before any data, which few data leave nearly as they are."""
        has_arms = self.has_arms_of_one_task
        return TableScales(bias=CONSTANT_IN_CONTEXT) if has_arms else TableScales()

    @property
    def has_settings_only(self) -> bool:
        """Whether candidates have continuous actions and no other columns."""
        found = self.continuous
        return found is not None and found.are_all(self.layout.num_columns)

    @property
    def _has_linear_effects(self) -> bool:
        return self.explores_columns and not self.has_settings_only

    @property
    def explores_all_differences(self) -> bool:
        """Whether `linear_features` can express all in which candidates differ.

        Elsewhere there are effects without a feature: of an item, or of an action in a region.
        """
        has_only_arms = self.layout.num_actions > 0 and self.num_directions == 0
        return has_only_arms or self.has_settings_only

    def features(self, inputs: Tensor, length: float, pooled: Tensor | None = None) -> Tensor:
        """Features with unit scales, [n, feature]: common to all actions, then of each action.

        Each part is a constant, the columns, Fourier features with a `length` scale, and values
        `pooled` [n] if there are any.
        """
        columns, actions = self.standardise(inputs)
        part = smooth_features(columns, self.frequencies, length)
        if pooled is not None:
            part = torch.cat([part, pooled[:, None]], dim=1)
        return part if actions is None else torch.cat([part, _per_action(part, actions)], dim=1)

    def scales(self, scales: TableScales) -> Tensor:
        """The standard deviations of the weights of `features`, [feature]."""
        variances = [scales.bias]
        if self.num_directions:
            variances += [scales.linear] * self.num_directions
            variances += [scales.fourier] * (2 * len(self.frequencies))
        if self.has_pooled:
            variances.append(scales.pooled)
        part = self.location.new_tensor(variances)
        if self.layout.num_actions:
            own = ((1 - scales.shared) * part).repeat(self.layout.num_actions)
            part = torch.cat([scales.shared * part, own])
        return part.sqrt()

    def linear_features(self, inputs: Tensor) -> Tensor:
        """The `possible_effects` of each action: [n, linear feature].

        Settings alone have no linear effects: these would be largest at the ends of their scales,
        which would be tried first.
        """
        columns, actions = self.standardise(inputs)
        explored = columns if self._has_linear_effects else None
        part = possible_effects(explored, inputs, self.num_tasks, self.continuous)
        return part if actions is None else _per_action(part, actions)

    def action_columns(self) -> Tensor:
        """Which of the linear features are the constants of actions: [linear feature], booleans."""
        actions = self.layout.num_actions
        part = 1 + (self.num_directions if self._has_linear_effects else 0)
        part += 0 if self.continuous is None else self.continuous.num_features
        is_constant = torch.arange(max(1, actions) * part) % part == 0
        return (is_constant & (actions > 0)).to(self.location.device)


@dataclass(frozen=True, eq=False)
class PooledFunction:
    """One function of context and action for all tasks, with many more frequencies than a head.

    Attributes:
        frequencies: [frequency, direction].
        scales: of its weights.
        weights: on `smooth_features`, of each action, [action, feature]; one row without actions.
    """

    frequencies: Tensor
    scales: TableScales
    weights: Tensor

    def values(self, columns: TableColumns, inputs: Tensor) -> Tensor:
        """[n, column] -> [n]."""
        context, actions = columns.standardise(inputs)
        features = smooth_features(context, self.frequencies, self.scales.length)
        if actions is None:
            return features @ self.weights[0]
        return (features @ self.weights.T * actions).sum(1)


@dataclass(frozen=True, eq=False)
class TableFeatures:
    """A representation of tables: scaled features, then linear features for exploration.

    Under the prior, the deviation of the head of a task from the mean of all tasks is
    N(0, noise variance * I) on the scaled features. The linear features have zero weight in every
    head; they carry the additional uncertainty of `HeadPosterior.exploration`.

    Attributes:
        columns: standardisation and frequencies.
        scales: prior scales of the weights.
        factor: lower Cholesky factor of the correlation of weights over tasks,
            [feature, feature]; None for uncorrelated weights.
        pooled: the function of all tasks whose value is a feature, if there is one.
    """

    columns: TableColumns
    scales: TableScales
    factor: Tensor | None = None
    pooled: PooledFunction | None = None

    @property
    def has_context(self) -> bool:
        """Whether there are columns beside a one-hot action."""
        return self.columns.num_directions > 0

    @property
    def has_arms_of_one_task(self) -> bool:
        """Whether there is one task, whose candidates are one-hot actions in a context."""
        return self.columns.has_arms_of_one_task

    def __call__(self, inputs: Tensor) -> Tensor:
        """[n, column] -> [n, feature]."""
        inputs = inputs.flatten(1)
        pooled = None if self.pooled is None else self.pooled.values(self.columns, inputs)
        plain = self.columns.features(inputs, self.scales.length, pooled)
        scaled = plain * self.columns.scales(self.scales)
        if self.factor is not None:
            scaled = scaled @ self.factor
        return torch.cat([scaled, self.columns.linear_features(inputs)], dim=1)


def smooth_features(columns: Tensor, frequencies: Tensor, length: float) -> Tensor:
    """A constant, standardised columns [n, direction], and Fourier features: [n, feature]."""
    parts = [columns.new_ones(len(columns), 1)]
    if columns.shape[1]:
        linear = columns / math.sqrt(columns.shape[1])
        parts += [linear, fourier_features(columns, frequencies, length)]
    return torch.cat(parts, dim=1)


def fourier_features(columns: Tensor, frequencies: Tensor, length: float) -> Tensor:
    """Random Fourier features of standardised columns [n, direction]: [n, 2 frequency]."""
    phases = columns @ frequencies.T / (length * math.sqrt(columns.shape[1]))
    return torch.cat([phases.cos(), phases.sin()], dim=1) / math.sqrt(len(frequencies))


def _range_of_all(context: Tensor, shards: Shards) -> tuple[Tensor, Tensor]:
    """The smallest and the largest value of each column [n, column], over all shards."""
    if shards.count == 1:
        return context.amin(0), context.amax(0)
    own = torch.stack([context.amin(0), context.amax(0)]) if len(context) else context[:0]
    found = shards.gather(own)
    return found.amin(0), found.amax(0)


def _per_action(part: Tensor, actions: Tensor) -> Tensor:
    """Features [n, feature] in the block of the action [n, action]: [n, action * feature]."""
    return (actions[:, :, None] * part[:, None, :]).flatten(1)

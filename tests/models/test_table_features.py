"""Features of tables: standardisation, Fourier features, weights for each action, sizes."""

import math
from dataclasses import replace

import pytest
import torch

from gfucb.core.random import random_stream
from gfucb.models.continuous_actions import ContinuousActions
from gfucb.models.possible_effects import (
    EXPLORED_ALONE,
    EXPLORED_COLUMNS,
    EXPLORED_CONTINUOUS,
    EXPLORED_SETTINGS,
)
from gfucb.models.table_features import (
    LARGEST_STANDARDISED,
    TableColumns,
    TableFeatures,
    TableScales,
)
from gfucb.models.table_layout import TableLayout
from gfucb.models.table_sizes import (
    FEWEST_DIRECTIONS,
    FEWEST_FREQUENCIES,
    LARGEST_COVARIANCES,
    MANY_TASKS,
    MOST_FEATURES,
    MOST_FREQUENCIES,
    largest_interactions,
    largest_size,
    most_directions,
)

ROWS, COLUMNS, ARMS = 50, 3, 4
SCALES = TableScales(bias=2.0, linear=3.0, fourier=5.0, length=0.7, shared=0.4)


def normal(name: str, *shape: int) -> torch.Tensor:
    draws = random_stream(0, "table features", name)
    return torch.randn(*shape, generator=draws, dtype=torch.float64)


def columns_of(inputs: torch.Tensor, layout: TableLayout | None = None, num_tasks: int = 1):
    layout = layout or TableLayout(inputs.shape[1])
    return TableColumns.of(layout, inputs, num_tasks, random_stream(0, "frequencies"))


TABLE = normal("table", ROWS, COLUMNS) * torch.tensor([1.0, 20.0, 0.1]) + 5
ONE_HOT = torch.eye(ARMS, dtype=torch.float64)[torch.arange(ROWS) % ARMS]
WITH_ARMS = torch.cat([TABLE, ONE_HOT], dim=1)
ARM_LAYOUT = TableLayout(COLUMNS + ARMS, COLUMNS, ARMS)


class TestStandardisation:
    def test_columns_have_mean_zero_and_variance_one(self):
        columns, actions = columns_of(TABLE).standardise(TABLE)
        assert actions is None
        torch.testing.assert_close(columns.mean(0), torch.zeros(COLUMNS).double())
        torch.testing.assert_close(columns.square().mean(0), torch.ones(COLUMNS).double())

    @pytest.mark.parametrize(
        ("factor", "shift"), [(200.0, 0.0), (1 / 200, 0.0), (1.0, 1e4), (30.0, -7.0)]
    )
    def test_an_affine_change_of_one_column_changes_no_features(self, factor, shift):
        changed = TABLE.clone()
        changed[:, 1] = factor * changed[:, 1] + shift
        one, other = (TableFeatures(columns_of(x), SCALES)(x) for x in (TABLE, changed))
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)

    @pytest.mark.parametrize("constant", [0.0, 1.0, 0.7, 123.456, -1e7 / 3, 1e14])
    def test_a_constant_column_has_no_effect(self, constant):
        """Also if the mean of equal numbers differs from them by rounding."""
        table = torch.cat([TABLE, torch.full((ROWS, 1), constant, dtype=torch.float64)], dim=1)
        found, _ = columns_of(table).standardise(table)
        torch.testing.assert_close(found[:, -1], torch.zeros(ROWS).double(), atol=0.1, rtol=0)
        torch.testing.assert_close(found[:, :-1], columns_of(TABLE).standardise(TABLE)[0])

    def test_a_column_of_small_numbers_is_no_constant(self):
        found, _ = columns_of(1e-12 * TABLE).standardise(1e-12 * TABLE)
        torch.testing.assert_close(found, columns_of(TABLE).standardise(TABLE)[0])

    def test_a_value_far_from_all_others_is_clipped(self):
        columns, far = columns_of(TABLE), TABLE[:1].clone()
        far[0, 1] = 1e9
        found, _ = columns.standardise(far)
        assert float(found[0, 1]) == LARGEST_STANDARDISED
        assert torch.equal(found[0, [0, 2]], columns.standardise(TABLE)[0][0, [0, 2]])

    def test_actions_are_not_standardised(self):
        columns, actions = columns_of(WITH_ARMS, ARM_LAYOUT).standardise(WITH_ARMS)
        assert torch.equal(actions, ONE_HOT)
        assert torch.equal(columns, columns_of(TABLE).standardise(TABLE)[0])

    def test_again_keeps_the_frequencies(self):
        before = columns_of(TABLE)
        after = before.standardised_by(TABLE[:20])
        assert after.frequencies is before.frequencies
        assert not torch.equal(after.location, before.location)
        torch.testing.assert_close(after.location, TABLE[:20].mean(0))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
    def test_features_of_other_types_are_those_in_double_precision(self, dtype):
        inputs = (10 * TABLE.abs()).to(dtype)
        found = TableFeatures(columns_of(inputs), SCALES)(inputs)
        expected = TableFeatures(columns_of(inputs.double()), SCALES)(inputs.double())
        assert found.dtype == torch.float64 and torch.equal(found, expected)


class TestFourierFeatures:
    @pytest.mark.parametrize("length", [0.4, 1.0, 3.0])
    def test_products_are_the_gaussian_kernel(self, length):
        """With many frequencies; the distance is the root mean square over columns."""
        columns = replace(columns_of(TABLE), frequencies=normal("frequencies", 20000, COLUMNS))
        fourier = columns.features(TABLE, length)[:, 1 + COLUMNS :]
        standardised, _ = columns.standardise(TABLE)
        distances = torch.cdist(standardised, standardised).square() / COLUMNS
        kernel = torch.exp(-0.5 * distances / length**2)
        torch.testing.assert_close(fourier @ fourier.T, kernel, rtol=0, atol=0.04)

    def test_have_norm_one(self):
        fourier = columns_of(TABLE).features(TABLE, 1.0)[:, 1 + COLUMNS :]
        assert fourier.shape[1] == 2 * MOST_FREQUENCIES
        torch.testing.assert_close(fourier.square().sum(1), torch.ones(ROWS).double())

    def test_are_those_of_the_generator(self):
        same, other = columns_of(TABLE), columns_of(TABLE)
        assert torch.equal(same.frequencies, other.frequencies)
        drawn = TableColumns.of(TableLayout(COLUMNS), TABLE, 1, random_stream(1, "frequencies"))
        assert not torch.equal(same.frequencies, drawn.frequencies)


class TestActions:
    def test_every_action_has_a_block_besides_the_common_one(self):
        columns = columns_of(WITH_ARMS, ARM_LAYOUT)
        features = columns.features(WITH_ARMS, 1.0)
        part = features.shape[1] // (ARMS + 1)
        common, own = features[:, :part], features[:, part:].view(ROWS, ARMS, part)
        context = replace(columns, layout=TableLayout(COLUMNS)).features(TABLE, 1.0)
        assert torch.equal(common, context)
        assert torch.equal(own, ONE_HOT[:, :, None] * context[:, None, :])

    def test_linear_features_have_a_block_for_each_action(self):
        columns = columns_of(WITH_ARMS, ARM_LAYOUT)
        linear = columns.linear_features(WITH_ARMS) / 2  # of one task
        linear = linear.view(ROWS, ARMS, COLUMNS + 1)
        chosen = linear[torch.arange(ROWS), torch.arange(ROWS) % ARMS]
        assert torch.equal(chosen[:, 0], torch.ones(ROWS).double())
        expected = columns.standardise(WITH_ARMS)[0] / math.sqrt(COLUMNS)
        torch.testing.assert_close(chosen[:, 1:], expected)
        assert int(linear.any(-1).sum()) == ROWS

    def test_with_more_tasks_each_explores_less_and_columns_least(self):
        columns = columns_of(WITH_ARMS, ARM_LAYOUT)
        alone = columns.linear_features(WITH_ARMS)[0, : COLUMNS + 1]
        of_many = replace(columns, num_tasks=10**9).linear_features(WITH_ARMS)[0, : COLUMNS + 1]
        torch.testing.assert_close(alone[0] / of_many[0], torch.tensor(2.0).double())
        expected = torch.full((COLUMNS,), 2.0 / EXPLORED_COLUMNS).double()
        torch.testing.assert_close(alone[1:] / of_many[1:], expected)

    def test_fixed_arms_have_only_constants(self):
        columns = columns_of(ONE_HOT, TableLayout(ARMS, 0, ARMS))
        assert columns.num_directions == 0
        features = columns.features(ONE_HOT, 1.0)
        assert torch.equal(features, torch.cat([torch.ones(ROWS, 1).double(), ONE_HOT], dim=1))
        assert torch.equal(columns.linear_features(ONE_HOT) / 2, ONE_HOT)
        expected = torch.tensor([0.4 * 2.0] + [0.6 * 2.0] * ARMS).double().sqrt()
        torch.testing.assert_close(columns.scales(SCALES), expected)

    def test_the_prior_of_two_actions_is_correlated_by_the_shared_part(self):
        """The values of two arms in one context have the correlation `shared`."""
        both = torch.cat([TABLE[:1], ONE_HOT[:1]], dim=1).repeat(2, 1)
        both[1, COLUMNS:] = ONE_HOT[1]
        columns = columns_of(WITH_ARMS, ARM_LAYOUT)
        scaled = columns.features(both, 0.7) * columns.scales(SCALES)
        covariance = scaled @ scaled.T
        assert float(covariance[0, 1] / covariance[0, 0]) == pytest.approx(SCALES.shared)


class TestSettings:
    """Columns that are set on a scale, and nothing else."""

    GRID = torch.cartesian_prod(*[torch.linspace(0, 1, 4).double()] * 2)

    def _columns(self, candidates: torch.Tensor, num_tasks: int = 1) -> TableColumns:
        found = columns_of(candidates, num_tasks=num_tasks)
        return replace(found, continuous=ContinuousActions.of_candidates(candidates[None]))

    def test_have_smooth_effects_instead_of_linear_ones(self):
        """So the middle of the grid is explored as its corners are."""
        columns = self._columns(self.GRID)
        linear = columns.linear_features(self.GRID)
        assert linear.shape[1] == 1 + columns.continuous.num_features
        assert linear.shape[1] == len(columns.action_columns())
        sizes = linear.square().sum(1)
        torch.testing.assert_close(sizes, torch.full_like(sizes, 2**2 + EXPLORED_SETTINGS**2))

    def test_keep_linear_effects_beside_other_columns(self):
        context = torch.ones(len(self.GRID), 1).double()
        columns = self._columns(torch.cat([context, self.GRID], dim=1))
        assert not columns.has_settings_only
        linear = columns.linear_features(torch.cat([context, self.GRID], dim=1))
        assert linear.shape[1] == 1 + 3 + columns.continuous.num_features
        smooth = linear[0, 4:].square().sum()
        assert float(smooth) == pytest.approx(EXPLORED_ALONE**2)

    @pytest.mark.parametrize("num_tasks", [2, 10])
    def test_of_several_tasks_have_the_usual_size(self, num_tasks):
        smooth = self._columns(self.GRID, num_tasks).linear_features(self.GRID)[0, 1:]
        expected = EXPLORED_CONTINUOUS + (EXPLORED_ALONE - EXPLORED_CONTINUOUS) / num_tasks
        assert float(smooth.norm()) == pytest.approx(expected)

    def test_and_arms_without_context_differ_in_nothing_else(self):
        assert self._columns(self.GRID).explores_all_differences
        assert columns_of(ONE_HOT, TableLayout(ARMS, 0, ARMS)).explores_all_differences
        assert not columns_of(self.GRID).explores_all_differences
        assert not columns_of(WITH_ARMS, ARM_LAYOUT).explores_all_differences


class TestScales:
    CASES = ((TABLE, None), (WITH_ARMS, ARM_LAYOUT), (ONE_HOT, TableLayout(ARMS, 0, ARMS)))

    @pytest.mark.parametrize(("inputs", "layout"), CASES)
    def test_there_is_one_for_each_feature(self, inputs, layout):
        columns = columns_of(inputs, layout)
        plain, linear = columns.features(inputs, SCALES.length), columns.linear_features(inputs)
        scales = columns.scales(SCALES)
        assert scales.shape == (plain.shape[1],)
        features = TableFeatures(columns, SCALES)(inputs)
        assert torch.equal(features, torch.cat([plain * scales, linear], dim=1))

    def test_the_prior_variance_is_the_sum_of_the_three_parts(self):
        columns = columns_of(TABLE)
        scaled = columns.features(TABLE, 0.7) * columns.scales(SCALES)
        linear = columns.standardise(TABLE)[0].square().mean(1)
        expected = SCALES.bias + SCALES.linear * linear + SCALES.fourier
        torch.testing.assert_close(scaled.square().sum(1), expected)


class TestSizes:
    def test_many_columns_are_projected_to_orthonormal_directions(self):
        most = most_directions(TableLayout(460), 1)
        assert most == MOST_FEATURES - 17  # beside a constant and eight frequencies
        inputs = normal("wide", ROWS, 460)
        columns = columns_of(inputs)
        assert columns.num_directions == most
        eye = torch.eye(most).double()
        torch.testing.assert_close(columns.projection.T @ columns.projection, eye)
        assert columns.standardise(inputs)[0].shape == (ROWS, most)
        features = TableFeatures(columns, SCALES)(inputs)
        expected = len(columns.scales(SCALES)) + 1 + most
        assert features.shape == (ROWS, expected)
        assert columns_of(normal("narrow", ROWS, most)).projection is None

    def test_fewer_frequencies_for_many_actions_and_tasks(self):
        counts = []
        for arms in (0, 4, 10, 40):
            layout = TableLayout(COLUMNS + arms, COLUMNS, arms)
            inputs = torch.cat([TABLE, torch.eye(max(arms, 1))[:1, :arms].repeat(ROWS, 1)], dim=1)
            counts.append(len(columns_of(inputs.double(), layout).frequencies))
        assert counts[0] == MOST_FREQUENCIES and counts[-1] == FEWEST_FREQUENCIES
        assert counts == sorted(counts, reverse=True) and len(set(counts)) > 2
        for num_tasks in (MANY_TASKS, 10**6):  # very many tasks have the sizes of many
            frequencies = columns_of(TABLE, num_tasks=num_tasks).frequencies
            assert FEWEST_FREQUENCIES < len(frequencies) == 20 < MOST_FREQUENCIES

    @pytest.mark.parametrize("num_tasks", [1, 5])
    def test_wide_contexts_of_actions_are_projected_to_what_their_weights_allow(self, num_tasks):
        arms, context = 10, 150
        layout = TableLayout(context + arms, context, arms)
        inputs = torch.cat([normal("wide", arms, context), torch.eye(arms).double()], dim=1)
        columns = columns_of(inputs, layout, num_tasks=num_tasks)
        size = len(columns.scales(SCALES))
        assert FEWEST_DIRECTIONS < columns.num_directions < context
        assert size <= largest_interactions(num_tasks) < size + arms + 1
        few = TableLayout(20 + arms, 20, arms)
        assert most_directions(few, num_tasks) >= 20
        assert most_directions(TableLayout(context + 80, context, 80), num_tasks) == 0
        assert most_directions(TableLayout(2 * MOST_FEATURES, 0, 2 * MOST_FEATURES), 1) == 0

    def test_the_largest_size_bounds_the_covariances_of_all_tasks(self):
        assert largest_size(1) == MOST_FEATURES
        for num_tasks in (60, 300, MANY_TASKS):
            assert num_tasks * largest_size(num_tasks) ** 2 <= LARGEST_COVARIANCES
        assert largest_size(10**5) == largest_size(MANY_TASKS)

    def test_with_very_many_linear_features_only_constants_explore(self):
        layout = TableLayout(30 + 40, 30, 40)
        inputs = torch.cat([normal("context", 40, 30), torch.eye(40).double()], dim=1)
        columns = columns_of(inputs, layout)
        assert not columns.explores_columns
        assert torch.equal(columns.linear_features(inputs) / 2, inputs[:, 30:])
        assert columns_of(WITH_ARMS, ARM_LAYOUT).explores_columns


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_counts_that_are_mostly_zero_have_the_unit_of_an_indicator(sign):
    counts = torch.zeros(200, 3, dtype=torch.float64)
    counts[:10, 0] = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]).repeat(2)  # half of the range
    counts[:5, 1] = torch.tensor([1.0, 1.0, 1.0, 1.0, 100.0])  # one far value
    counts[:101, 2] = torch.arange(1, 102)  # mostly other values: the standard deviation
    spread = columns_of(sign * counts).spread
    assert spread[0] == 2.5
    assert spread[1] == pytest.approx(math.sqrt((4 + 100**2) / 5))
    assert spread[2] == pytest.approx(float(counts[:, 2].std(correction=0)))


def test_indicators_have_the_same_unit_however_rare_they_are():
    rows = torch.zeros(40, 3, dtype=torch.float64)
    rows[0, 0], rows[::2, 1], rows[:, 2] = 1.0, 30.0, torch.linspace(0, 1, 40)
    columns = TableColumns.of(TableLayout(3), rows, 1, random_stream(0, "frequencies"))
    assert columns.spread[:2].tolist() == [0.5, 15.0]
    torch.testing.assert_close(columns.spread[2], rows[:, 2].std(correction=0))


def test_many_actions_have_weights_of_their_own():
    fifty = TableLayout(53, 3, 50)
    assert most_directions(fifty, 1) == 3
    assert largest_interactions(1) == 4 * largest_size(1)
    for num_tasks in (1, 5, 50, 1000):
        size = largest_interactions(num_tasks)
        assert largest_size(num_tasks) <= size <= 4 * largest_size(num_tasks)
        assert num_tasks * size**2 <= 2 * LARGEST_COVARIANCES

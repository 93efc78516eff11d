"""The fit of tables: which scales the data select, and what the fit predicts."""

import math

import pytest
import torch

from gfucb.core.features import features_of
from gfucb.core.random import random_stream
from gfucb.estimation import table_samples, table_search
from gfucb.estimation.evidence import TaskMoments, log_evidence
from gfucb.estimation.pooled_fit import MOST_FREQUENCIES
from gfucb.estimation.table_fit import (
    ASSUMED_SAMPLES,
    EXPLORED_SAMPLES,
    EXPLORED_SHARE,
    fit_table,
    prior_posterior,
)
from gfucb.models.head_posterior import PosteriorFit
from gfucb.models.table_features import TableColumns, TableFeatures, TableScales
from gfucb.models.table_layout import TableLayout

pytestmark = pytest.mark.slow

SAMPLES, COLUMNS, TESTS = 120, 4, 500
ONE_TASK = torch.zeros(SAMPLES, dtype=torch.int64)
# Of six tasks the last has no samples.
TASKS, WITHOUT_DATA = 6, 5
FIVE_TASKS = torch.arange(SAMPLES) % 5


def normal(name: str, *shape: int) -> torch.Tensor:
    draws = random_stream(0, "table fit", name)
    return torch.randn(*shape, generator=draws, dtype=torch.float64)


INPUTS, TEST_INPUTS = normal("inputs", SAMPLES, COLUMNS), normal("test", TESTS, COLUMNS)
WEIGHTS = normal("weights", TASKS, COLUMNS)
NOISE = normal("noise", SAMPLES)


def fit(
    inputs: torch.Tensor,
    tasks: torch.Tensor,
    rewards: torch.Tensor,
    *,
    layout: TableLayout | None = None,
    reward_range: float | None = None,
    start: TableScales | None = None,
    seed: int = 0,
) -> PosteriorFit:
    num_tasks = 1 if tasks is ONE_TASK else TASKS
    layout = layout or TableLayout(inputs.shape[1])
    columns = TableColumns.of(layout, inputs, num_tasks, random_stream(0, "frequencies"))
    return fit_table(
        inputs,
        tasks,
        rewards,
        num_tasks=num_tasks,
        start=TableFeatures(columns, start or TableScales()),
        reward_range=reward_range,
        generator=random_stream(seed, "table fit"),
        pooled_frequencies=normal("pooled", MOST_FREQUENCIES, columns.num_directions),
    )


def predict(fitted: PosteriorFit, inputs: torch.Tensor, task: int = 0) -> torch.Tensor:
    return fitted.offset + features_of(fitted.features, inputs) @ fitted.posterior.heads[task]


def error(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).square().mean().sqrt())


def evidence_of(fitted: PosteriorFit, tasks, rewards, scales: TableScales) -> float:
    columns = fitted.features.columns
    targets = rewards - rewards.mean()
    num_tasks = len(fitted.posterior.moments)
    sums = TaskMoments.of(
        columns.features(INPUTS, scales.length),
        tasks,
        targets,
        num_tasks,
        pseudo_square=16 * float(targets.square().mean()),
    )
    return log_evidence(sums, columns.scales(scales), scales.mean_ratio if num_tasks > 1 else 0.0)


class TestSearch:
    @pytest.mark.parametrize("tasks", [ONE_TASK, FIVE_TASKS], ids=["one task", "tasks"])
    def test_raises_the_evidence(self, tasks):
        rewards = 3 * (INPUTS[:, 0] * 2).sin() + 0.2 * NOISE
        found = fit(INPUTS, tasks, rewards)
        before = evidence_of(found, tasks, rewards, TableScales())
        assert evidence_of(found, tasks, rewards, found.features.scales) > before + 5

    def test_of_linear_data_predicts_like_ridge_regression(self):
        truth = 3 + TEST_INPUTS @ WEIGHTS[0]
        rewards = 3 + INPUTS @ WEIGHTS[0] + 0.3 * NOISE
        found = fit(INPUTS, ONE_TASK, rewards)
        assert found.features.scales.linear > 10 * found.features.scales.fourier
        with_constant = torch.cat([INPUTS, torch.ones(SAMPLES, 1)], dim=1)
        gram = with_constant.T @ with_constant + 0.1 * torch.eye(COLUMNS + 1)
        weights = torch.linalg.solve(gram, with_constant.T @ rewards)
        of_ridge = error(TEST_INPUTS @ weights[:-1] + weights[-1], truth)
        assert error(predict(found, TEST_INPUTS), truth) < 1.2 * of_ridge
        assert found.posterior.noise == pytest.approx(0.3**2, rel=0.3)

    def test_of_nonlinear_data_uses_fourier_features(self):
        inputs, test_inputs = INPUTS[:, :2], TEST_INPUTS[:, :2]
        found = fit(inputs, ONE_TASK, 2 * (3 * inputs[:, 0]).sin() + 0.1 * NOISE)
        assert found.features.scales.fourier > 10 * found.features.scales.linear
        assert found.features.scales.length < 1
        truth = 2 * (3 * test_inputs[:, 0]).sin()
        assert error(predict(found, test_inputs), truth) < 0.3 * float(truth.std())

    def test_of_identical_tasks_shares_their_heads(self):
        found = fit(INPUTS, FIVE_TASKS, INPUTS @ WEIGHTS[0] + 0.3 * NOISE)
        assert found.features.scales.mean_ratio > 10
        truth = TEST_INPUTS @ WEIGHTS[0]
        assert error(predict(found, TEST_INPUTS, WITHOUT_DATA), truth) < 0.1 * float(truth.std())

    def test_of_unrelated_tasks_separates_their_heads(self):
        rewards = (INPUTS * WEIGHTS[FIVE_TASKS]).sum(1) + 0.1 * NOISE
        found = fit(INPUTS, FIVE_TASKS, rewards)
        assert found.features.scales.mean_ratio < 1
        for task in range(5):
            truth = TEST_INPUTS @ WEIGHTS[task]
            assert error(predict(found, TEST_INPUTS, task), truth) < 0.3 * float(truth.std())
        # What is known about a new task is less than what is known about these.
        features = features_of(found.features, TEST_INPUTS[:20]).expand(2, -1, -1)
        widths = found.posterior.squared_widths(features, torch.tensor([0, WITHOUT_DATA]))
        assert bool((widths[1] > 3 * widths[0]).all())

    def test_one_task_has_no_mean(self):
        found = fit(INPUTS, ONE_TASK, INPUTS @ WEIGHTS[0])
        assert found.features.scales.mean_ratio == 0
        assert not found.posterior.mean.any() and not found.posterior.mean_covariance.any()

    def test_actions_with_other_rewards_have_weights_of_their_own(self):
        arms = torch.eye(3, dtype=torch.float64)[torch.arange(SAMPLES) % 3]
        rewards = (INPUTS * WEIGHTS[torch.arange(SAMPLES) % 3]).sum(1) + 0.1 * NOISE
        layout = TableLayout(COLUMNS + 3, COLUMNS, 3)
        found = fit(torch.cat([INPUTS, arms], dim=1), ONE_TASK, rewards, layout=layout)
        assert found.features.scales.shared <= 0.2
        for arm in range(3):
            test_arms = torch.eye(3, dtype=torch.float64)[arm].expand(TESTS, -1)
            truth = TEST_INPUTS @ WEIGHTS[arm]
            values = predict(found, torch.cat([TEST_INPUTS, test_arms], dim=1))
            assert error(values, truth) < 0.1 * float(truth.std())

    def test_of_actions_with_equal_rewards_shares_their_weights(self):
        arms = torch.eye(3, dtype=torch.float64)[torch.arange(SAMPLES) % 3]
        layout = TableLayout(COLUMNS + 3, COLUMNS, 3)
        rewards = INPUTS @ WEIGHTS[0] + 0.3 * NOISE
        found = fit(torch.cat([INPUTS, arms], dim=1), ONE_TASK, rewards, layout=layout)
        assert found.features.scales.shared >= 0.6

    def test_of_few_samples_keeps_the_scales(self):
        start = TableScales(bias=7.0, linear=0.2, mean_ratio=3.0)
        few = fit(INPUTS[:3], FIVE_TASKS[:3], NOISE[:3], start=start)
        assert few.features.scales == start
        assert bool(predict(few, INPUTS[:3]).isfinite().all())

    def test_continues_from_the_scales_of_the_fit_before(self):
        """Steps are factors, so scales that no search from the default can reach stay so."""
        rewards = INPUTS @ WEIGHTS[0] + 0.3 * NOISE
        first = fit(INPUTS, ONE_TASK, rewards, start=TableScales(linear=7.0)).features.scales
        steps = math.log(first.linear / 7.0, table_search.FACTOR)
        assert steps == pytest.approx(round(steps))
        assert fit(INPUTS, ONE_TASK, rewards, start=first).features.scales == first


class TestRewards:
    REWARDS = (2 * INPUTS[:, 0]).sin() + INPUTS @ WEIGHTS[0] + 0.2 * NOISE

    @pytest.mark.parametrize(("unit", "origin"), [(2.0**-10, 0.0), (30.0, -7e3), (1.0, 100.0)])
    def test_unit_and_origin_change_values_but_not_the_scales(self, unit, origin):
        one = fit(INPUTS, FIVE_TASKS, self.REWARDS)
        other = fit(INPUTS, FIVE_TASKS, unit * self.REWARDS + origin)
        assert other.features.scales == one.features.scales
        expected = unit * predict(one, TEST_INPUTS, 1) + origin
        torch.testing.assert_close(predict(other, TEST_INPUTS, 1), expected)
        assert other.posterior.noise == pytest.approx(unit**2 * one.posterior.noise)
        assert other.posterior.exploration_scale == pytest.approx(one.posterior.exploration_scale)

    @pytest.mark.parametrize("reward", [0.0, 7.0])
    def test_equal_ones_are_predicted_everywhere(self, reward):
        found = fit(INPUTS, FIVE_TASKS, torch.full((SAMPLES,), reward).double())
        expected = torch.full((TESTS,), reward).double()
        torch.testing.assert_close(predict(found, TEST_INPUTS, WITHOUT_DATA), expected)
        assert found.posterior.noise > 0

    @pytest.mark.parametrize("reward_range", [10.0, None])
    def test_their_range_is_the_size_of_linear_effects_that_are_possible(self, reward_range):
        listed = INPUTS[: SAMPLES // 4].repeat(4, 1)
        found = fit(listed, ONE_TASK, self.REWARDS, reward_range=reward_range).posterior
        width = reward_range or 4 * float(self.REWARDS.std(correction=0))
        share = EXPLORED_SHARE**2 * EXPLORED_SAMPLES / (EXPLORED_SAMPLES + SAMPLES)
        assert found.exploration_scale * found.noise == pytest.approx(share * width**2)

    @pytest.mark.parametrize("reward_range", [1.0, 10.0, 1000.0])
    def test_effects_of_arms_without_context_are_seen_in_their_noise(self, reward_range):
        arms = torch.eye(COLUMNS, dtype=torch.float64)[torch.arange(SAMPLES) % COLUMNS]
        layout = TableLayout(COLUMNS, 0, COLUMNS)
        rewards = 0.1 * NOISE
        found = fit(arms, ONE_TASK, rewards, layout=layout, reward_range=reward_range).posterior
        scale = found.exploration_scale
        noise = (SAMPLES + ASSUMED_SAMPLES * scale) / (SAMPLES + ASSUMED_SAMPLES)
        assert scale > noise
        assert found.exploration_precision == pytest.approx(scale / noise)
        tried = torch.full((COLUMNS,), SAMPLES / COLUMNS).double()  # a linear feature is 2
        expected = 1 / (1 + found.exploration_precision * 4 * tried)
        torch.testing.assert_close(found.exploration.whole[0].diagonal(), expected)

    def test_a_larger_noise_than_assumed_is_left_to_the_model(self):
        arms = torch.eye(COLUMNS, dtype=torch.float64)[torch.arange(SAMPLES) % COLUMNS]
        layout = TableLayout(COLUMNS, 0, COLUMNS)
        found = fit(arms, ONE_TASK, NOISE, layout=layout, reward_range=0.5).posterior
        assert found.exploration_scale < 1
        assert found.exploration_precision == 1

    def test_the_noise_of_effects_that_columns_may_not_show_is_assumed(self):
        arms = torch.eye(3, dtype=torch.float64)[torch.arange(SAMPLES) % 3]
        with_arms, layout = torch.cat([INPUTS, arms], 1), TableLayout(COLUMNS + 3, COLUMNS, 3)
        for inputs, known in ((INPUTS, None), (with_arms, layout)):
            found = fit(inputs, ONE_TASK, 0.1 * NOISE, layout=known, reward_range=10.0).posterior
            assert found.exploration_scale > 1
            assert found.exploration_precision == 1

    def test_linear_effects_of_similar_tasks_are_smaller(self):
        found = fit(INPUTS, FIVE_TASKS, self.REWARDS, reward_range=10.0)
        ratio = found.features.scales.mean_ratio
        share = EXPLORED_SHARE**2 * EXPLORED_SAMPLES / (EXPLORED_SAMPLES + SAMPLES)
        expected = share * 100 * min(1, 2 / (1 + ratio))
        assert ratio > 1  # these rewards do not depend on the task
        assert found.posterior.exploration_scale * found.posterior.noise == pytest.approx(expected)

    def test_one_reward_is_the_value_of_its_input(self):
        found = fit(INPUTS[:1], FIVE_TASKS[:1], torch.tensor([5.0]).double())
        assert float(predict(found, INPUTS[:1])) == pytest.approx(5.0)


class TestRandomness:
    REWARDS = INPUTS @ WEIGHTS[0] + 0.3 * NOISE

    def test_is_that_of_the_generator_alone(self, monkeypatch):
        monkeypatch.setattr(table_samples, "MOST_SEARCH_SAMPLES", 20)
        monkeypatch.setattr(table_samples, "SAMPLE_COST", 0)
        before = torch.get_rng_state()
        one, same = (fit(INPUTS, FIVE_TASKS, self.REWARDS) for _ in range(2))
        assert torch.equal(torch.get_rng_state(), before)
        assert one.features.scales == same.features.scales
        assert torch.equal(one.posterior.heads, same.posterior.heads)
        drawn = {fit(INPUTS, FIVE_TASKS, self.REWARDS, seed=s).features.scales for s in range(6)}
        assert len(drawn) > 1

    def test_all_samples_are_searched_if_they_are_few(self):
        one, other = (fit(INPUTS, FIVE_TASKS, self.REWARDS, seed=seed) for seed in (0, 1))
        assert one.features.scales == other.features.scales
        torch.testing.assert_close(one.posterior.heads, other.posterior.heads)

    def test_a_search_on_some_tasks_still_solves_the_heads_of_all(self, monkeypatch):
        monkeypatch.setattr(table_samples, "SEARCH_COST", 1.0)
        monkeypatch.setattr(table_samples, "FEWEST_SEARCH_TASKS", 2)
        found = fit(INPUTS, FIVE_TASKS, self.REWARDS)
        truth = TEST_INPUTS @ WEIGHTS[0]
        for task in range(TASKS):
            assert error(predict(found, TEST_INPUTS, task), truth) < 0.25 * float(truth.std())


class TestPrior:
    @pytest.mark.parametrize(("num_tasks", "ratio"), [(1, 0.0), (TASKS, 1.0)])
    def test_has_no_preference_and_equal_uncertainty(self, num_tasks, ratio):
        columns = TableColumns.of(
            TableLayout(COLUMNS), INPUTS, num_tasks, random_stream(0, "frequencies")
        )
        found = prior_posterior(INPUTS, num_tasks=num_tasks, columns=columns, reward_range=8.0)
        assert not found.heads.any()
        assert found.noise == pytest.approx((EXPLORED_SHARE * 8) ** 2)
        features = TableFeatures(columns, TableScales())(INPUTS)
        scaled, linear = features.split([found.feature_dim, COLUMNS + 1], dim=1)
        expected = (1 + ratio) * scaled.square().sum(1) + linear.square().sum(1)
        widths = found.squared_widths(features[None], torch.zeros(1, dtype=torch.int64))
        torch.testing.assert_close(widths[0], expected)

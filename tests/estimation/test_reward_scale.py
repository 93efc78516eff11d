"""Location, scale and limits of rewards."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.estimation.reward_scale import FEWEST_REWARDS, RewardScale, robust_range


def _rewards(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _normal(n: int = 200, *, seed: int = 0) -> Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _wheel(num_large: int) -> Tensor:
    """Rewards of the Wheel bandit: 1.0 and 1.2 with little noise, and some of 50."""
    small = torch.where(torch.arange(400) % 3 == 0, 1.2, 1.0) + 0.01 * _normal(400)
    return torch.cat([small, torch.full((num_large,), 50.0, dtype=torch.float64)])


class TestKnownRange:
    def test_its_middle_is_the_location_and_its_scale_is_one(self) -> None:
        scale = RewardScale.of_range((-1.0, 4.0))
        assert (scale.location, scale.scale, scale.limits) == (1.5, 1.0, (-6.0, 9.0))
        assert scale.value_range == (-1.0, 4.0)

    def test_rewards_within_one_width_of_the_range_do_not_change(self) -> None:
        rewards = _rewards(-1.0, 0.3, 2.0)
        scale = RewardScale.of_range((0.0, 1.0))
        assert torch.equal(scale.clip(rewards), rewards)
        assert torch.equal(scale.standardise(rewards), rewards - 0.5)

    def test_farther_rewards_are_clipped(self) -> None:
        scale = RewardScale.of_range((0.0, 1.0))
        assert scale.clip(_rewards(-999.0, 0.5, 2.5)).tolist() == [0.0, 0.5, 1.0]
        assert scale.is_outside(_rewards(-999.0, 0.5, 2.5)).tolist() == [True, False, True]

    def test_noise_around_the_range_extends_the_limits_and_an_outlier_does_not(self) -> None:
        rewards = 3 * _normal()
        scale = RewardScale.of_range((0.0, 1.0)).covering(torch.cat([rewards, _rewards(-9e6)]))
        assert (scale.location, scale.scale) == (0.5, 1.0)
        assert (scale.low, scale.high) == (float(rewards.min()), float(rewards.max()))
        assert not scale.is_outside(rewards).any()


class TestEstimatedScale:
    def test_is_the_middle_and_the_width_of_the_rewards(self) -> None:
        scale = RewardScale.estimated(_rewards(3.0, 1.0, 2.0, 1.5))
        assert (scale.location, scale.scale, scale.value_range) == (2.0, 2.0, (1.0, 3.0))
        assert scale.standardise(_rewards(1.0, 3.0)).tolist() == [-0.5, 0.5]

    def test_a_given_location_is_kept(self) -> None:
        scale = RewardScale.estimated(_rewards(3.0, 1.0), location=0.0)
        assert (scale.location, scale.scale) == (0.0, 2.0)

    @pytest.mark.parametrize("rewards", [[7.0], [0.3, 0.1 + 0.2], [0.0] * 30, [1e12] * 5])
    def test_of_equal_rewards_standardises_them_to_zero_and_clips_nothing(
        self, rewards: list[float]
    ) -> None:
        scale = RewardScale.estimated(_rewards(*rewards))
        assert scale.scale == 1.0
        assert scale.value_range is None
        assert scale.limits == (-math.inf, math.inf)
        assert scale.standardise(_rewards(*rewards)).abs().max() < 1e-4
        assert not scale.is_outdated_by(_rewards(rewards[0]))
        assert scale.is_outdated_by(_rewards(rewards[0] + 1.0))

    def test_of_binary_rewards_is_their_difference_however_rare_ones_are(self) -> None:
        for num_ones in (1, 2, 3, 50):
            rewards = torch.zeros(1000, dtype=torch.float64)
            rewards[:num_ones] = 1.0
            scale = RewardScale.estimated(rewards)
            assert (scale.location, scale.scale) == (0.5, 1.0)

    def test_no_reward_is_an_outlier_among_few(self) -> None:
        rewards = torch.cat([_normal(FEWEST_REWARDS - 2), _rewards(-999.0)])
        assert robust_range(rewards)[0] == -999.0
        assert robust_range(torch.cat([rewards, _normal(1)]))[0] > -10.0

    @pytest.mark.parametrize("outliers", [[-999.0], [1e9], [-999.0, -999.0], [-999.0, 1e6, 500.0]])
    def test_far_outliers_do_not_change_it_and_are_clipped(self, outliers: list[float]) -> None:
        rewards = _normal()
        with_outliers = torch.cat([rewards[:100], _rewards(*outliers), rewards[100:]])
        scale = RewardScale.estimated(with_outliers)
        assert scale == RewardScale.estimated(rewards)
        assert float(scale.standardise(with_outliers).abs().max()) <= 0.5 + 1e-12
        limit = rewards.min() if outliers[0] < 0 else rewards.max()
        assert float(scale.clip(_rewards(outliers[0]))) == float(limit)

    def test_a_rare_large_reward_counts_from_the_third_time_on(self) -> None:
        assert [RewardScale.estimated(_wheel(n)).high for n in (0, 1, 2)] == [
            float(_wheel(0).max())
        ] * 3
        assert [RewardScale.estimated(_wheel(n)).high for n in (3, 4, 40)] == [50.0] * 3

    def test_an_outlier_after_rare_large_rewards_is_one(self) -> None:
        rewards = torch.cat([_wheel(5), _rewards(1e6)])
        assert RewardScale.estimated(rewards).high == 50.0

    def test_heavy_tails_have_a_finite_influence(self) -> None:
        normal, divisor = _normal(5000, seed=1), _normal(5000, seed=2)
        cauchy = normal / divisor
        standardised = RewardScale.estimated(cauchy).standardise(cauchy)
        assert float(standardised.abs().max()) == pytest.approx(0.5)

    @given(
        st.lists(st.floats(-1.0, 1.0).map(lambda x: round(x, 3)), min_size=1, max_size=60),
        st.lists(st.sampled_from([-999.0, 50.0, 1e4]), max_size=4),
        st.floats(1e-3, 1e3),
        st.floats(-1e3, 1e3),
    )
    def test_depends_on_neither_unit_nor_origin_of_rewards(
        self, usual: list[float], rare: list[float], unit: float, origin: float
    ) -> None:
        rewards = _rewards(*usual, *rare)
        moved = unit * rewards + origin
        one, other = RewardScale.estimated(rewards), RewardScale.estimated(moved)
        if one.width == 0:
            assert other.width == 0
        else:
            assert other.scale == pytest.approx(unit * one.scale, rel=1e-5)
        rounding = 1e-10 * (1 + abs(origin) / unit)
        assert torch.allclose(
            one.standardise(rewards), other.standardise(moved), rtol=1e-9, atol=rounding
        )


class TestValue:
    def test_without_limits_nothing_is_clipped(self) -> None:
        rewards = _rewards(-1e12, 0.1, 1e12)
        assert torch.equal(RewardScale().standardise(rewards), rewards)
        assert RewardScale().value_range is None
        assert not RewardScale().is_outdated_by(rewards)

    def test_restoring_is_the_inverse_of_standardising(self) -> None:
        rewards = _rewards(100.2, 100.9, 100.4)
        scale = RewardScale.estimated(rewards)
        assert torch.allclose(scale.restore(scale.standardise(rewards)), rewards, rtol=1e-15)

    @pytest.mark.parametrize(
        "scale", [RewardScale.of_range((0.0, 1.0)), RewardScale.estimated(_normal())]
    )
    def test_continues_from_its_tensors(self, scale: RewardScale) -> None:
        assert RewardScale.restored(scale.tensors()) == scale

    @pytest.mark.parametrize(
        "numbers",
        [
            [math.nan, 1.0, 0.0, 1.0],
            [math.inf, 1.0, 0.0, 1.0],
            [1e30, 1.0, 0.0, 1.0],
            [0.0, 0.0, 0.0, 1.0],
            [0.0, math.inf, 0.0, 1.0],
            [0.0, -1.0, 0.0, 1.0],
            [0.0, 1.0, 2.0, 1.0],
            [0.0, 1.0, 0.0],
        ],
    )
    def test_refuses_tensors_that_are_no_scale(self, numbers: list[float]) -> None:
        with pytest.raises(InvalidInputError, match="reward_scale"):
            RewardScale.restored({"reward_scale": _rewards(*numbers)})

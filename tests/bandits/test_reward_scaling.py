"""Agents and the scale of their rewards: estimated, stated, with outliers, saved, in batches."""

import warnings

import pytest
import torch

from gfucb import GFUCB, Agent, FiniteClass, VariableProjection
from gfucb.bandits import linucb
from gfucb.bandits.batched import BatchedAgents
from gfucb.core.errors import GFUCBWarning, InvalidInputError
from gfucb.core.random import random_stream
from gfucb.estimation import ConstantRadius
from gfucb.estimation.reward_scale import RewardScale
from gfucb.estimation.reward_scaling import RewardScaling
from gfucb.models import IdentityRepresentation
from gfucb.models.nn.networks import default_network

# Together they take seconds.
pytestmark = pytest.mark.slow

TASKS, ACTIONS, ROUNDS = 4, 5, 14
FIT = VariableProjection(steps=2, batch_size=16)
LINEAR = FiniteClass([IdentityRepresentation()])


def candidates(index: int) -> torch.Tensor:
    return torch.rand(TASKS, ACTIONS, 3, generator=random_stream(index, "candidates"))


def reward_noise(index: int) -> torch.Tensor:
    noise = torch.randn(TASKS, ACTIONS, generator=random_stream(index, "noise"))
    return 0.1 * noise.double()


def make(seed: int = 0, **options) -> GFUCB:
    network = default_network((3,), random_stream(0, "network"), hidden=8)
    return GFUCB(TASKS, network, seed=seed, fit=FIT, **options)


def play(agent, *, unit=1.0, origin=0.0, rounds=range(ROUNDS), outliers=()):
    """Actions of all rounds; mean rewards are the first input, outliers (round, task, reward)."""
    actions = []
    for index in rounds:
        offered = candidates(index)
        decision = agent.decide(offered)
        means = offered[:, :, 0].double() + reward_noise(index)
        rewards = unit * means.gather(1, decision.actions[:, None]).squeeze(1) + origin
        for _, task, value in (outlier for outlier in outliers if outlier[0] == index):
            rewards[task] = value
        agent.observe(decision, rewards)
        actions.append(decision.actions)
    return torch.stack(actions)


class TestEstimatedScale:
    @pytest.mark.parametrize("unit", [2.0**-10, 2.0**10])
    def test_the_unit_of_rewards_changes_no_decision(self, unit):
        """A power of two scales every number exactly, so that nothing is rounded differently."""
        assert torch.equal(play(make()), play(make(), unit=unit))

    def test_with_a_stated_range_the_unit_matters(self):
        one, other = make(value_range=(0.0, 1.0)), make(value_range=(0.0, 1.0))
        assert not torch.equal(play(one), play(other, unit=0.01))

    @pytest.mark.parametrize(("unit", "origin"), [(1.0, 100.0), (0.01, 0.0), (30.0, -7e3)])
    def test_unit_and_origin_of_rewards_change_no_decision(self, unit, origin):
        assert torch.equal(play(make()), play(make(), unit=unit, origin=origin))

    def test_values_and_predictions_have_the_unit_of_rewards(self):
        agent = make()
        play(agent, unit=10.0, origin=500.0)
        decision = agent.decide(candidates(99))
        low, high = agent.learner.scale.value_range
        assert 490.0 < low < 500.0 < 510.0 < high < 515.0
        assert ((decision.optimistic_values >= low) & (decision.optimistic_values <= high)).all()
        assert ((decision.prediction.mean > 495) & (decision.prediction.mean < 515)).all()
        center = agent.confidence_set(candidates(99)[0]).center
        assert center.offset == agent.learner.scale.location

    def test_before_the_first_reward_nothing_is_predicted(self):
        agent = make()
        first = agent.decide(candidates(0))
        assert first.prediction is None
        agent.observe(first[:2], [100.0, 101.0])
        agent.observe(first[2:], [100.5, 100.2])  # late: decided before any reward
        assert agent.radius_state.num_rewards == 0
        assert agent.decide(candidates(1)).prediction is not None
        assert make(offset=100.0).decide(candidates(0)).prediction is not None

    def test_the_initial_radius_is_a_share_of_the_scale(self):
        agent = make()
        agent.observe(agent.decide(candidates(0)), [100.0, 100.1, 100.2, 100.5])
        assert agent.radius_state.task_radius == pytest.approx(0.2 * 0.5)
        agent.learn([0], candidates(1)[0, :1], [102.0])
        assert agent.radius_state.task_radius == pytest.approx(0.2 * 2.0)

    def test_a_given_radius_is_in_the_unit_of_rewards(self):
        agent = make(squared_radius=ConstantRadius(4.0))
        play(agent, unit=0.01)
        assert agent.confidence_set(candidates(0)[0]).squared_radius == 4.0

    def test_equal_rewards_are_learned(self):
        agent = make()
        for index in range(3):
            agent.observe(agent.decide(candidates(index)), [7.0] * TASKS)
        decision = agent.decide(candidates(3))
        torch.testing.assert_close(decision.prediction.mean, torch.full((TASKS,), 7.0).double())

    def test_without_fits_the_scale_still_follows_the_rewards(self):
        agent = GFUCB(1, LINEAR)
        for reward in [-999.0, *torch.linspace(0, 1, 63).tolist()]:
            agent.learn([0], torch.ones(1, 1), [reward])
        assert agent.learner.num_fits == 0
        scale = agent.learner.scale
        assert (scale.location, scale.scale) == pytest.approx((0.5, 1.0))
        center, data, statistics = agent.learner.fit_state(torch.ones(1, 1))
        assert center.offset == scale.location
        moments = (data.targets - center.offset).sum()
        torch.testing.assert_close(statistics.moments, moments[None, None])

    def test_a_rare_large_reward_counts_from_the_third_time_on(self):
        agent = GFUCB(1, LINEAR)
        usual = 1 + 0.2 * torch.rand(40, generator=random_stream(0, "rewards")).double()
        agent.learn([0] * 40, torch.ones(40, 1), usual)
        highest = []
        for _ in range(3):
            agent.learn([0], torch.ones(1, 1), [50.0])
            _, data, _ = agent.learner.fit_state(torch.ones(1, 1))
            highest.append(float(data.targets.max()))
        assert highest[0] < 1.5 and highest[1] < 1.5
        assert highest[2] == 50.0
        center, data, statistics = agent.learner.fit_state(torch.ones(1, 1))
        assert torch.equal(data.targets, torch.cat([usual, torch.full((3,), 50.0).double()]))
        moments = (data.targets - center.offset).sum()
        torch.testing.assert_close(statistics.moments, moments[None, None])


class TestOutliers:
    def test_one_has_a_bounded_influence_on_the_fit(self):
        usual, hit = make(), make()
        play(usual)
        play(hit, outliers=[(10, 0, -999.0)])
        scale = hit.learner.scale
        assert scale.low > -1.0
        _, data, _ = hit.learner.fit_state(candidates(0)[0])
        assert float(data.targets.min()) == scale.low
        assert float(hit.learner.state()["data.targets"].min()) == -999.0
        values = hit.confidence_set(candidates(0)[0]).center.values(
            candidates(0)[0], torch.zeros(ACTIONS, dtype=torch.int64)
        )
        assert float(values.min()) > -2.0

    def test_an_early_one_is_found_once_there_are_others_to_compare_with(self):
        agent = make()
        play(agent, rounds=range(3), outliers=[(0, 0, -999.0)])
        assert agent.learner.scale.low == -999.0
        play(agent, rounds=range(3, ROUNDS))
        assert agent.learner.scale.low > -1.0

    @pytest.mark.filterwarnings("ignore::gfucb.core.errors.GFUCBWarning")
    def test_with_a_stated_range_only_outliers_change_decisions(self):
        """The limits cover all rewards that are not far from the others."""
        narrow, unlimited = make(value_range=(0.4, 0.41)), make(value_range=None, offset=0.405)
        unlimited.squared_radius = narrow.squared_radius
        unlimited.radius_state = narrow.radius_state
        assert torch.equal(play(narrow), play(unlimited))
        assert not narrow.learner._has_outliers

    def test_rewards_as_they_are_with_none(self):
        agent = linucb(TASKS)
        play(agent, outliers=[(10, 0, -999.0)])
        assert float(agent.learner.fit_state(torch.ones(1, 3))[1].targets.min()) == -999.0


class TestWarning:
    @pytest.mark.parametrize("shape", [(3,), (8, 8)], ids=["table", "image"])
    def test_points_to_the_line_that_called_the_agent(self, shape):
        agent = GFUCB(2, seed=0, value_range=(0.0, 1.0))
        with pytest.warns(GFUCBWarning) as given:
            for index in range(40):
                decision = agent.decide(torch.rand(2, 3, *shape))
                agent.observe(decision, [0.1, -999.0 if index == 30 else 0.2 + index / 100])
                if given.list:
                    break
        assert given.list[0].filename == __file__

    def test_is_given_at_once_for_dollars_in_a_range_of_zero_to_one(self):
        agent = GFUCB(2, value_range=(0.0, 1.0))
        decision = agent.decide(torch.rand(2, 3, 4))
        with pytest.warns(GFUCBWarning, match=r"all are outside.*value_range='auto'"):
            agent.observe(decision, [250.0, 260.0])
        agent.observe(agent.decide(torch.rand(2, 3, 4)), [255.0, 240.0])  # once

    @pytest.mark.parametrize("shift", [0.6, 0.0])
    def test_is_given_if_most_rewards_are_a_little_outside(self, shift):
        agent, draws = GFUCB(2, value_range=(0.0, 1.0)), torch.Generator().manual_seed(0)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            for _ in range(12):
                decision = agent.decide(torch.rand(2, 3, 4, generator=draws))
                noise = 0.5 * torch.randn(2, generator=draws).double()
                agent.observe(decision, 1.0 + shift + noise)  # the largest expected reward
        assert len(given) == (1 if shift else 0)

    def test_is_given_also_if_another_thread_fits(self):
        agent = Agent(value_range=(0.0, 1.0), refit="background")
        with pytest.warns(GFUCBWarning, match="all are outside"):
            agent.observe(agent.decide(torch.rand(1, 3, 4), tasks=["a"]), [250.0])
        agent.close()

    def test_is_given_once_for_an_outlier_and_says_what_to_do(self):
        agent = make(value_range=(0.0, 1.0))
        with pytest.warns(GFUCBWarning, match=r"between -999 .*count as .*pass a value_range"):
            play(agent, outliers=[(8, 1, -999.0)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            play(agent, outliers=[(9, 1, -998.0)], rounds=range(8, 10))

    def test_is_given_if_nearly_all_rewards_are_far_outside_the_range(self):
        agent = make(value_range=(0.0, 1.0))
        with pytest.warns(GFUCBWarning, match=r"nearly all are outside.*value_range='auto'"):
            play(agent, origin=100.0)

    @pytest.mark.parametrize("value_range", ["auto", None])
    def test_is_not_given_if_no_range_is_stated(self, value_range):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            play(make(value_range=value_range), outliers=[(9, 0, -999.0)])

    @pytest.mark.parametrize("noise_scale", [1.0, 1000.0])
    def test_is_not_given_for_noise(self, noise_scale):
        noise = torch.randn(200, generator=random_stream(0, "noise")).double()
        rewards = 0.5 + noise_scale * noise
        scaling = RewardScaling((0.0, 1.0))
        assert scaling.initial().is_outside(rewards).any()
        assert scaling.warning(rewards, 200, None) is None


class TestState:
    @pytest.mark.parametrize("value_range", ["auto", (0.0, 1.0)])
    @pytest.mark.filterwarnings("ignore::gfucb.core.errors.GFUCBWarning")
    def test_continues_exactly(self, value_range):
        agent, again = make(value_range=value_range), make(value_range=value_range)
        outliers = [(7, 2, -999.0), (11, 1, 700.0)]
        play(agent, rounds=range(9), outliers=outliers)
        again.load_state({name: tensor.clone() for name, tensor in agent.state().items()})
        assert again.learner.scale == agent.learner.scale
        assert again.radius_state.task_radius == agent.radius_state.task_radius
        rest = range(9, ROUNDS)
        assert torch.equal(
            play(agent, rounds=rest, outliers=outliers), play(again, rounds=rest, outliers=outliers)
        )

    def test_an_empty_state_forgets_the_scale(self):
        agent = make()
        play(agent, origin=100.0, rounds=range(2))
        agent.load_state({})
        assert agent.learner.scale == RewardScale()
        assert torch.equal(play(agent), play(make()))

    @pytest.mark.parametrize(
        ("value_range", "numbers"),
        [
            ("auto", [0.5, 1.0, -50.0, 1.0]),
            ("auto", [0.5, 3.0, 0.2, 0.8]),
            ("auto", [40.0, 0.6, 0.2, 0.8]),
            ((0.0, 1.0), [0.5, 1.0, 0.3, 1.0]),
            ((0.0, 1.0), [0.4, 1.0, 0.0, 1.0]),
            ((0.0, 1.0), [0.5, 2.0, 0.0, 1.0]),
        ],
    )
    def test_a_scale_that_is_not_that_of_the_rewards_is_refused(self, value_range, numbers):
        agent = make(value_range=value_range)
        play(agent, rounds=range(6))
        state = agent.state() | {"reward_scale": torch.tensor(numbers, dtype=torch.float64)}
        with pytest.raises(InvalidInputError, match="reward_scale"):
            make(value_range=value_range).load_state(state)

    def test_settings_state_whether_the_range_is_estimated(self):
        assert make().settings()["value_range"] == "auto"
        assert make().settings()["offset"] == "None"
        assert make(value_range=(0, 2)).settings()["offset"] == "1.0"


class TestBatches:
    @pytest.mark.parametrize("value_range", ["auto", (0.0, 1.0)])
    def test_replicas_decide_as_they_would_alone(self, value_range):
        origins = [0.0, 100.0] if value_range == "auto" else [0.0, 0.0]
        alone = [make(seed, value_range=value_range) for seed in range(2)]
        batch = BatchedAgents([make(seed, value_range=value_range) for seed in range(2)])
        for index in range(ROUNDS):
            offered = candidates(index)
            decision = batch.decide(offered.expand(2, -1, -1, -1))
            rewards = []
            for replica, agent in enumerate(alone):
                own = agent.decide(offered)
                assert torch.equal(own.actions, decision.actions[replica])
                torch.testing.assert_close(
                    own.optimistic_values, decision.optimistic_values[replica], rtol=1e-4, atol=1e-5
                )
                means = offered[:, :, 0].double() + reward_noise(index)
                found = means.gather(1, own.actions[:, None]).squeeze(1) + origins[replica]
                if index in (8, 9, 10) and replica == 1 and value_range == "auto":
                    found[0] = 1e4  # counts from the third time on
                agent.observe(own, found)
                rewards.append(found)
            batch.observe(decision, torch.stack(rewards))
        for agent, own in zip(batch.unbatch(), alone, strict=True):
            assert agent.learner.scale == own.learner.scale
            assert agent.learner.num_fits == own.learner.num_fits


def test_a_value_range_that_is_no_range_is_refused():
    for wrong in ("Auto", "", 3, (1, 0), [1, 2, 3]):
        with pytest.raises(InvalidInputError, match="value_range must be"):
            RewardScaling(wrong)

"""Bandit environments: contracts, rewards, noise and refused settings."""

import pytest
import torch

import gfucb
from gfucb.checks import CheckError, check_bandit_environment
from gfucb.core.errors import InvalidInputError, UnknownNameError
from gfucb.environments import ImageBandit, finite_bandit, linear_bandit, load_digits
from gfucb.runs import play

DIGITS = load_digits()


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: finite_bandit(seed=seed),
        lambda seed: linear_bandit(seed=seed),
        lambda seed: ImageBandit(DIGITS, num_tasks=3, num_actions=4, seed=seed),
        lambda seed: ImageBandit(DIGITS, digits="distinct", reward_map="uniform", seed=seed),
        lambda seed: ImageBandit(DIGITS, reward_map="tenths", seed=seed),
    ],
)
def test_environment_passes_the_check(make):
    check_bandit_environment(make)


def test_environment_that_ignores_its_seed_fails_the_check():
    with pytest.raises(CheckError, match="the seed has no effect"):
        check_bandit_environment(lambda seed: finite_bandit(seed=0))


@pytest.mark.parametrize("num_tasks", [1, 5, 10, 23])
def test_permutation_rewards_have_distinct_best_digits(num_tasks):
    maps = ImageBandit(DIGITS, num_tasks=num_tasks, seed=3).reward_maps
    tenths = torch.arange(10, dtype=torch.float64) / 10
    for row in maps:
        torch.testing.assert_close(row.sort().values, tenths)
    for block in maps.split(10):
        best = block.argmax(1).tolist()
        assert len(set(best)) == len(best)


def test_tenths_and_uniform_rewards():
    tenths = ImageBandit(DIGITS, num_tasks=2, reward_map="tenths").reward_maps
    assert tenths[1].tolist() == [d / 10 for d in range(10)]
    uniform = ImageBandit(DIGITS, num_tasks=200, reward_map="uniform").reward_maps
    assert 0 <= float(uniform.min()) and float(uniform.max()) <= 1
    assert abs(float(uniform.mean()) - 0.5) < 5 * (1 / 12 / 2000) ** 0.5


def test_rewards_are_reward_map_plus_noise_without_clipping():
    environment = ImageBandit(DIGITS, num_tasks=5, noise_scale=3.0, seed=0)
    round_ = environment.round(4)
    digits = round_.true_features.argmax(-1)
    torch.testing.assert_close(round_.mean_rewards, environment.reward_maps.gather(1, digits))
    actions = torch.tensor([1, 2, 3, 4, 5])
    expected = round_.mean_rewards[torch.arange(5), actions] + round_.noise
    assert torch.equal(round_.rewards(actions), expected)
    assert float(round_.noise.abs().max()) > 1


def test_noise_has_the_given_scale():
    environment = ImageBandit(DIGITS, num_tasks=100, noise_scale=0.2, seed=0)
    noise = torch.cat([environment.round(t).noise for t in range(1, 41)])
    assert float(noise.std()) == pytest.approx(0.2, rel=0.05)


def test_distinct_action_sets_have_different_digits():
    environment = ImageBandit(DIGITS, num_tasks=20, num_actions=10, digits="distinct", seed=0)
    for index in range(1, 5):
        shown = environment.round(index).true_features.argmax(-1)
        assert bool((shown.sort(1).values == torch.arange(10)).all())


def test_iid_action_sets_may_repeat_a_digit():
    shown = ImageBandit(DIGITS, num_tasks=20, seed=0).round(1).true_features.argmax(-1)
    assert any(len(set(row)) < 10 for row in shown.tolist())


def test_regret_of_uniform_play():
    """Ten iid digits with rewards a permutation of tenths: E max - mean = 0.401, less for K = 2."""
    for num_actions, expected in ((2, 0.165), (10, 0.401)):
        environment = ImageBandit(DIGITS, num_tasks=200, num_actions=num_actions, seed=1)
        rows = list(play(gfucb.Uniform(200), environment, num_rounds=20))
        assert rows[-1]["cumulative_regret"] / 20 == pytest.approx(expected, abs=0.02)


def test_agents_on_one_seed_see_the_same_contexts_and_noise():
    def rounds_of(agent) -> list:
        environment = ImageBandit(DIGITS, num_tasks=3, seed=4)
        rounds = []
        for index in range(1, 6):
            round_ = environment.round(index)
            decision = agent.decide(round_.candidates)
            noise = (
                round_.rewards(decision.actions)
                - round_.mean_rewards[torch.arange(3), decision.actions]
            )
            agent.observe(decision, round_.rewards(decision.actions))
            rounds.append((round_.candidates, noise))
        return rounds

    for one, other in zip(rounds_of(gfucb.Uniform(3)), rounds_of(gfucb.linucb(3)), strict=True):
        assert torch.equal(one[0], other[0])
        torch.testing.assert_close(one[1], other[1])


def test_true_function_is_in_the_class_and_bounded():
    environment = finite_bandit(seed=2)
    assert any(
        environment.true_function.representation is m
        for m in environment.representation_class.members
    )
    torch.testing.assert_close(
        environment.true_function.heads.norm(dim=1), torch.ones(4, dtype=torch.float64)
    )
    means = torch.stack([environment.round(t).mean_rewards for t in range(1, 50)])
    assert float(means.abs().max()) <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_scale": 0.0}, "noise_scale must be a finite number above 0"),
        ({"noise_scale": -0.1}, "noise_scale must be a finite number above 0"),
        ({"num_tasks": 0}, "num_tasks must be an integer of at least 1"),
        ({"num_actions": 2.5}, "num_actions must be an integer"),
        ({"seed": None}, "seed must be an integer"),
        ({"digits": "distinct", "num_actions": 11}, "10 different digits"),
    ],
)
def test_invalid_settings_are_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        ImageBandit(DIGITS, **options)


def test_unknown_reward_map_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match="permutation, tenths, uniform"):
        ImageBandit(DIGITS, reward_map="exponential")


@pytest.mark.parametrize("make", [finite_bandit, linear_bandit])
def test_synthetic_noise_must_be_positive(make):
    with pytest.raises(InvalidInputError, match="noise_scale"):
        make(noise_scale=0.0)
    with pytest.raises(InvalidInputError, match="seed must be an integer"):
        make(seed=None)


def test_labels_must_be_digits_and_distinct_needs_all_of_them():
    from gfucb.environments import LabelledImages

    images = torch.zeros(3, 2, 2, dtype=torch.uint8)
    with pytest.raises(InvalidInputError, match="up to 12"):
        ImageBandit(LabelledImages(images, torch.tensor([0, 12, 3])))
    few = LabelledImages(images, torch.tensor([0, 1, 3]))
    with pytest.raises(InvalidInputError, match="there is no 2"):
        ImageBandit(few, digits="distinct")
    with pytest.raises(InvalidInputError, match="at least 1"):
        finite_bandit(num_representations=0)

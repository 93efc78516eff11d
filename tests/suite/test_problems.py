"""Environments of the suite: paired, deterministic, with the rewards of their definition."""

import numpy as np
import pytest
import torch
from benchmarks.suite.contenders import CONTENDERS
from benchmarks.suite.families import FAMILIES
from benchmarks.suite.problems.classes import ImageClasses, TableClasses
from benchmarks.suite.problems.settings import Prices
from benchmarks.suite.problems.synthetic import FixedArms, RareRewards, Stores
from benchmarks.suite.problems.tables import JesterArms, JesterUsers, Mushroom, School
from benchmarks.suite.problems.variants import (
    Columns,
    Drift,
    Outlier,
    Rescaled,
    WheelAfterWheels,
)
from benchmarks.suite.problems.wide import DeepColumns

from gfucb.checks import check_bandit_environment
from gfucb.core.errors import DataFileError
from gfucb.environments import ImageBandit, LabelledImages, WheelBandit, load_digits


def digits(seed, num_tasks=3):
    return ImageBandit(load_digits(), num_tasks=num_tasks, reward_map="uniform", seed=seed)


SYNTHETIC = {
    "stores": lambda seed: Stores(num_tasks=4, seed=seed),
    "fixed arms": lambda seed: FixedArms(seed=seed),
    "rare rewards": lambda seed: RareRewards(seed=seed),
    "rescaled": lambda seed: Rescaled(digits(seed), 0.01, 5.0),
    "columns": lambda seed: Columns(digits(seed), 3, 30.0),
    "drift": lambda seed: Drift(digits(seed), 1),
    "outlier": lambda seed: Outlier(digits(seed), at=1),
}
FROM_FILES = {
    "mushroom": Mushroom,
    "jester arms": JesterArms,
    "jester users": lambda data_dir, seed: JesterUsers(data_dir, num_tasks=5, seed=seed),
    "school": School,
}


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic_environments_pass_the_check(name):
    check_bandit_environment(SYNTHETIC[name])


@pytest.mark.parametrize("name", FROM_FILES)
def test_environments_from_files_pass_the_check(name, data_dir):
    check_bandit_environment(lambda seed: FROM_FILES[name](data_dir, seed=seed))


@pytest.mark.parametrize("name", FROM_FILES)
def test_missing_and_damaged_files_are_named(name, tmp_path, data_dir):
    with pytest.raises(DataFileError, match="pass --data"):
        FROM_FILES[name](None, seed=0)
    with pytest.raises(DataFileError, match=f"there is no file {tmp_path}"):
        FROM_FILES[name](tmp_path, seed=0)
    for file in data_dir.rglob("*.*"):
        path = tmp_path / file.relative_to(data_dir)
        path.parent.mkdir()
        path.write_text("a,b\n")
    with pytest.raises(DataFileError, match="is not a"):
        FROM_FILES[name](tmp_path, seed=0)


def test_families_are_consistent():
    assert len(FAMILIES) >= 12
    for family in FAMILIES.values():
        assert set(family.contenders) <= set(CONTENDERS)
        assert any(CONTENDERS[name].is_alternative for name in family.alternatives)
        assert 0 <= family.quick_rounds <= family.num_rounds
        if not family.name.startswith(("mnist", "mushroom", "jester", "school")):
            environment = family.make(0, None)
            first = environment.round(1)
            rows = len(getattr(environment, "tasks", first.noise))
            assert first.mean_rewards.shape[0] == rows


def test_mushrooms_pay_as_in_the_protocol(data_dir):
    environment = Mushroom(data_dir, seed=1)
    eaten = {True: [], False: []}
    for index in range(1, 400):
        round_ = environment.round(index)
        is_edible = bool(round_.mean_rewards[0, 0] == 5)
        eaten[is_edible].append(float(round_.rewards(torch.tensor([0]))))
        assert float(round_.rewards(torch.tensor([1]))) == 0
        assert round_.candidates.shape == (1, 2, 3 * 22 + 2)
        assert bool(round_.candidates[0, 0, :-2].sum() == 22)
    assert set(eaten[True]) == {5.0} and set(eaten[False]) == {5.0, -35.0}
    assert abs(np.mean(eaten[False]) + 15) < 5 * 20 / len(eaten[False]) ** 0.5


def test_jester_arms_shows_other_ratings_of_the_same_user(data_dir):
    environment = JesterArms(data_dir, seed=0)
    assert environment.num_users == 39
    with np.load(data_dir / "jester5k" / "jester5k.npz") as stored:
        ratings = stored["ratings"].astype(np.float64)
    round_ = environment.round(3)
    context = round_.candidates[0, 0, :32].numpy() * 10
    (user,) = np.flatnonzero([np.isin(context, row).all() for row in ratings])
    arms = round_.mean_rewards[0].numpy() * 20 - 10
    shown = np.concatenate([context, arms])
    assert all(np.isclose(ratings[user], value).any() for value in shown)
    assert len({float(value) for value in shown}) == 40


def test_jester_users_are_never_offered_a_joke_twice(data_dir):
    environment = JesterUsers(data_dir, num_tasks=6, seed=2)
    assert environment.num_tasks == 6 and environment.num_items == 100
    chosen = torch.zeros(6, 100, dtype=torch.bool)
    for index in range(1, 91):
        round_ = environment.round_after(index, chosen)
        jokes = round_.candidates[:, 0]
        assert not bool(chosen.gather(1, round_.candidates).any())
        expected = environment.ratings.gather(1, round_.candidates)
        assert torch.equal(round_.mean_rewards, expected)
        chosen[torch.arange(6), jokes] = True
    assert int(chosen.sum()) == 6 * 90


def test_pupils_are_those_of_the_school(data_dir):
    environment = School(data_dir, seed=0)
    with np.load(data_dir / "school" / "school.npz") as stored:
        inputs, scores, tasks = (stored[name].astype(np.float64) for name in ("X", "y", "task"))
    inputs[:, 3:5] /= 100
    round_ = environment.round(4)
    assert round_.candidates.shape == (4, 10, 28)
    for school in range(4):
        own = inputs[tasks == school]
        rows = [
            int(np.flatnonzero((own == pupil).all(1))[0])
            for pupil in round_.candidates[school].numpy()
        ]
        assert len(set(rows)) == 10
        expected = scores[tasks == school][rows] / 70
        np.testing.assert_allclose(round_.mean_rewards[school], expected)


def test_stores_are_linear_in_the_true_features_until_they_drift():
    environment = Stores(num_tasks=6, drift_at=2, seed=0)
    for index, later in ((1, 0), (2, 0), (3, 1)):
        round_ = environment.round(index)
        weights = environment.weights[later]
        predicted = 0.5 + 0.5 * torch.einsum("taf,tf->ta", round_.true_features[..., :-1], weights)
        torch.testing.assert_close(predicted, round_.mean_rewards)
        assert 0 <= float(round_.mean_rewards.min()) and float(round_.mean_rewards.max()) <= 1


def test_rare_rewards_are_binary_and_rare():
    environment = RareRewards(seed=0)
    rounds = [environment.round(index) for index in range(1, 301)]
    for round_ in rounds[:20]:
        possible = (round_.mean_rewards + round_.noise).unique()
        assert all(min(abs(v), abs(v - 1)) < 1e-12 for v in possible.tolist())
    means = torch.stack([round_.mean_rewards for round_ in rounds])
    rewards = means + torch.stack([round_.noise for round_ in rounds])
    assert abs(float((rewards - means).mean())) < 5 * float(means.mean() / means.numel() * 5) ** 0.5
    assert 0.01 < float(means.mean()) < 0.1 < 3 * float(means.max(2).values.mean())


def test_fixed_arms_have_one_best_arm_with_the_gap():
    means = FixedArms(num_tasks=30, seed=1).means
    assert float(means.max()) == pytest.approx(0.7) and float(means.sum(1).var()) < 1e-20
    assert len(means.argmax(1).unique()) > 5


def test_the_rewards_of_deep_columns_are_not_linear_but_those_of_their_features_are():
    environment = DeepColumns(num_tasks=1, num_actions=400, seed=1)
    round_ = environment.round(1)
    means = round_.mean_rewards[0] - round_.mean_rewards.mean()

    def unexplained(columns: torch.Tensor) -> float:
        columns = torch.cat([columns, torch.ones(len(columns), 1).double()], 1)
        fitted = columns @ torch.linalg.lstsq(columns, means).solution
        return float((means - fitted).var() / means.var())

    assert unexplained(round_.true_features[0]) < 1e-20
    assert unexplained(round_.candidates[0]) > 0.05


def test_the_class_of_an_image_is_the_best_action():
    images = LabelledImages(
        torch.arange(5, dtype=torch.uint8)[:, None, None].expand(-1, 2, 2), torch.arange(5) % 3
    )
    environment = ImageClasses(images, noise_scale=0.0, seed=2)
    for index in range(1, 20):
        round_ = environment.round(index)
        assert round_.candidates.shape == (1, 3, 7) and float(round_.mean_rewards.sum()) == 1
        shown = int(round_.candidates[0, 0, 0] * 255 + 0.5)
        assert int(round_.mean_rewards.argmax()) == shown % 3


def test_the_class_of_a_row_of_a_small_table_is_the_best_action():
    environment = TableClasses("iris", noise_scale=0.0, seed=2)
    torch.testing.assert_close(environment.contexts.std(0, correction=0), torch.ones(4).double())
    classes = set()
    for index in range(1, 20):
        round_ = environment.round(index)
        assert round_.candidates.shape == (1, 3, 7) and float(round_.mean_rewards.sum()) == 1
        distances = (environment.contexts - round_.candidates[0, 0, :4]).abs().sum(1)
        assert int(round_.mean_rewards.argmax()) == int(environment.labels[distances.argmin()])
        classes.add(int(round_.mean_rewards.argmax()))
    assert classes == {0, 1, 2}


def test_variants_change_what_they_say_and_nothing_else():
    original = digits(5).round(2)
    rescaled = Rescaled(digits(5), 0.01, 5.0).round(2)
    torch.testing.assert_close(rescaled.mean_rewards, 5 + original.mean_rewards / 100)
    torch.testing.assert_close(rescaled.noise, original.noise / 100)
    columns = Columns(digits(5), 20, 30.0).round(2).candidates
    expected = original.candidates.flatten(2).double() / 255
    expected[..., 20] *= 30
    torch.testing.assert_close(columns, expected)
    drifted = Drift(digits(5), 1)
    assert torch.equal(drifted.round(1).mean_rewards, digits(5).round(1).mean_rewards)
    assert not torch.equal(drifted.round(2).mean_rewards, original.mean_rewards)
    assert torch.equal(drifted.round(2).candidates, original.candidates)
    outlier = Outlier(digits(5), at=2, task=1).round(2)
    assert (outlier.noise - original.noise).tolist() == pytest.approx([0, -999, 0])
    assert Outlier(digits(5), task=1).evaluated_tasks.tolist() == [0, 2]


def test_a_wheel_after_wheels_is_the_wheel_alone_as_the_last_task():
    environment = WheelAfterWheels(0.7, seed=3, num_earlier=4, num_samples=50)
    tasks, inputs, rewards = environment.log()
    assert tasks.bincount().tolist() == [50] * 4 and environment.tasks.tolist() == [4]
    assert inputs.shape == (200, 7) and float(rewards.max()) > 40
    alone = WheelBandit([0.7], seed=3).round(8)
    assert torch.equal(environment.round(8).candidates, alone.candidates)
    assert environment.num_tasks == 5


def test_prices_are_paid_or_not_as_often_as_their_means_say():
    environment = Prices(seed=3)
    paid = []
    for index in range(1, 301):
        found = environment.round(index)
        rewards = found.mean_rewards + found.noise
        prices = found.candidates[..., 0]
        assert bool(((rewards.abs() < 1e-12) | ((rewards - prices).abs() < 1e-12)).all())
        paid.append(rewards)
    means, expected = torch.stack(paid).mean((0, 1)), found.mean_rewards.mean(0)
    assert float((means - expected).abs().max()) < 5 * 0.5 / 3000**0.5
    assert bool((found.mean_rewards.argmax(1) % 10 > 0).all())  # not at the ends

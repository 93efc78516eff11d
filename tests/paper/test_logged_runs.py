"""Logged runs: test images stay hidden, milestones change nothing, logs and fits."""

from functools import partial

import torch

from gfucb import GFUCB
from gfucb.estimation import LogRadius
from gfucb.paper import logged_runs
from gfucb.paper.logged_runs import (
    ImageSource,
    LoggedRuns,
    confidence_sets,
    first_samples,
    offline_log,
    paper_fit,
    ten_task_runs,
)

DIGITS = ImageSource(digits=True)


def test_environments_never_show_test_images():
    shown, held_out = DIGITS.training(), DIGITS.test()
    assert len(shown.labels) + len(held_out.labels) == 1797
    seen = {image.numpy().tobytes() for image in shown.images}
    test = DIGITS.test_sample(100).images
    assert sum(image.numpy().tobytes() in seen for image in test) == 0
    log = confidence_sets(ten_task_runs((0,), (5,)), DIGITS)[0, 5].data
    assert all(image.numpy().tobytes() in seen for image in log.inputs)


def test_milestones_do_not_change_a_run():
    early = confidence_sets(LoggedRuns((0,), (3, 9), 2), DIGITS)
    late = confidence_sets(LoggedRuns((0,), (9,), 2), DIGITS)[0, 9]
    assert len(early[0, 3].data) == 6 and len(early[0, 9].data) == 18
    assert torch.equal(early[0, 9].data.inputs, late.data.inputs)
    torch.testing.assert_close(early[0, 9].center.heads, late.center.heads)
    first = first_samples(late.data, 6)
    assert torch.equal(first.targets, early[0, 3].data.targets) and len(late.data) == 18
    assert first.round_index == 4


def test_the_agents_learn_from_all_candidates(monkeypatch):
    runs = LoggedRuns((0,), (9,), 2)
    with_candidates = confidence_sets(runs, DIGITS)[0, 9]
    monkeypatch.setattr(logged_runs, "GFUCB", partial(GFUCB, self_supervision=None))
    without = confidence_sets.__wrapped__(runs, DIGITS)[0, 9]
    assert not torch.allclose(with_candidates.center.heads, without.center.heads, atol=0.01)


def test_offline_rewards_are_those_of_the_digits_plus_noise():
    log = offline_log(DIGITS, 0, 10, 300)
    environment = LoggedRuns((0,), (1,), 10).environment(DIGITS, 0)
    labels = {
        image.numpy().tobytes(): int(label)
        for image, label in zip(environment.data.images, environment.data.labels, strict=True)
    }
    digits = [labels[image.numpy().tobytes()] for image in log.inputs]
    noise = log.targets - environment.reward_maps[log.tasks, digits]
    assert 0.005 < float(noise.std()) < 0.015
    assert log.samples_per_task.tolist() == [30] * 10


def test_a_fit_depends_only_on_the_first_samples_of_the_log():
    log = offline_log(DIGITS, 0, 10, 60)
    whole, part = first_samples(log, 40), first_samples(offline_log(DIGITS, 0, 10, 60), 40)
    one, other = (
        paper_fit(data, seed=0, epochs=2, device="cpu", first_part=None) for data in (whole, part)
    )
    torch.testing.assert_close(one.center.heads, other.center.heads)
    assert one.squared_radius == LogRadius()(5)

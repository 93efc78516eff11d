"""Bonuses of arms without context grow with the number of rounds."""

import math

import torch

from gfucb.core.random import random_stream
from gfucb.models.exploration_rates import exploration_rates
from gfucb.models.head_posterior import HeadPosterior
from gfucb.models.posterior_set import PosteriorEllipsoid
from gfucb.models.reward_weights import posterior_variance_parts

TASKS, DIM, LINEAR = 5, 4, 2
FULL = DIM + LINEAR
SAMPLED = torch.arange(12) % TASKS


def normal(name: str, *shape: int) -> torch.Tensor:
    draws = random_stream(0, "exploration rates", name)
    return torch.randn(*shape, generator=draws, dtype=torch.float64)


def posterior() -> HeadPosterior:
    ones = torch.ones(DIM, dtype=torch.float64)
    settings = {"mean_variances": ones, "exploration_scale": 1.7, "noise": 0.3}
    empty = HeadPosterior.empty(TASKS, DIM, LINEAR, **settings)
    return empty.given(normal("features", 12, FULL), SAMPLED, normal("targets", 12))


def test_rates_are_logarithms_of_rounds_per_try():
    variances = torch.tensor([[1 / 2, 1 / 30, 0.0], [1 / 2, 1 / 30, 1.0]]).double()
    found = exploration_rates(variances, torch.tensor([299, 0]))
    expected = [[math.log(150), math.log(10), 1.0], [1.0, 1.0, 1.0]]
    torch.testing.assert_close(found, torch.tensor(expected).double())


def test_only_the_variance_of_the_model_grows():
    counts = torch.full((TASKS,), 10**6)
    plain = PosteriorEllipsoid(posterior(), 2.0)
    growing = PosteriorEllipsoid(posterior(), 2.0, counts)
    tasks, features = torch.tensor([1, 3]), normal("candidates", 2, 6, FULL)
    torch.testing.assert_close(
        plain.bonus_widths(features, tasks), plain.squared_widths(features, tasks)
    )
    own = posterior().model_variances(features, tasks)
    grown = growing.bonus_widths(features, tasks) - plain.squared_widths(features, tasks)
    assert (grown > own).all()
    torch.testing.assert_close(grown, (exploration_rates(own, counts[tasks]) - 1) * own)
    parts = posterior_variance_parts(posterior(), features, tasks, counts)
    torch.testing.assert_close(parts.total, growing.bonus_widths(features, tasks))
    features[..., :DIM] = 0
    torch.testing.assert_close(
        growing.bonus_widths(features, tasks), plain.squared_widths(features, tasks)
    )

"""How much samples tell about effects that the model has not seen."""

from dataclasses import replace

import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.models.head_posterior import HeadPosterior, PosteriorFit
from gfucb.models.posterior_state import posterior_state, restored_posterior

TASKS, DIM, LINEAR, PRECISION = 3, 4, 2, 4.0
SAMPLED = torch.tensor([1, 1, 0, 1, 0])  # task 2 has no samples


def normal(name: str, *shape: int) -> torch.Tensor:
    draws = random_stream(0, "exploration precision", name)
    return torch.randn(*shape, generator=draws, dtype=torch.float64)


FEATURES, TARGETS = normal("features", len(SAMPLED), DIM + LINEAR), normal("y", len(SAMPLED))


def prior(precision: float, *, holds_samples: bool = False) -> HeadPosterior:
    empty = HeadPosterior.empty(
        TASKS,
        DIM,
        LINEAR,
        mean_variances=torch.ones(DIM, dtype=torch.float64),
        exploration_scale=1.7,
        noise=0.3,
        holds_samples=holds_samples,
    )
    return replace(empty, exploration_precision=precision)


def assert_explored(found: HeadPosterior) -> None:
    for task in range(TASKS):
        linear = FEATURES[SAMPLED == task, DIM:]
        gram = torch.eye(LINEAR, dtype=torch.float64) + PRECISION * linear.T @ linear
        torch.testing.assert_close(found.exploration.whole[task], torch.linalg.inv(gram))


@pytest.mark.parametrize("holds_samples", [False, True])
def test_is_a_factor_of_the_gram_matrix_after_every_update(holds_samples):
    start = prior(PRECISION, holds_samples=holds_samples)
    assert_explored(start.given(FEATURES, SAMPLED, TARGETS))
    assert_explored(start.after(FEATURES, SAMPLED, TARGETS))
    assert_explored(start.expecting(FEATURES, SAMPLED))


def test_changes_no_heads():
    found, usual = (prior(k).given(FEATURES, SAMPLED, TARGETS) for k in (PRECISION, 1.0))
    assert torch.equal(found.heads, usual.heads)
    assert torch.equal(found.covariances.whole, usual.covariances.whole)


def test_is_saved():
    state = posterior_state(PosteriorFit(lambda x: x, prior(PRECISION), 0.0))
    _, found = restored_posterior(state, TASKS, torch.device("cpu"))
    assert found.exploration_precision == PRECISION
    state["posterior.numbers"][5] = 0.0
    with pytest.raises(InvalidInputError, match="precision must be positive"):
        restored_posterior(state, TASKS, torch.device("cpu"))

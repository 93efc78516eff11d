"""Evidence and posterior of two-level heads, against the full covariance of all samples."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.estimation.evidence import (
    PSEUDO_SAMPLES,
    TaskMoments,
    log_evidence,
    two_level_posterior,
)

DIM, PSEUDO_SQUARE = 3, 4.0
# Tasks 0 .. M - 1 of 4 tasks without task 2: it has no data.
CASES = [(1, 0.0), (1, 0.7), (4, 0.0), (4, 0.5), (4, 200.0)]


@dataclass(frozen=True)
class Case:
    """Samples, scales, and the joint Gaussian of the shared mean, all heads and all samples."""

    features: torch.Tensor
    tasks: torch.Tensor
    targets: torch.Tensor
    scales: torch.Tensor
    num_tasks: int
    mean_ratio: float
    factor: torch.Tensor | None = None

    @property
    def correlation(self) -> np.ndarray:
        """S, [feature, feature]."""
        return np.eye(DIM) if self.factor is None else (self.factor @ self.factor.mT).numpy()

    @property
    def sums(self) -> TaskMoments:
        return TaskMoments.of(
            self.features, self.tasks, self.targets, self.num_tasks, pseudo_square=PSEUDO_SQUARE
        )

    @property
    def covariance_of_samples(self) -> np.ndarray:
        """I + Phi D S D Phi^T within a task + mean_ratio Phi D^2 Phi^T, [sample, sample]."""
        scaled = (self.features * self.scales).numpy()
        own, shared = scaled @ self.correlation @ scaled.T, scaled @ scaled.T
        is_same = (self.tasks[:, None] == self.tasks).numpy()
        return np.eye(len(own)) + is_same * own + self.mean_ratio * shared

    @property
    def noise(self) -> float:
        targets = self.targets.numpy()
        square = targets @ np.linalg.solve(self.covariance_of_samples, targets)
        return (square + PSEUDO_SAMPLES * PSEUDO_SQUARE) / (len(targets) + PSEUDO_SAMPLES)

    @property
    def log_evidence(self) -> float:
        _, log_determinant = np.linalg.slogdet(self.covariance_of_samples)
        count = len(self.targets) + PSEUDO_SAMPLES
        return -0.5 * (count * math.log(self.noise) + log_determinant)

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean [block, feature] and covariance [block, feature, block, feature].

        The blocks are the shared mean, then the head of each task, all for scaled features.
        """
        blocks = self.num_tasks + 1
        is_head = np.diag([0.0] + [1.0] * self.num_tasks)
        shared = np.full((blocks, blocks), self.mean_ratio)
        prior = np.kron(shared, np.eye(DIM)) + np.kron(is_head, self.correlation)
        design = np.zeros((len(self.targets), blocks, DIM))
        rows = np.arange(len(self.targets))
        design[rows, self.tasks.numpy() + 1] = (self.features * self.scales).numpy()
        design = design.reshape(len(rows), -1)
        gain = np.linalg.solve(self.covariance_of_samples, design @ prior).T
        covariance = prior - gain @ design @ prior
        mean = gain @ self.targets.numpy()
        return mean.reshape(blocks, DIM), covariance.reshape(blocks, DIM, blocks, DIM)


FACTOR = torch.tensor([[1.5, 0.0, 0.0], [-0.9, 0.2, 0.0], [0.4, 0.3, 0.7]], dtype=torch.float64)


def make(
    num_tasks: int, mean_ratio: float, num_samples: int = 30, factor: torch.Tensor | None = None
) -> Case:
    draws = random_stream(num_samples, "evidence", num_tasks)
    tasks = torch.randint(num_tasks, (num_samples,), generator=draws)
    tasks[tasks == 2] = 0
    return Case(
        features=torch.randn(num_samples, DIM, generator=draws, dtype=torch.float64),
        tasks=tasks,
        targets=torch.randn(num_samples, generator=draws, dtype=torch.float64) + 0.5,
        scales=torch.tensor([0.3, 1.0, 2.5], dtype=torch.float64),
        num_tasks=num_tasks,
        mean_ratio=mean_ratio,
        factor=factor,
    )


def close(found, expected) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("num_samples", [1, 3, 30])
@pytest.mark.parametrize(("num_tasks", "mean_ratio"), CASES)
def test_evidence_and_noise_are_those_of_the_full_covariance(num_tasks, mean_ratio, num_samples):
    case = make(num_tasks, mean_ratio, num_samples)
    close(log_evidence(case.sums, case.scales, mean_ratio), case.log_evidence)
    found = two_level_posterior(case.sums, case.scales, mean_ratio)
    close(found.log_evidence, case.log_evidence)
    close(found.noise, case.noise)


@pytest.mark.parametrize("num_samples", [1, 3, 30])
@pytest.mark.parametrize(("num_tasks", "mean_ratio"), CASES)
def test_the_posterior_is_that_of_the_joint_gaussian(num_tasks, mean_ratio, num_samples):
    case = make(num_tasks, mean_ratio, num_samples)
    found = two_level_posterior(case.sums, case.scales, mean_ratio)
    means, covariance = case.posterior()
    close(found.mean, means[0])
    close(found.mean_covariance, covariance[0, :, 0])
    own = found.covariances
    close((own @ (found.moments + found.mean)[:, :, None]).squeeze(-1), means[1:])
    of_heads = own + own @ found.mean_covariance @ own
    for task in range(num_tasks):
        close(of_heads[task], covariance[task + 1, :, task + 1])


@pytest.mark.parametrize("num_samples", [1, 3, 30])
@pytest.mark.parametrize(("num_tasks", "mean_ratio"), CASES)
def test_correlated_heads_have_the_posterior_of_the_joint_gaussian(
    num_tasks, mean_ratio, num_samples
):
    case = make(num_tasks, mean_ratio, num_samples, FACTOR)
    found = two_level_posterior(case.sums, case.scales, mean_ratio, FACTOR)
    close(found.log_evidence, case.log_evidence)
    close(found.noise, case.noise)
    means, covariance = case.posterior()
    close(FACTOR @ found.mean, means[0])
    close(FACTOR @ found.mean_covariance @ FACTOR.mT, covariance[0, :, 0])
    own = found.covariances
    heads = (own @ (found.moments + found.mean)[:, :, None]).squeeze(-1)
    close(heads @ FACTOR.mT, means[1:])
    of_heads = FACTOR @ (own + own @ found.mean_covariance @ own) @ FACTOR.mT
    for task in range(num_tasks):
        close(of_heads[task], covariance[task + 1, :, task + 1])


def test_a_task_without_data_has_the_mean_of_the_others():
    case = make(4, 0.5)
    found = two_level_posterior(case.sums, case.scales, 0.5)
    assert 2 not in case.tasks
    close(found.covariances[2] @ (found.moments[2] + found.mean), found.mean)
    assert float(found.mean.abs().max()) > 0.1


def test_separate_tasks_share_only_the_noise():
    case = make(4, 0.0)
    found = two_level_posterior(case.sums, case.scales, 0.0)
    own = case.tasks == 1
    alone = TaskMoments.of(
        case.features[own],
        torch.zeros_like(case.tasks[own]),
        case.targets[own],
        1,
        pseudo_square=PSEUDO_SQUARE,
    )
    expected = two_level_posterior(alone, case.scales, 0.0)
    close(found.covariances[1], expected.covariances[0])
    close(found.moments[1], expected.moments[0])
    assert not found.mean.any() and not found.mean_covariance.any()


def test_the_unit_of_targets_moves_all_evidence_by_the_same_amount():
    one, unit = make(4, 0.5), 100.0
    other = TaskMoments.of(
        one.features, one.tasks, unit * one.targets, 4, pseudo_square=unit**2 * PSEUDO_SQUARE
    )
    shift = (len(one.targets) + PSEUDO_SAMPLES) * math.log(unit)
    for factor in (0.5, 1.0, 3.0):
        scales = factor * one.scales
        close(log_evidence(other, scales, 0.5), log_evidence(one.sums, scales, 0.5) - shift)
    found = two_level_posterior(other, one.scales, 0.5)
    close(found.noise, unit**2 * one.noise)


def test_targets_without_error_still_have_noise():
    """Pseudo-samples keep the noise positive, so that rewards without noise can be fitted."""
    case = make(1, 0.0, 3)
    sums = TaskMoments.of(
        case.features, case.tasks, torch.zeros(3).double(), 1, pseudo_square=PSEUDO_SQUARE
    )
    found = two_level_posterior(sums, case.scales, 0.0)
    close(found.noise, PSEUDO_SAMPLES * PSEUDO_SQUARE / (3 + PSEUDO_SAMPLES))
    assert math.isfinite(found.log_evidence)


@pytest.mark.parametrize("function", [log_evidence, two_level_posterior])
@pytest.mark.parametrize("wrong", [1e200, math.nan])
def test_features_whose_products_overflow_are_refused(function, wrong):
    case = make(4, 0.5)
    case.features[5, 1] = wrong
    with pytest.raises(InvalidInputError, match="not finite; inputs are too large"):
        function(case.sums, case.scales, 0.5)

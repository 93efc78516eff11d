"""The covariance of heads over tasks: every step raises the density; few directions are found."""

import itertools
import math

import numpy as np
import pytest
import torch

from gfucb.core.random import random_stream
from gfucb.estimation import head_covariance
from gfucb.estimation.evidence import TaskMoments, two_level_posterior
from gfucb.estimation.head_covariance import PRIOR_TASKS, covariance_factor

DIM, TASKS, PER_TASK, NOISE = 12, 40, 15, 0.3
SCALES = torch.linspace(0.5, 2.0, DIM, dtype=torch.float64)
RATIO = 2.0


def normal(name: str, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=random_stream(0, name), dtype=torch.float64)


DIRECTIONS = normal("directions", 2, DIM)
HEADS = normal("mean", DIM) + 2 * normal("heads", TASKS, 2) @ DIRECTIONS
FEATURES = normal("features", TASKS * PER_TASK, DIM)
OF_TASK = torch.arange(TASKS).repeat_interleave(PER_TASK)
TARGETS = (FEATURES * HEADS[OF_TASK]).sum(1) + NOISE * normal("noise", TASKS * PER_TASK)


def sums(tasks: int = TASKS, with_data: int | None = None) -> TaskMoments:
    used = OF_TASK < (with_data or tasks)
    return TaskMoments.of(FEATURES[used], OF_TASK[used], TARGETS[used], tasks, pseudo_square=1.0)


def log_density(found: TaskMoments, factor: torch.Tensor) -> float:
    """Log density of S and the best mean, with dense matrices and the best noise variance."""
    covariance = (factor @ factor.mT).numpy()
    used = OF_TASK < len(found.counts)
    features = (FEATURES[used] * SCALES).numpy()
    targets, tasks = TARGETS[used].numpy(), OF_TASK[used].numpy()
    is_same = tasks[:, None] == tasks
    matrix = np.eye(len(targets)) + is_same * (features @ covariance @ features.T)
    inverse = np.linalg.inv(matrix)
    normal_matrix = features.T @ inverse @ features + np.eye(DIM) / RATIO
    mean = np.linalg.solve(normal_matrix, features.T @ inverse @ targets)
    rest = targets - features @ mean
    square = rest @ inverse @ rest + mean @ mean / RATIO
    logs = len(targets) * math.log(square / len(targets)) + np.linalg.slogdet(matrix)[1]
    prior = np.linalg.slogdet(covariance)[1] + np.trace(np.linalg.inv(covariance))
    return -0.5 * (logs + PRIOR_TASKS * prior)


@pytest.mark.parametrize("num_tasks", [2, 10])
def test_each_step_raises_the_density(monkeypatch, num_tasks):
    monkeypatch.setattr(head_covariance, "NUM_STEPS", 1)
    data, factor = sums(num_tasks), None
    densities = [log_density(data, torch.eye(DIM, dtype=torch.float64))]
    for _ in range(8):
        factor = covariance_factor(data, SCALES, RATIO, factor)
        densities.append(log_density(data, factor))
    assert all(later > earlier for earlier, later in itertools.pairwise(densities))


def test_heads_that_differ_in_two_directions_are_found_from_few_samples():
    factor = None
    for _ in range(10):
        factor = covariance_factor(sums(), SCALES, RATIO, factor)
    covariance = SCALES[:, None] * (factor @ factor.mT) * SCALES
    values, vectors = torch.linalg.eigh(covariance)
    assert values[-2] > 10 * values[-3]
    inside = torch.linalg.lstsq(DIRECTIONS.mT, vectors[:, -2:]).solution
    torch.testing.assert_close(DIRECTIONS.mT @ inside, vectors[:, -2:], atol=0.1, rtol=0)
    new_task = torch.arange(4)  # four samples of a task with twelve weights
    few = TaskMoments.of(
        FEATURES[PER_TASK:][new_task],
        torch.zeros_like(new_task),
        TARGETS[PER_TASK:][new_task],
        1,
        pseudo_square=1.0,
    )
    every = two_level_posterior(sums(), SCALES, RATIO, factor)
    plain = two_level_posterior(sums(), SCALES, RATIO)

    def error(posterior, root) -> float:
        scaled = few.scaled(SCALES, root)
        gram = scaled.grams[0] + torch.eye(DIM, dtype=torch.float64)
        head = torch.linalg.solve(gram, scaled.moments[0] + posterior.mean)
        weights = SCALES * (head if root is None else root @ head)
        return float((weights - HEADS[1]).norm())

    assert error(every, factor) < 0.3 * error(plain, None)


def test_a_covariance_that_does_not_predict_other_tasks_is_refused():
    """Heads of every second task differ in one direction, those of the others in another one."""
    size, tasks = 20, torch.arange(400) % 8
    features, heads = normal("more features", 400, size), torch.zeros(8, size, dtype=torch.float64)
    heads[0::2, 0], heads[1::2, 1] = 10.0, 10.0
    heads *= normal("signs", 8, 1).sign()
    targets = (features * heads[tasks]).sum(1) + normal("unit noise", 400)
    data = TaskMoments.of(features, tasks, targets, 8, pseudo_square=1.0)
    ones = torch.ones(size, dtype=torch.float64)
    assert covariance_factor(data, ones, 1e-3) is None
    heads[1::2] = heads[0::2].flip(0)
    targets = (features * heads[tasks]).sum(1) + normal("unit noise", 400)
    shared = TaskMoments.of(features, tasks, targets, 8, pseudo_square=1.0)
    assert covariance_factor(shared, ones, 1e-3) is not None


def test_very_few_samples_have_no_covariance(monkeypatch):
    few = TaskMoments.of(FEATURES[:4], OF_TASK[:4] % 2, TARGETS[:4], 2, pseudo_square=1.0)
    monkeypatch.setattr(head_covariance, "_predicts_other_tasks", lambda *_: True)
    assert covariance_factor(few, SCALES, RATIO) is not None
    monkeypatch.setattr(head_covariance, "SAMPLES_PER_FEATURE", 0.5)
    assert covariance_factor(few, SCALES, RATIO) is None


def test_tasks_without_data_change_nothing():
    few = covariance_factor(sums(5), SCALES, RATIO)
    found = covariance_factor(sums(TASKS, with_data=5), SCALES, RATIO)
    torch.testing.assert_close(found, few)
    assert not torch.allclose(covariance_factor(sums(6), SCALES, RATIO), few)


def test_the_tasks_with_most_samples_are_used_if_all_cost_too_much(monkeypatch):
    monkeypatch.setattr(head_covariance, "LARGEST_COST", 3 * DIM**3)
    rows = torch.cat([torch.arange(5 * PER_TASK), torch.arange(3)])  # the first task has 3 more
    data = TaskMoments.of(FEATURES[rows], OF_TASK[rows], TARGETS[rows], 5, pseudo_square=1.0)
    three = data.of_tasks(torch.arange(3))
    assert torch.equal(
        covariance_factor(data, SCALES, RATIO), covariance_factor(three, SCALES, RATIO)
    )


def test_the_result_is_a_cholesky_factor_with_a_bounded_inverse():
    factor = covariance_factor(sums(), SCALES, RATIO)
    assert not factor.triu(1).any() and bool((factor.diagonal() > 0).all())
    smallest = torch.linalg.eigvalsh(factor @ factor.mT)[0]
    assert smallest >= PRIOR_TASKS / (PRIOR_TASKS + TASKS)

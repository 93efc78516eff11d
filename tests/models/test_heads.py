from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from gfucb.core.errors import InvalidInputError
from gfucb.core.linalg import ridge_cholesky
from gfucb.core.random import random_stream
from gfucb.models import HeadEllipsoid, HeadPenalty, HeadStatistics
from gfucb.models.copy_on_write import CopyOnWriteRows


def problem(seed: int, num_samples: int = 12, num_tasks: int = 3, feature_dim: int = 4):
    generator = random_stream(seed, "heads")
    features = torch.randn(num_samples, feature_dim, generator=generator, dtype=torch.float64)
    tasks = torch.randint(num_tasks, (num_samples,), generator=generator)
    targets = torch.randn(num_samples, generator=generator, dtype=torch.float64)
    return features, tasks, targets


@pytest.mark.parametrize("num_samples", [5, 12, 13, 60])  # few rows per task, and many
@pytest.mark.parametrize("seed", range(3))
def test_heads_solve_the_normal_equations_of_each_task(seed, num_samples):
    features, tasks, targets = problem(seed, num_samples)
    heads = HeadStatistics.of(features, tasks, targets, 3).heads(HeadPenalty(0.7))
    for task in range(3):
        x, y = features[tasks == task].numpy(), targets[tasks == task].numpy()
        expected = np.linalg.solve(x.T @ x + 0.7 * np.eye(4), x.T @ y)
        np.testing.assert_allclose(heads[task], expected, rtol=1e-10, atol=1e-12)


def test_one_sample_of_every_task_is_added_as_other_samples_are():
    features, tasks, targets = problem(0, num_samples=40)
    before = HeadStatistics.of(features, tasks, targets, 3)
    more, _, new_targets = problem(1, num_samples=3)
    after = before.plus_one_each(more, new_targets)
    expected = before.plus(HeadStatistics.of(more, torch.arange(3), new_targets, 3))
    torch.testing.assert_close(after.grams, expected.grams)
    torch.testing.assert_close(after.moments, expected.moments)


@pytest.mark.parametrize("tasks", [[2, 0, 1], [2, 0], [1, 1, 0, 1]])
def test_samples_in_any_order_are_added_to_their_tasks(tasks):
    features, owners, targets = problem(0, num_samples=40)
    before = HeadStatistics.of(features, owners, targets, 3)
    penalty = HeadPenalty(0.7)
    more, _, new_targets = problem(1, num_samples=len(tasks))
    new_owners = torch.tensor(tasks)
    after, changed = before.after(more, new_owners, new_targets)
    expected = before.plus(HeadStatistics.of(more, new_owners, new_targets, 3))
    assert changed.tolist() == sorted(set(tasks))
    torch.testing.assert_close(after.grams, expected.grams)
    torch.testing.assert_close(after.moments, expected.moments)
    heads = after.heads_solved_at(changed, penalty, before.heads(penalty))
    torch.testing.assert_close(heads, expected.heads(penalty))


def test_rewards_of_a_few_tasks_change_their_statistics_and_factors_only():
    features, tasks, targets = problem(0, num_samples=40)
    before = HeadStatistics.of(features, tasks, targets, 3)
    assert before.cholesky(0.7) is before.cholesky(0.7)
    more, places, new_targets = problem(1, num_samples=5, num_tasks=2)
    few = torch.tensor([2, 0])
    after = before.plus_at(few, HeadStatistics.of(more, places, new_targets, 2))
    everything = HeadStatistics.of(
        torch.cat([features, more]),
        torch.cat([tasks, few[places]]),
        torch.cat([targets, new_targets]),
        3,
    )
    torch.testing.assert_close(after.grams, everything.grams)
    torch.testing.assert_close(after.cholesky(0.7), everything.cholesky(0.7))
    assert torch.equal(after.cholesky(0.7)[1], before.cholesky(0.7)[1])
    penalty = HeadPenalty(0.7)
    torch.testing.assert_close(after.taken(few).heads(penalty), everything.heads(penalty)[few])


def test_statistics_add_up():
    features, tasks, targets = problem(0)
    whole = HeadStatistics.of(features, tasks, targets, 3)
    parts = HeadStatistics.empty(3, 4)
    for row in range(len(features)):
        job = slice(row, row + 1)
        parts = parts.plus(HeadStatistics.of(features[job], tasks[job], targets[job], 3))
    torch.testing.assert_close(parts.grams, whole.grams)
    torch.testing.assert_close(parts.moments, whole.moments)


@pytest.mark.parametrize("seed", range(3))
def test_norm_bounded_heads_are_the_constrained_minimisers(seed):
    features, tasks, targets = problem(seed)
    bound = 0.3
    heads = HeadStatistics.of(features, tasks, targets, 3).heads(HeadPenalty(0.1, bound))
    for task in range(3):
        x, y = features[tasks == task].numpy(), targets[tasks == task].numpy()

        def loss(w, x=x, y=y):
            return ((x @ w - y) ** 2).sum() + 0.1 * (w**2).sum()

        inside = {"type": "ineq", "fun": lambda w: bound**2 - (w**2).sum()}
        best = minimize(loss, np.zeros(4), constraints=[inside], tol=1e-12, method="SLSQP")
        assert heads[task].norm() <= bound * (1 + 1e-9)
        assert loss(heads[task].numpy()) <= best.fun + 1e-8


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_ridge_that_is_not_positive_is_refused(bad):
    with pytest.raises(InvalidInputError, match="ridge must be a finite number above 0"):
        HeadPenalty(bad)


def ellipsoid(seed: int, norm_bound: float | None = None) -> tuple[HeadEllipsoid, torch.Tensor]:
    features, tasks, targets = problem(seed, num_samples=20)
    statistics = HeadStatistics.of(features, tasks, targets, 3)
    heads = statistics.heads(HeadPenalty(0.5, norm_bound))
    directions = torch.randn(3, 4, generator=random_stream(seed, "g"), dtype=torch.float64)
    cholesky = ridge_cholesky(statistics.grams, 0.5)
    return HeadEllipsoid(heads, CopyOnWriteRows(cholesky), 1.7, norm_bound), directions


@pytest.mark.parametrize("seed", range(5))
def test_the_farthest_heads_are_on_the_boundary_and_no_others_are_farther(seed):
    shape, directions = ellipsoid(seed)
    best = shape.farthest_heads(directions)
    assert shape.squared_distance(best) == pytest.approx(1.7, rel=1e-10)
    generator = random_stream(seed, "inside")
    for _ in range(200):
        steps = torch.randn(3, 4, generator=generator, dtype=torch.float64)
        other = shape.centers + steps
        other = shape.centers + steps * (1.7 / shape.squared_distance(other)) ** 0.5
        assert (directions * other).sum() <= (directions * best).sum() + 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_norm_bounded_farthest_heads_equal_a_general_purpose_solver(seed):
    bound = 0.8
    shape, directions = ellipsoid(seed, bound)
    best = shape.farthest_heads(directions)
    assert float(best.norm(dim=1).max()) <= bound * (1 + 1e-6)
    assert shape.squared_distance(best) <= 1.7 * (1 + 1e-6)

    def heads(w):
        return torch.tensor(w).reshape(3, 4)

    constraints = [
        {"type": "ineq", "fun": lambda w: 1.7 - shape.squared_distance(heads(w))},
        {"type": "ineq", "fun": lambda w: bound**2 - heads(w).square().sum(1).numpy()},
    ]
    result = minimize(
        lambda w: -float((directions * heads(w)).sum()),
        shape.centers.flatten().numpy(),
        constraints=constraints,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert float((directions * best).sum()) == pytest.approx(-result.fun, rel=1e-5)


@pytest.mark.parametrize("squared_radius", [1e-12, 1e-3, 1.7])
@pytest.mark.parametrize("seed", range(3))
def test_norm_bounded_farthest_heads_lie_on_the_inner_side_of_the_boundary(seed, squared_radius):
    shape, directions = ellipsoid(seed, 0.5)
    shape = replace(shape, squared_radius=squared_radius)
    distance = shape.squared_distance(shape.farthest_heads(directions))
    assert squared_radius * (1 - 1e-6) <= distance <= squared_radius * (1 + 1e-12)


def test_with_an_inactive_ellipsoid_the_norm_bound_limits_the_heads():
    shape, directions = ellipsoid(0, 0.5)
    best = replace(shape, squared_radius=1e6).farthest_heads(directions)
    expected = 0.5 * directions / directions.norm(dim=1, keepdim=True)
    torch.testing.assert_close(best, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_a_set_is_empty_if_the_ellipsoid_and_the_norm_ball_are_disjoint(seed):
    shape, _ = ellipsoid(seed)
    assert not shape.is_empty
    far = replace(shape, centers=shape.centers + 2.0, norm_bound=0.5)

    def distance(w):
        return far.squared_distance(torch.tensor(w).reshape(3, 4))

    inside = {"type": "ineq", "fun": lambda w: 0.25 - np.square(w).reshape(3, 4).sum(1)}
    nearest = minimize(distance, np.zeros(12), constraints=[inside], method="SLSQP", tol=1e-12)
    assert replace(far, squared_radius=nearest.fun * 0.999).is_empty
    assert not replace(far, squared_radius=nearest.fun * 1.001).is_empty

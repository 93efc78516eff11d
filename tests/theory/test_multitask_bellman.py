"""Bellman errors of several tasks with one representation: by hand, samples, intervals."""

import itertools

import numpy as np
import pytest
from bellman_problems import naive_backup, naive_distance, normal, random_problem, rays, table
from hypothesis import given, settings
from hypothesis import strategies as st

from gfucb.core.errors import InvalidInputError
from gfucb.theory.bellman import inherent_bellman_error
from gfucb.theory.linear_values import LinearValueClass
from gfucb.theory.multitask_bellman import (
    multitask_bellman_error,
    multitask_bellman_error_lower_bound,
    worst_joint_choice,
)
from gfucb.theory.small_mdp import MDPStage, linear_mdp_stage

HALVES = np.full((2, 2, 2), 0.5)
REWARDS = np.zeros((2, 2))


def test_tasks_without_errors_may_have_a_joint_error():
    # Task 0 pays (1, 0), task 1 pays (0, 1); the representations are e_0 and e_1. Each task alone
    # has error 0 with one of them; with a shared one the other task has error 1.
    transitions = np.ones((2, 1, 1))
    tasks = [MDPStage(transitions, table([[1], [0]])), MDPStage(transitions, table([[0], [1]]))]
    classes = [LinearValueClass(np.eye(2)[:, None, [j]]) for j in range(2)]
    following = [LinearValueClass(np.zeros((1, 1, 1)), 1.0)]
    for task in tasks:
        assert multitask_bellman_error([task], classes, following).upper < 1e-12
    together = multitask_bellman_error(tasks, classes, following)
    assert together.is_exact
    assert together.lower == pytest.approx(1.0, abs=1e-12)


def maximum_between_vertices() -> tuple[list, list, list]:
    """Backups (1 + t, 1 - t), |t| <= 1: e_0 errs by |1 - t|, e_1 by |1 + t|."""
    task = MDPStage(np.eye(2)[:, None], np.ones((2, 1)))
    classes = [LinearValueClass(np.eye(2)[:, None, [j]]) for j in range(2)]
    return [task], classes, [LinearValueClass(table([[[1]], [[-1]]]), 1.0)]


def test_a_maximum_between_vertices_is_found_with_a_cut():
    # min(|1 - t|, |1 + t|) is 0 at both vertices and 1 at t = 0, the position of the cut.
    whole = multitask_bellman_error(*maximum_between_vertices())
    assert (whole.lower, whole.upper) == pytest.approx((0.0, 2.0), abs=1e-12)
    assert not whole.is_exact
    cut = multitask_bellman_error(*maximum_between_vertices(), cuts_per_axis=1)
    assert cut.is_exact
    assert cut.lower == pytest.approx(1.0, abs=1e-12)
    assert cut.next_heads == pytest.approx(np.zeros((1, 1)))


def multitask_problem(seed: int, num_tasks: int = 2):
    """State i leads to state i; each of three representations lacks the feature of one state.

    With large rewards the worst theta' differs between representations, so the maximum of the
    minimum is rarely at a vertex.
    """
    rewards = np.abs(normal(seed, num_tasks, 3, 1))
    tasks = [MDPStage(np.eye(3)[:, None], each) for each in rewards]
    current = [LinearValueClass(np.eye(3)[:, None, [j, (j + 1) % 3]]) for j in range(3)]
    features = normal(seed, 2, 3, 2, 2)
    return tasks, current, [LinearValueClass(each, 1.0) for each in features]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_the_multitask_interval_contains_every_sample(seed):
    tasks, current, following = multitask_problem(seed)
    interval = multitask_bellman_error(tasks, current, following, cuts_per_axis=3)
    best = 0.0
    for next_class in following:
        heads = np.concatenate([rays(next_class, seed, 12), np.tanh(normal(seed, 12, 2))])
        errors = table(
            [
                [
                    [naive_distance(phi, naive_backup(task, next_class, head)) for phi in current]
                    for head in heads
                ]
                for task in tasks
            ]
        )
        pairs = itertools.product(range(len(heads)), repeat=2)
        best = max(best, *(errors[[0, 1], pair].max(axis=0).min() for pair in pairs))
    assert 0.7 * interval.lower <= best <= interval.upper + 1e-8
    next_class = following[interval.next_representation]
    attained = min(
        max(
            naive_distance(phi, naive_backup(task, next_class, head))
            for task, head in zip(tasks, interval.next_heads, strict=True)
        )
        for phi in current
    )
    assert attained == pytest.approx(interval.lower, abs=1e-8)
    found = multitask_bellman_error_lower_bound(tasks, current, following, num_restarts=4)
    assert 0.9 * interval.lower <= found.lower <= interval.upper + 1e-9
    assert found.upper == np.inf


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_cuts_narrow_the_interval(seed):
    problem = multitask_problem(seed, num_tasks=1)
    # Each grid contains the previous one.
    intervals = [multitask_bellman_error(*problem, cuts_per_axis=cuts) for cuts in (0, 1, 3, 7)]
    assert (np.diff([interval.lower for interval in intervals]) >= -1e-9).all()
    assert (np.diff([interval.upper for interval in intervals]) <= 1e-9).all()
    assert all(interval.lower <= interval.upper + 1e-9 for interval in intervals)
    assert not intervals[0].is_exact
    assert intervals[-1].upper <= 1.15 * intervals[-1].lower


@pytest.mark.parametrize("seed", range(3))
def test_an_additional_representation_at_stage_h_never_increases_the_error(seed):
    tasks, current, following = multitask_problem(seed)
    ends = [
        multitask_bellman_error(tasks, current[:count], following, cuts_per_axis=1)
        for count in (1, 2, 3)
    ]
    assert ends[0].is_exact
    assert (np.diff([interval.lower for interval in ends]) <= 1e-9).all()
    assert (np.diff([interval.upper for interval in ends]) <= 1e-9).all()


@pytest.mark.parametrize("seed", range(3))
def test_one_task_and_one_representation_give_the_single_task_error(seed):
    (stage,), current, following = random_problem(seed, bounded=True)
    single = inherent_bellman_error(stage, current, following).error
    interval = multitask_bellman_error([stage], [current], [following])
    assert interval.is_exact
    assert interval.lower == pytest.approx(single, abs=1e-9)


def test_a_class_with_the_true_features_has_no_multitask_error():
    drawn = linear_mdp_stage(num_states=4, num_actions=2, feature_dim=3, num_tasks=3, seed=2)
    current = [LinearValueClass(normal(1, 4, 2, 3)), LinearValueClass(drawn.features, 1.0, 1.0)]
    following = [LinearValueClass(np.abs(normal(2, 4, 2, 3)), 1.0, 0.5)]
    interval = multitask_bellman_error(drawn.tasks, current, following)
    assert 0 <= interval.lower <= interval.upper < 1e-9


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), num_tasks=st.integers(1, 3))
def test_the_worst_joint_choice_equals_exhaustive_search(seed, num_tasks):
    errors = np.abs(normal(seed, num_tasks, 5, 4))
    tasks = np.arange(num_tasks)
    joint = itertools.product(range(5), repeat=num_tasks)
    expected = max(errors[tasks, choice].max(axis=0).min() for choice in joint)
    value, choice = worst_joint_choice(list(errors))
    assert value == expected
    assert errors[tasks, choice].max(axis=0).min() == expected


def test_multitask_calls_without_tasks_or_with_too_many_representations_are_refused():
    stage, fitting = MDPStage(HALVES, REWARDS), LinearValueClass(HALVES, 1.0)
    with pytest.raises(InvalidInputError, match="tasks must not be empty"):
        multitask_bellman_error([], [fitting], [fitting])
    with pytest.raises(InvalidInputError, match="current must not be empty"):
        multitask_bellman_error([stage], [], [fitting])
    with pytest.raises(InvalidInputError, match="at most 12 representations"):
        multitask_bellman_error([stage], [fitting] * 13, [fitting])
    with pytest.raises(InvalidInputError, match="cuts_per_axis must not be negative"):
        multitask_bellman_error([stage], [fitting], [fitting], cuts_per_axis=-1)
    with pytest.raises(InvalidInputError, match="num_restarts must be at least 1"):
        multitask_bellman_error_lower_bound([stage], [fitting], [fitting], num_restarts=0)

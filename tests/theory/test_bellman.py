"""Bellman errors against hand computations, brute force and a second exact method."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial import HalfspaceIntersection

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.theory.bellman import ascend, bellman_error_lower_bound, inherent_bellman_error
from gfucb.theory.linear_values import LinearValueClass
from gfucb.theory.multitask_bellman import (
    multitask_bellman_error,
    multitask_bellman_error_lower_bound,
    worst_joint_choice,
)
from gfucb.theory.small_mdp import MDPStage, linear_mdp_stage
from gfucb.theory.value_pieces import value_pieces

DIAL = [0.0, 0.1, 0.3, 0.6, 1.0]


def table(values) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def normal(seed: int, *shape: int) -> np.ndarray:
    generator = random_stream(seed, "test bellman", *shape)
    return torch.randn(shape, generator=generator, dtype=torch.float64).numpy()


def random_problem(
    seed: int, *, num_states=3, num_actions=2, feature_dim=2, num_tasks=1, bounded=False
):
    """Stages and classes on which nothing is linear and neither class fits."""
    sizes = {"num_states": num_states, "num_actions": num_actions, "feature_dim": feature_dim}
    stages = linear_mdp_stage(**sizes, num_tasks=num_tasks, mix=1.0, seed=seed).tasks
    shape = (num_states, num_actions, feature_dim)
    features, next_features = normal(seed, *shape), normal(seed + 1000, *shape)
    if not bounded:
        return stages, LinearValueClass(features), LinearValueClass(next_features, 1.0)
    # Positive features: with signs, 0 <= Q leaves a class without an interior, often only {0}.
    current = LinearValueClass(np.abs(features), 0.7, 1.3)
    return stages, current, LinearValueClass(np.abs(next_features), 1.0, 0.8)


# A second implementation, on purpose as plain as possible.


def naive_distance(value_class: LinearValueClass, target: np.ndarray) -> float:
    rows = value_class.features.reshape(target.size, -1)
    column = np.ones((target.size, 1))
    matrix = [np.hstack([rows, -column]), np.hstack([-rows, -column])]
    sides = [target.ravel(), -target.ravel()]
    if value_class.value_range is not None:
        matrix += [np.hstack([rows, 0 * column]), np.hstack([-rows, 0 * column])]
        sides += [np.full(target.size, value_class.value_range), np.zeros(target.size)]
    bound = value_class.head_bound
    box = (None, None) if bound is None else (-bound, bound)
    bounds = [box] * rows.shape[1] + [(0, None)]
    cost = np.eye(rows.shape[1] + 1)[-1]
    return linprog(cost, np.vstack(matrix), np.concatenate(sides), bounds=bounds).fun


def naive_backup(stage: MDPStage, following: LinearValueClass, next_head: np.ndarray) -> np.ndarray:
    return stage.rewards + stage.transitions @ (following.features @ next_head).max(axis=1)


def rays(following: LinearValueClass, seed: int, count: int) -> np.ndarray:
    """Random directions, each followed until it leaves the class, and the origin."""
    directions = normal(seed, count, following.feature_dim)
    heads = [np.zeros(following.feature_dim)]
    for direction in directions:
        reach = following.head_bound / np.abs(direction).max()
        if following.value_range is not None:
            values = following.features.reshape(-1, len(direction)) @ direction
            if values.min() < 0:
                continue
            reach = min(reach, following.value_range / max(values.max(), 1e-12))
        heads.append(reach * direction)
    return np.stack(heads)


def error_by_greedy_policies(stage, current, following) -> float:
    """The vertices of each of the A^S jobs by qhull, one linear program for each."""
    num_states, num_actions, feature_dim = following.features.shape
    normals, limits = following.constraints()
    worst = 0.0
    for policy in itertools.product(range(num_actions), repeat=num_states):
        chosen = following.features[np.arange(num_states), list(policy)]
        ties = (following.features - chosen[:, None]).reshape(-1, feature_dim)
        ties = ties[np.abs(ties).max(axis=1) > 0]
        matrix = np.vstack([normals, ties])
        sides = np.concatenate([limits, np.zeros(len(ties))])
        norms = np.linalg.norm(matrix, axis=1)[:, None]
        cost = -np.eye(feature_dim + 1)[-1]
        free = [(None, None)] * feature_dim + [(0, None)]
        center = linprog(cost, np.hstack([matrix, norms]), sides, bounds=free).x
        if center[-1] < 1e-7:
            continue
        halfspaces = np.hstack([matrix, -sides[:, None]])
        for vertex in HalfspaceIntersection(halfspaces, center[:-1]).intersections:
            worst = max(worst, naive_distance(current, naive_backup(stage, following, vertex)))
    return worst


# Values computed by hand.


def test_one_state_and_one_feature_fit_everything_unless_the_head_is_bounded():
    # Backups are 0.3 + theta' for theta' in [0, 0.5]. The line phi = 1 holds them all; heads of
    # at most 0.5 miss the largest, 0.8, by 0.3.
    stage = MDPStage(table([[[1]]]), table([[0.3]]))
    one = table([[[1]]])
    following = LinearValueClass(one, 0.5, 0.5)
    assert inherent_bellman_error(stage, LinearValueClass(one), following).error < 1e-12
    bounded = inherent_bellman_error(stage, LinearValueClass(one, 0.5), following)
    assert bounded.error == pytest.approx(0.3, abs=1e-12)
    assert bounded.next_head == pytest.approx([0.5])
    assert bounded.head == pytest.approx([0.5])


def test_a_constant_feature_is_half_the_spread_of_the_rewards_away():
    # Both states lead to the same place, so backups are (c, 1 + c): 1/2 from any constant.
    stage = MDPStage(table([[[1, 0]], [[1, 0]]]), table([[0], [1]]))
    constant = np.ones((2, 1, 1))
    worst = inherent_bellman_error(
        stage, LinearValueClass(constant), LinearValueClass(constant, 1.0)
    )
    assert worst.error == pytest.approx(0.5, abs=1e-12)


def test_the_best_next_action_counts():
    # State i leads to state i. V'(0) = max(t, -t) = |t| and V'(1) = t / 2 with |t| <= 1: the
    # spread is 3/2 at t = -1, so the error is 3/4. Taking the first action would give 1/4.
    stage = MDPStage(np.eye(2)[:, None], np.zeros((2, 1)))
    following = LinearValueClass(table([[[1], [-1]], [[0.5], [0.5]]]), 1.0)
    worst = inherent_bellman_error(stage, LinearValueClass(np.ones((2, 1, 1))), following)
    assert worst.error == pytest.approx(0.75, abs=1e-12)
    assert worst.next_head == pytest.approx([-1])


def test_the_worst_next_values_can_be_a_tie_inside_the_class():
    # V'(0) = |t|, V'(1) = 0, rewards (0, 2): the spread 2 - |t| peaks at the tie t = 0, where the
    # error is 1; at the ends of the class it is 1/2.
    stage = MDPStage(np.eye(2)[:, None], table([[0], [2]]))
    following = LinearValueClass(table([[[1], [-1]], [[0], [0]]]), 1.0)
    worst = inherent_bellman_error(stage, LinearValueClass(np.ones((2, 1, 1))), following)
    assert worst.error == pytest.approx(1.0, abs=1e-12)
    assert worst.next_head == pytest.approx([0])


def test_one_hot_features_have_no_error_and_dropping_one_shows_it():
    # Tabular features hold any backup. Without the feature of state 1 the value there is 0, and
    # the largest backup of state 1 is 0.25 + max V' = 0.25 + 0.5.
    stage = MDPStage(table([[[1, 0]], [[0, 1]]]), table([[0.1], [0.25]]))
    tabular = np.eye(2)[:, None]
    following = LinearValueClass(tabular, 0.5, 0.5)
    assert inherent_bellman_error(stage, LinearValueClass(tabular), following).error < 1e-12
    blind = LinearValueClass(tabular[..., :1])
    assert inherent_bellman_error(stage, blind, following).error == pytest.approx(0.75)


# The zero-error generator and its dial.


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bounds", [(None, None), (1.0, 1.0)])
def test_a_linear_mdp_has_no_bellman_error(seed, bounds):
    made = linear_mdp_stage(num_states=4, num_actions=3, feature_dim=3, num_tasks=2, seed=seed)
    current, following = LinearValueClass(made.features, *bounds), random_next(seed)
    for stage in made.tasks:
        assert inherent_bellman_error(stage, current, following).error < 1e-9


def random_next(seed: int) -> LinearValueClass:
    """Next values that have nothing to do with the features of the stage."""
    return LinearValueClass(np.abs(normal(seed, 4, 3, 3)), 1.0, 0.5)


@pytest.mark.parametrize("seed", range(3))
def test_the_error_grows_with_the_dial_in_proportion_and_stays_below_it(seed):
    errors, bounded_errors = [], []
    for mix in DIAL:
        made = linear_mdp_stage(
            num_states=4, num_actions=3, feature_dim=3, mix=mix, seed=seed, reward_range=0.5
        )
        free = LinearValueClass(made.features)
        bounded = LinearValueClass(made.features, 1.0, 1.0)
        following = random_next(seed)
        errors.append(inherent_bellman_error(made.tasks[0], free, following).error)
        bounded_errors.append(inherent_bellman_error(made.tasks[0], bounded, following).error)
    np.testing.assert_allclose(errors, errors[-1] * np.array(DIAL), atol=1e-9)
    assert errors[-1] > 0.02
    assert (np.diff(bounded_errors) > 0).all()
    assert (np.array(bounded_errors) <= np.array(DIAL) + 1e-9).all()
    assert (np.array(errors) <= np.array(bounded_errors) + 1e-9).all()


def test_generated_stages_are_probabilities_and_belong_to_their_seed():
    sizes = {"num_states": 5, "num_actions": 2, "feature_dim": 3, "num_tasks": 2}
    first, again = (linear_mdp_stage(**sizes, mix=0.4, seed=7) for _ in range(2))
    other = linear_mdp_stage(**sizes, mix=0.4, seed=8)
    np.testing.assert_array_equal(first.tasks[1].transitions, again.tasks[1].transitions)
    assert np.abs(first.tasks[0].rewards - other.tasks[0].rewards).max() > 1e-3
    assert np.abs(first.tasks[0].rewards - first.tasks[1].rewards).max() > 1e-3
    np.testing.assert_allclose(first.features.sum(axis=-1), 1)
    assert first.tasks[0].rewards.min() >= 0 and first.tasks[0].rewards.max() <= 0.5


# Against brute force.


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    feature_dim=st.integers(2, 3),
    num_actions=st.integers(1, 2),
    bounded=st.booleans(),
)
def test_vertices_found_by_qhull_policy_by_policy_give_the_same_error(
    seed, feature_dim, num_actions, bounded
):
    (stage,), current, following = random_problem(
        seed, feature_dim=feature_dim, num_actions=num_actions, bounded=bounded
    )
    exact = inherent_bellman_error(stage, current, following).error
    assert exact == pytest.approx(error_by_greedy_policies(stage, current, following), abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bounded", [False, True])
def test_no_sample_exceeds_the_exact_error_and_the_best_comes_close(seed, bounded):
    (stage,), current, following = random_problem(seed, num_actions=3, bounded=bounded)
    worst = inherent_bellman_error(stage, current, following)
    samples = [
        naive_distance(current, naive_backup(stage, following, head))
        for head in rays(following, seed, 300)
    ]
    assert max(samples) <= worst.error + 1e-8
    assert max(samples) >= 0.95 * worst.error
    attained = naive_distance(current, naive_backup(stage, following, worst.next_head))
    assert attained == pytest.approx(worst.error, abs=1e-8)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), bounded=st.booleans())
def test_distances_solved_together_equal_one_program_each(seed, bounded):
    _, current, _ = random_problem(seed, bounded=bounded, num_actions=3, feature_dim=3)
    targets = 0.5 + normal(seed, 20, 9)
    expected = [naive_distance(current, target) for target in targets]
    np.testing.assert_allclose(current.distances(targets), expected, atol=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_the_certified_lower_bound_is_never_above_and_mostly_reaches_the_exact_error(seed):
    (stage,), current, following = random_problem(seed, num_states=4, feature_dim=3)
    exact = inherent_bellman_error(stage, current, following).error
    for num_restarts, share in ((1, 0.3), (16, 0.99)):
        found = bellman_error_lower_bound(
            stage, current, following, num_restarts=num_restarts, seed=seed
        )
        assert share * exact <= found.error <= exact + 1e-9
        backup = naive_backup(stage, following, found.next_head)
        assert naive_distance(current, backup) == pytest.approx(found.error, abs=1e-8)


def test_the_lower_bound_works_where_the_exact_value_is_refused_and_more_restarts_help():
    (stage,), current, following = random_problem(3, num_states=12, num_actions=4, feature_dim=5)
    with pytest.raises(InvalidInputError, match=r"limit of 2000000.*bellman_error_lower_bound"):
        inherent_bellman_error(stage, current, following)
    few = bellman_error_lower_bound(stage, current, following, num_restarts=1, max_steps=0)
    many = bellman_error_lower_bound(stage, current, following, num_restarts=8)
    assert 0 < few.error < many.error
    assert np.abs(many.next_head).max() <= 1 + 1e-9


@pytest.mark.parametrize("start", [0.6, -0.6])
def test_an_ascent_keeps_the_greedy_action_where_the_value_enters_with_a_minus(start):
    # The spread 2 - |t| of the tie example: downhill in |t| as long as the same action is best,
    # so one step goes to the tie. Ignoring ties it would jump across, to an error of 1/2.
    stage = MDPStage(np.eye(2)[:, None], table([[0], [2]]))
    following = LinearValueClass(table([[[1], [-1]], [[0], [0]]]), 1.0)
    constant = LinearValueClass(np.ones((2, 1, 1)))
    standing = ascend(stage, constant, following, table([start]), max_steps=0)
    assert standing.error == pytest.approx(0.7, abs=1e-12)
    assert ascend(stage, constant, following, table([start]), 1).error == pytest.approx(1.0)


@pytest.mark.parametrize("bounded", [False, True])
def test_every_piece_has_one_greedy_policy_and_together_they_hold_the_class(bounded):
    _, _, following = random_problem(4, num_actions=3, bounded=bounded)
    jobs = value_pieces(following, cuts_per_axis=1)
    values = following.values(jobs.vertices)
    greedy = values >= values.max(axis=2, keepdims=True) - 1e-9
    for inside in jobs.members:
        assert greedy[inside].all(axis=0).any(axis=1).all()
    for head in 0.7 * rays(following, 4, 20):
        policy = following.values(head[None])[0].argmax(axis=1)
        holds = [
            greedy[inside][:, np.arange(3), policy].all() and in_hull(jobs.vertices[inside], head)
            for inside in jobs.members
        ]
        assert any(holds)


def in_hull(points: np.ndarray, point: np.ndarray) -> bool:
    weights = linprog(
        np.zeros(len(points)),
        A_eq=np.vstack([points.T, np.ones(len(points))]),
        b_eq=np.append(point, 1),
    )
    return weights.status == 0


@pytest.mark.parametrize("seed", range(3))
def test_rotating_the_features_of_the_stage_changes_nothing(seed):
    (stage,), current, following = random_problem(seed, feature_dim=3)
    rotation = np.linalg.qr(normal(seed, 3, 3))[0]
    rotated = LinearValueClass(current.features @ rotation)
    first = inherent_bellman_error(stage, current, following).error
    assert inherent_bellman_error(stage, rotated, following).error == pytest.approx(first, abs=1e-9)


# Several tasks, one representation.


def test_tasks_that_fit_alone_may_not_fit_together():
    # Task 0 pays (1, 0), task 1 pays (0, 1); the representations are e_0 and e_1. Each task has
    # a perfect one, but the shared one leaves the other task at distance 1.
    still = np.ones((2, 1, 1))
    tasks = [MDPStage(still, table([[1], [0]])), MDPStage(still, table([[0], [1]]))]
    classes = [LinearValueClass(np.eye(2)[:, None, [j]]) for j in range(2)]
    following = [LinearValueClass(np.zeros((1, 1, 1)), 1.0)]
    for task in tasks:
        assert multitask_bellman_error([task], classes, following).upper < 1e-12
    together = multitask_bellman_error(tasks, classes, following)
    assert together.is_exact
    assert together.lower == pytest.approx(1.0, abs=1e-12)


def peak_between_vertices() -> tuple[list, list, list]:
    """Backups (1 + t, 1 - t), |t| <= 1: e_0 errs by |1 - t|, e_1 by |1 + t|."""
    task = MDPStage(np.eye(2)[:, None], np.ones((2, 1)))
    classes = [LinearValueClass(np.eye(2)[:, None, [j]]) for j in range(2)]
    return [task], classes, [LinearValueClass(table([[[1]], [[-1]]]), 1.0)]


def test_the_peak_of_a_minimum_lies_between_vertices_and_a_cut_finds_it():
    # min(|1 - t|, |1 + t|) is 0 at both vertices and 1 at t = 0, where the one cut falls.
    whole = multitask_bellman_error(*peak_between_vertices())
    assert (whole.lower, whole.upper) == pytest.approx((0.0, 2.0), abs=1e-12)
    assert not whole.is_exact
    cut = multitask_bellman_error(*peak_between_vertices(), cuts_per_axis=1)
    assert cut.is_exact
    assert cut.lower == pytest.approx(1.0, abs=1e-12)
    assert cut.next_heads == pytest.approx(np.zeros((1, 1)))


def multitask_problem(seed: int, num_tasks: int = 2):
    """State i leads to state i; each of three representations is blind to one state.

    Large rewards make the worst theta' differ between representations, so that the peak of the
    minimum is rarely at a vertex.
    """
    rewards = np.abs(normal(seed, num_tasks, 3, 1))
    tasks = [MDPStage(np.eye(3)[:, None], each) for each in rewards]
    current = [LinearValueClass(np.eye(3)[:, None, [j, (j + 1) % 3]]) for j in range(3)]
    features = normal(seed, 2, 3, 2, 2)
    return tasks, current, [LinearValueClass(each, 1.0) for each in features]


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
    # Each grid contains the one before.
    intervals = [multitask_bellman_error(*problem, cuts_per_axis=cuts) for cuts in (0, 1, 3, 7)]
    assert (np.diff([interval.lower for interval in intervals]) >= -1e-9).all()
    assert (np.diff([interval.upper for interval in intervals]) <= 1e-9).all()
    assert all(interval.lower <= interval.upper + 1e-9 for interval in intervals)
    assert not intervals[0].is_exact
    assert intervals[-1].upper <= 1.15 * intervals[-1].lower


@pytest.mark.parametrize("seed", range(3))
def test_a_further_representation_at_stage_h_never_raises_the_error(seed):
    tasks, current, following = multitask_problem(seed)
    ends = [
        multitask_bellman_error(tasks, current[:count], following, cuts_per_axis=1)
        for count in (1, 2, 3)
    ]
    assert ends[0].is_exact
    assert (np.diff([interval.lower for interval in ends]) <= 1e-9).all()
    assert (np.diff([interval.upper for interval in ends]) <= 1e-9).all()


@pytest.mark.parametrize("seed", range(3))
def test_one_task_and_one_representation_are_the_single_task_error(seed):
    (stage,), current, following = random_problem(seed, bounded=True)
    single = inherent_bellman_error(stage, current, following).error
    interval = multitask_bellman_error([stage], [current], [following])
    assert interval.is_exact
    assert interval.lower == pytest.approx(single, abs=1e-9)


def test_a_class_with_the_shared_truth_has_no_multitask_error():
    made = linear_mdp_stage(num_states=4, num_actions=2, feature_dim=3, num_tasks=3, seed=2)
    current = [LinearValueClass(normal(1, 4, 2, 3)), LinearValueClass(made.features, 1.0, 1.0)]
    following = [LinearValueClass(np.abs(normal(2, 4, 2, 3)), 1.0, 0.5)]
    interval = multitask_bellman_error(made.tasks, current, following)
    assert 0 <= interval.lower <= interval.upper < 1e-9


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), num_tasks=st.integers(1, 3))
def test_the_worst_joint_choice_equals_trying_them_all(seed, num_tasks):
    errors = np.abs(normal(seed, num_tasks, 5, 4))
    tasks = np.arange(num_tasks)
    joint = itertools.product(range(5), repeat=num_tasks)
    expected = max(errors[tasks, choice].max(axis=0).min() for choice in joint)
    value, choice = worst_joint_choice(list(errors))
    assert value == expected
    assert errors[tasks, choice].max(axis=0).min() == expected


# Refusals.

HALVES = np.full((2, 2, 2), 0.5)
REWARDS = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("transitions", "rewards", "message"),
    [
        (HALVES * 0.9, REWARDS, "must sum to 1, one row is off by"),
        (HALVES + table([1, -1]), REWARDS, "must not be negative"),
        (HALVES * np.nan, REWARDS, "transitions must be finite"),
        (HALVES, REWARDS + np.inf, "rewards must be finite"),
        (HALVES, REWARDS[:1], "must agree on"),
        (HALVES[0], REWARDS, r"transitions must be a non-empty numpy array.*state action next"),
        (HALVES, [[0, 0], [0, 0]], "rewards must be a non-empty numpy array.*got list"),
    ],
)
def test_a_stage_that_is_not_an_mdp_is_refused(transitions, rewards, message):
    with pytest.raises(InvalidInputError, match=message):
        MDPStage(transitions, rewards)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["head_bound", "value_range"])
def test_bounds_that_are_not_positive_are_refused(name, bad):
    with pytest.raises(InvalidInputError, match=f"{name} must be positive and finite or None"):
        LinearValueClass(HALVES, **{name: bad})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mix": 1.1}, "mix must be between 0 and 1"),
        ({"mix": float("nan")}, "mix must be between 0 and 1"),
        ({"reward_range": -0.1}, "reward_range must be between 0 and 1"),
        ({"num_tasks": 0}, "num_tasks must be at least 1"),
    ],
)
def test_a_generator_setting_out_of_range_is_refused(change, message):
    with pytest.raises(InvalidInputError, match=message):
        linear_mdp_stage(**{"num_states": 2, "num_actions": 2, "feature_dim": 2, **change})


def test_classes_that_do_not_fit_the_stage_are_refused():
    stage, fitting = MDPStage(HALVES, REWARDS), LinearValueClass(HALVES, 1.0)
    longer = LinearValueClass(np.ones((3, 2, 2)), 1.0)
    with pytest.raises(InvalidInputError, match="states and actions of the stage"):
        inherent_bellman_error(stage, longer, fitting)
    with pytest.raises(InvalidInputError, match="one row per next state"):
        bellman_error_lower_bound(stage, fitting, longer)
    with pytest.raises(InvalidInputError, match="needs a head_bound"):
        inherent_bellman_error(stage, fitting, LinearValueClass(HALVES))
    with pytest.raises(InvalidInputError, match="num_restarts must be at least 1"):
        bellman_error_lower_bound(stage, fitting, fitting, num_restarts=0)


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

"""Bellman errors of one task: by hand, by brute force, by a second exact method."""

import numpy as np
import pytest
from bellman_problems import (
    error_by_greedy_policies,
    naive_backup,
    naive_distance,
    normal,
    random_problem,
    rays,
    table,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gfucb.core.errors import InvalidInputError
from gfucb.theory.bellman import ascend, bellman_error_lower_bound, inherent_bellman_error
from gfucb.theory.linear_regions import linear_regions
from gfucb.theory.linear_values import LinearValueClass
from gfucb.theory.small_mdp import MDPStage

# Together they take seconds.
pytestmark = pytest.mark.slow

HALVES = np.full((2, 2, 2), 0.5)
REWARDS = np.zeros((2, 2))


def test_one_state_and_one_feature_have_no_error_unless_the_head_is_bounded():
    # Backups are 0.3 + theta' for theta' in [0, 0.5]. The class with phi = 1 contains them all.
    # With heads of at most 0.5 the distance to the largest, 0.8, is 0.3.
    stage = MDPStage(table([[[1]]]), table([[0.3]]))
    one = table([[[1]]])
    following = LinearValueClass(one, 0.5, 0.5)
    assert inherent_bellman_error(stage, LinearValueClass(one), following).error < 1e-12
    bounded = inherent_bellman_error(stage, LinearValueClass(one, 0.5), following)
    assert bounded.error == pytest.approx(0.3, abs=1e-12)
    assert bounded.next_head == pytest.approx([0.5])
    assert bounded.head == pytest.approx([0.5])


def test_a_constant_feature_errs_by_half_the_range_of_the_rewards():
    # Both states have the same next state, so backups are (c, 1 + c), at 1/2 from any constant.
    stage = MDPStage(table([[[1, 0]], [[1, 0]]]), table([[0], [1]]))
    constant = np.ones((2, 1, 1))
    worst = inherent_bellman_error(
        stage, LinearValueClass(constant), LinearValueClass(constant, 1.0)
    )
    assert worst.error == pytest.approx(0.5, abs=1e-12)


def test_backups_use_the_best_next_action():
    # State i leads to state i. V'(0) = max(t, -t) = |t| and V'(1) = t / 2 with |t| <= 1: the
    # range is 3/2 at t = -1, so the error is 3/4. Taking the first action would give 1/4.
    stage = MDPStage(np.eye(2)[:, None], np.zeros((2, 1)))
    following = LinearValueClass(table([[[1], [-1]], [[0.5], [0.5]]]), 1.0)
    worst = inherent_bellman_error(stage, LinearValueClass(np.ones((2, 1, 1))), following)
    assert worst.error == pytest.approx(0.75, abs=1e-12)
    assert worst.next_head == pytest.approx([-1])


def test_the_worst_next_values_can_be_a_tie_inside_the_class():
    # V'(0) = |t|, V'(1) = 0, rewards (0, 2): the range 2 - |t| is largest at the tie t = 0, where
    # the error is 1; at the ends of the class it is 1/2.
    stage = MDPStage(np.eye(2)[:, None], table([[0], [2]]))
    following = LinearValueClass(table([[[1], [-1]], [[0], [0]]]), 1.0)
    worst = inherent_bellman_error(stage, LinearValueClass(np.ones((2, 1, 1))), following)
    assert worst.error == pytest.approx(1.0, abs=1e-12)
    assert worst.next_head == pytest.approx([0])


def test_one_hot_features_have_no_error_and_a_missing_feature_has():
    # Tabular features represent any backup. Without the feature of state 1 the value there is 0,
    # and the largest backup of state 1 is 0.25 + max V' = 0.25 + 0.5.
    stage = MDPStage(table([[[1, 0]], [[0, 1]]]), table([[0.1], [0.25]]))
    tabular = np.eye(2)[:, None]
    following = LinearValueClass(tabular, 0.5, 0.5)
    assert inherent_bellman_error(stage, LinearValueClass(tabular), following).error < 1e-12
    incomplete = LinearValueClass(tabular[..., :1])
    assert inherent_bellman_error(stage, incomplete, following).error == pytest.approx(0.75)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    feature_dim=st.integers(2, 3),
    num_actions=st.integers(1, 2),
    bounded=st.booleans(),
)
def test_the_error_equals_that_of_qhull_vertices_for_each_policy(
    seed, feature_dim, num_actions, bounded
):
    (stage,), current, following = random_problem(
        seed, feature_dim=feature_dim, num_actions=num_actions, bounded=bounded
    )
    exact = inherent_bellman_error(stage, current, following).error
    assert exact == pytest.approx(error_by_greedy_policies(stage, current, following), abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bounded", [False, True])
def test_no_sample_exceeds_the_exact_error_and_the_largest_is_close(seed, bounded):
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


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), bounded=st.booleans())
def test_joint_distances_equal_one_linear_program_each(seed, bounded):
    _, current, _ = random_problem(seed, bounded=bounded, num_actions=3, feature_dim=3)
    targets = 0.5 + normal(seed, 20, 9)
    expected = [naive_distance(current, target) for target in targets]
    np.testing.assert_allclose(current.distances(targets), expected, atol=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_the_lower_bound_never_exceeds_the_exact_error_and_is_close_with_restarts(seed):
    (stage,), current, following = random_problem(seed, num_states=4, feature_dim=3)
    exact = inherent_bellman_error(stage, current, following).error
    for num_restarts, share in ((1, 0.3), (16, 0.99)):
        found = bellman_error_lower_bound(
            stage, current, following, num_restarts=num_restarts, seed=seed
        )
        assert share * exact <= found.error <= exact + 1e-9
        backup = naive_backup(stage, following, found.next_head)
        assert naive_distance(current, backup) == pytest.approx(found.error, abs=1e-8)


def test_the_lower_bound_works_at_sizes_that_the_exact_value_refuses():
    (stage,), current, following = random_problem(3, num_states=12, num_actions=4, feature_dim=5)
    with pytest.raises(InvalidInputError, match=r"limit of 2000000.*bellman_error_lower_bound"):
        inherent_bellman_error(stage, current, following)
    few = bellman_error_lower_bound(stage, current, following, num_restarts=1, max_steps=0)
    many = bellman_error_lower_bound(stage, current, following, num_restarts=8)
    assert 0 < few.error < many.error
    assert np.abs(many.next_head).max() <= 1 + 1e-9


@pytest.mark.parametrize("start", [0.6, -0.6])
def test_an_ascent_preserves_the_greedy_action_where_its_weight_is_negative(start):
    # The range 2 - |t| of the example with a tie decreases in |t| as long as the same action is
    # best, so one step ends at the tie. A step that ignores ties ends at an error of 1/2.
    stage = MDPStage(np.eye(2)[:, None], table([[0], [2]]))
    following = LinearValueClass(table([[[1], [-1]], [[0], [0]]]), 1.0)
    constant = LinearValueClass(np.ones((2, 1, 1)))
    unmoved = ascend(stage, constant, following, table([start]), max_steps=0)
    assert unmoved.error == pytest.approx(0.7, abs=1e-12)
    assert ascend(stage, constant, following, table([start]), 1).error == pytest.approx(1.0)


@pytest.mark.parametrize("bounded", [False, True])
def test_every_region_has_one_greedy_policy_and_their_union_is_the_class(bounded):
    _, _, following = random_problem(4, num_actions=3, bounded=bounded)
    regions = linear_regions(following, cuts_per_axis=1)
    values = following.values(regions.vertices)
    greedy = values >= values.max(axis=2, keepdims=True) - 1e-9
    for inside in regions.members:
        assert greedy[inside].all(axis=0).any(axis=1).all()
    for head in 0.7 * rays(following, 4, 20):
        policy = following.values(head[None])[0].argmax(axis=1)
        contained = [
            greedy[inside][:, np.arange(3), policy].all()
            and in_hull(regions.vertices[inside], head)
            for inside in regions.members
        ]
        assert any(contained)


def in_hull(points: np.ndarray, point: np.ndarray) -> bool:
    weights = linprog(
        np.zeros(len(points)),
        A_eq=np.vstack([points.T, np.ones(len(points))]),
        b_eq=np.append(point, 1),
    )
    return weights.status == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_error_is_invariant_to_rotations_of_the_features(seed):
    (stage,), current, following = random_problem(seed, feature_dim=3)
    rotation = np.linalg.qr(normal(seed, 3, 3))[0]
    rotated = LinearValueClass(current.features @ rotation)
    first = inherent_bellman_error(stage, current, following).error
    assert inherent_bellman_error(stage, rotated, following).error == pytest.approx(first, abs=1e-9)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["head_bound", "value_range"])
def test_bounds_that_are_not_positive_are_refused(name, bad):
    with pytest.raises(InvalidInputError, match=f"{name} must be positive and finite or None"):
        LinearValueClass(HALVES, **{name: bad})


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

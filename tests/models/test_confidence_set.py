from dataclasses import replace

import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.estimation import best_on
from gfucb.exploration import ExactFinite
from gfucb.models import (
    ConfidenceSet,
    HeadPenalty,
    LinearRepresentation,
    MultiheadFunction,
    MultitaskDataset,
)

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("squared_radius", [0.0, 1e-6, 1.0])
def test_the_center_is_in_its_own_set(finite_case, seed, squared_radius):
    case = finite_case(seed)
    assert case.confidence_set(squared_radius).squared_distance(case.center) == 0
    assert case.confidence_set(squared_radius).contains(case.center)


def test_a_center_with_other_heads_than_the_ridge_fit_is_in_its_own_set(finite_case):
    case = finite_case(0)
    shifted = case.center.with_heads(case.center.heads + 0.3)
    same_function_other_object = replace(
        shifted, representation=lambda x: shifted.representation(x)
    )
    confidence_set = ConfidenceSet(shifted, case.data, 0.0, ridge=0.5)
    assert confidence_set.squared_distance(same_function_other_object) == pytest.approx(
        0, abs=1e-20
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_radius_zero_leaves_only_the_center(finite_case, seed):
    case = finite_case(seed)
    point = case.confidence_set(0.0)
    inputs, tasks = case.action_sets().candidates[:, 0], case.action_sets().tasks
    expected = case.center.values(inputs, tasks)
    torch.testing.assert_close(point.upper_values(inputs, tasks), expected)
    torch.testing.assert_close(point.lower_values(inputs, tasks), expected)
    for member in case.environment.representation_class.members:
        ellipsoid = point.ellipsoid(member)
        assert (ellipsoid is not None) == (member is case.center.representation)


@pytest.mark.parametrize("seed", SEEDS)
def test_sets_grow_with_the_radius(finite_case, seed):
    case = finite_case(seed)
    inputs, tasks = case.action_sets().candidates[:, 0], case.action_sets().tasks
    widths = [case.confidence_set(r).widths(inputs, tasks) for r in (0.1, 0.5, 2.0)]
    assert bool((widths[0] <= widths[1]).all() and (widths[1] <= widths[2]).all())
    distance = case.confidence_set(1.0).squared_distance(case.environment.true_function)
    assert case.confidence_set(distance * 1.001).contains(case.environment.true_function)
    assert not case.confidence_set(distance * 0.999).contains(case.environment.true_function)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ellipsoid_of_every_representation_is_the_set_on_that_representation(finite_case, seed):
    case, generator = finite_case(seed), random_stream(seed, "directions")
    confidence_set = case.confidence_set(3.0)
    for member in case.environment.representation_class.members:
        ellipsoid = confidence_set.ellipsoid(member)
        if ellipsoid is None:
            continue
        directions = torch.randn(ellipsoid.centers.shape, generator=generator, dtype=torch.float64)
        function = replace(
            case.center, representation=member, heads=ellipsoid.farthest_heads(directions)
        )
        assert confidence_set.squared_distance(function) == pytest.approx(3.0, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_upper_values_are_reached_by_a_member_and_exceeded_by_none(finite_case, seed):
    case, generator = finite_case(seed), random_stream(seed, "members")
    confidence_set = case.confidence_set(2.0)
    x, task = case.action_sets().candidates[:1, 0], torch.tensor([0])
    upper = float(confidence_set.upper_values(x, task))
    lower = float(confidence_set.lower_values(x, task))
    reached = []
    for member in case.environment.representation_class.members:
        ellipsoid = confidence_set.ellipsoid(member)
        if ellipsoid is None:
            continue
        for _ in range(50):
            raw = torch.randn(ellipsoid.centers.shape, generator=generator, dtype=torch.float64)
            heads = ellipsoid.farthest_heads(raw)
            value = float(replace(case.center, representation=member, heads=heads).values(x, task))
            assert lower - 1e-9 <= value <= upper + 1e-9
        direction = torch.zeros_like(ellipsoid.centers)
        direction[0] = member(x)[0].detach()
        best = replace(
            case.center, representation=member, heads=ellipsoid.farthest_heads(direction)
        )
        assert confidence_set.contains(best)
        reached.append(float(best.values(x, task)))
    assert max(reached) == pytest.approx(upper, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_joint_width_is_the_difference_of_the_exact_maximum_and_minimum(finite_case, seed):
    case = finite_case(seed, num_actions=1)
    confidence_set, action_sets = case.confidence_set(1.5), case.action_sets()
    up = float(ExactFinite()(confidence_set, action_sets).values.sum())
    # Downwards is upwards for the mirrored problem: all targets and heads negated.
    mirrored = MultitaskDataset(4, torch.Size([6]), torch.float64)
    mirrored.append(case.data.tasks, case.data.inputs, -case.data.targets)
    center = case.center.with_heads(-case.center.heads)
    below = replace(confidence_set, center=center, data=mirrored)
    down = -float(ExactFinite()(below, action_sets).values.sum())
    inputs = action_sets.candidates[:, 0]
    width = confidence_set.joint_width(inputs, action_sets.tasks)
    assert width == pytest.approx(up - down, rel=1e-9)
    assert width <= float(confidence_set.widths(inputs, action_sets.tasks).sum()) + 1e-9


def test_without_ridge_the_distance_is_the_papers_sum_over_samples(finite_case):
    case = finite_case(1)
    plain = case.confidence_set(1.0, ridge=0.0)
    by_hand = 0.0
    for x, task in zip(case.data.inputs, case.data.tasks, strict=True):
        mine = case.environment.true_function.values(x[None], task[None])
        by_hand += float((mine - case.center.values(x[None], task[None])) ** 2)
    assert plain.squared_distance(case.environment.true_function) == pytest.approx(
        by_hand, rel=1e-12
    )
    with pytest.raises(InvalidInputError, match="ridge > 0"):
        plain.ellipsoid()


def test_the_order_of_samples_does_not_matter(finite_case):
    case = finite_case(2)
    order = torch.randperm(len(case.data), generator=random_stream(2, "order"))
    shuffled = MultitaskDataset(case.data.num_tasks, torch.Size([6]), torch.float64)
    shuffled.append(case.data.tasks[order], case.data.inputs[order], case.data.targets[order])
    inputs, tasks = case.action_sets().candidates[:, 0], case.action_sets().tasks
    members = case.environment.representation_class.members
    other = ConfidenceSet(case.center, shuffled, 1.0, ridge=0.5, members=members)
    torch.testing.assert_close(
        other.upper_values(inputs, tasks), case.confidence_set(1.0).upper_values(inputs, tasks)
    )


def test_rotating_the_features_of_one_member_changes_nothing(finite_case):
    """The set contains functions: it does not depend on the coordinates of the features."""
    case = finite_case(3)
    members = list(case.environment.representation_class.members)
    raw = torch.randn(2, 2, generator=random_stream(3, "rotation"), dtype=torch.float64)
    rotation = torch.linalg.qr(raw).Q
    turned = [m if m is case.center.representation else _rotated(m, rotation) for m in members]
    inputs, tasks = case.action_sets().candidates[:, 0], case.action_sets().tasks
    torch.testing.assert_close(
        case.confidence_set(4.0, members=turned).upper_values(inputs, tasks),
        case.confidence_set(4.0).upper_values(inputs, tasks),
    )


def _rotated(member, rotation):
    return lambda x: member(x) @ rotation


def test_a_set_without_data_is_bounded_by_its_ridge():
    data = MultitaskDataset(2, torch.Size([3]), torch.float64)
    phi = LinearRepresentation(torch.eye(2, 3, dtype=torch.float64))
    center = MultiheadFunction(phi, torch.zeros(2, 2, dtype=torch.float64))
    confidence_set = ConfidenceSet(center, data, 4.0, ridge=2.0, members=[phi])
    x = torch.tensor([[3.0, 4.0, 0.0]], dtype=torch.float64)
    # sup <w, phi> over 2 |w|^2 <= 4 is sqrt(2) |phi|.
    upper = float(confidence_set.upper_values(x, torch.tensor([1])))
    assert upper == pytest.approx(5 * 2**0.5)


def test_a_norm_bound_is_part_of_membership(finite_case):
    case = finite_case(0)
    long = float(case.center.heads.norm(dim=1).max())
    assert case.confidence_set(1.0, head_norm_bound=1.01 * long).contains(case.center)
    assert not case.confidence_set(1.0, head_norm_bound=0.99 * long).contains(case.center)


def test_values_are_clipped_to_the_range_and_widths_with_them(finite_case):
    case = finite_case(0)
    case.center = replace(case.center, value_range=(-0.2, 0.2))
    inputs, tasks = case.action_sets().candidates[:, 0], case.action_sets().tasks
    upper = case.confidence_set(50.0).upper_values(inputs, tasks)
    assert bool((upper == 0.2).all())
    assert bool((case.confidence_set(50.0).widths(inputs, tasks) <= 0.4 + 1e-12).all())


def test_exact_values_need_a_class_that_can_be_listed(finite_case):
    case = finite_case(0)
    with pytest.raises(InvalidInputError, match="members"):
        case.confidence_set(1.0, members=None).upper_values(case.data.inputs, case.data.tasks)


@pytest.mark.parametrize("name", ["squared_radius", "ridge"])
def test_negative_radii_and_ridges_are_refused(finite_case, name):
    case = finite_case(0)
    with pytest.raises(InvalidInputError, match=name):
        ConfidenceSet(
            **{"center": case.center, "data": case.data, "squared_radius": 1.0, name: -1.0}
        )


def test_more_data_never_widens_a_set_around_the_same_center(finite_case):
    case = finite_case(4, num_rounds=3)
    phi = case.center.representation
    before = ConfidenceSet(case.center, case.data.snapshot(), 1.0, ridge=0.5, members=[phi])
    inputs, tasks = case.action_sets().candidates[:, 0], case.action_sets().tasks
    widths = before.widths(inputs, tasks)
    case.data.append(tasks, inputs, torch.zeros(len(tasks)))
    refitted = best_on(phi, case.data, case.center, HeadPenalty(0.5))
    after = ConfidenceSet(refitted, case.data, 1.0, ridge=0.5, members=[phi])
    assert bool((after.widths(inputs, tasks) < widths).all())


def test_membership_is_relative_to_the_radius_however_small(finite_case):
    case = finite_case(1)
    distance = case.confidence_set(1.0).squared_distance(case.environment.true_function)
    near = case.center.with_heads(case.center.heads + 1e-6)
    tiny = case.confidence_set(0.0).squared_distance(near)
    assert 0 < tiny < 1e-9 < distance
    assert case.confidence_set(1.01 * tiny).contains(near)
    assert not case.confidence_set(0.9 * tiny).contains(near)

"""Optimism over the heads of one fixed representation, in closed form."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.linalg import first_best
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Prediction, Selection
from gfucb.core.validation.settings import validate_flag
from gfucb.exploration.bounded_values import bounded_bonuses
from gfucb.exploration.joint_choice import choose_jointly
from gfucb.exploration.rarely_tried import required_tries
from gfucb.models import ConfidenceSet, HeadEllipsoid, MultiheadFunction
from gfucb.models.inverse_grams import parts_of_rows
from gfucb.models.posterior_set import PosteriorEllipsoid

# Combinations of actions that are listed for a task with several rows.
LARGEST_GROUP = 10_000
# Rows of one task are decided in at most so many parts, one after another.
MOST_PARTS = 32


@dataclass(frozen=True)
class LastLayer(ActionSelector):
    """The most optimistic heads on the representation of the fit.

        max over actions and W of  sum_row <w_task, phi(x_row)>
        s.t.  sum_i |w_i - center_i|^2_{V_i} <= squared_radius,   V_i = Phi_i^T Phi_i + ridge I

    The maximum is  sum_row mean_row + sqrt(squared_radius * sum_i |g_i|^2_{V_i^-1}),  where g_i
    is the sum of the chosen features of task i. It is exact for a fixed representation, and
    ignores the uncertainty of the representation. Cost: M solves of size k and the joint choice,
    independent of the number of samples.

    Args:
        joint: one radius for all rows together, as in Algorithm 1. False gives each row the
            whole radius, which is LinUCB on the features of the fit. The sum of the bonuses is
            then up to sqrt(number of rows) larger than any single member allows.
    """

    joint: bool = True

    def __post_init__(self) -> None:
        validate_flag(self.joint, "joint")

    @property
    def returns_member(self) -> bool:
        """Rows with a radius of their own have no common function."""
        return self.joint

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the actions and the heads with the largest sum of values."""
        center, ellipsoid = confidence_set.center, center_ellipsoid(confidence_set)
        if self.joint:
            return optimistic_heads(center, ellipsoid, action_sets, confidence_set.squared_radius)
        features = action_sets.features(center.representation)
        values = center.offset + ellipsoid.center_values(features, action_sets.tasks)
        values = values + _bonuses(ellipsoid, features, values, action_sets)
        actions = action_sets.best_actions(values)
        return Selection(
            function=None,
            actions=actions,
            values=values.gather(1, actions[:, None]).squeeze(1),
            squared_distance=ellipsoid.squared_radius,
            squared_radius=confidence_set.squared_radius,
            prediction=prediction_of(center, ellipsoid, features, actions, action_sets),
        )

    def select_batched(
        self, means: Tensor, squared_widths: Tensor, squared_radii: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Actions and bonuses [replica, row], see `BatchedActionSelector`."""
        radii = squared_radii[:, None]
        if not self.joint:
            actions = first_best(means + (radii[..., None] * squared_widths).sqrt())
            chosen = squared_widths.gather(2, actions[..., None]).squeeze(2)
            return actions, (radii * chosen).sqrt()
        problems = zip(
            means.cpu().numpy(), squared_widths.cpu().numpy(), squared_radii.tolist(), strict=True
        )
        options = np.stack([choose_jointly(*problem).options for problem in problems])
        actions = torch.as_tensor(options, device=means.device)
        chosen = squared_widths.gather(2, actions[..., None]).squeeze(2)
        total = chosen.sum(1, keepdim=True).clamp_min(torch.finfo(chosen.dtype).tiny)
        return actions, chosen * (radii / total).sqrt()


def _bonuses(
    ellipsoid: HeadEllipsoid, features: Tensor, values: Tensor, action_sets: ActionSets
) -> Tensor:
    """Bonuses [row, action] of rows that each have the whole radius.

    Rows of one task do not all explore the same action: after some of them the others expect the
    mean rewards of what these have chosen, as if rows were decided one after another (GP-BUCB,
    Desautels et al. 2014).
    """
    if not isinstance(ellipsoid, PosteriorEllipsoid):
        widths = ellipsoid.bonus_widths(features, action_sets.tasks)
        return (ellipsoid.squared_radius * widths).sqrt()
    tasks = action_sets.tasks
    values = values.masked_fill(~action_sets.available, -torch.inf)
    parts = parts_of_rows(tasks, MOST_PARTS, ellipsoid.shards)
    if len(parts) == 1:
        return _own_bonuses(ellipsoid, features, values, tasks)
    bonuses = torch.zeros_like(values)
    expected: PosteriorEllipsoid = ellipsoid
    for rows in parts:
        own = _own_bonuses(expected, features[rows], values[rows], tasks[rows])
        bonuses[rows] = own
        chosen = features[rows, first_best(values[rows] + own)]
        expected = expected.expecting(chosen, tasks[rows])
    return bonuses


def _own_bonuses(
    ellipsoid: PosteriorEllipsoid, features: Tensor, values: Tensor, tasks: Tensor
) -> Tensor:
    """Bonuses [row, action] of rows that are decided at once, with those of rarely tried actions.

    Rows share what they have to try, see `required_tries`.
    """
    posterior, radius = ellipsoid.posterior, ellipsoid.squared_radius
    shown, widths = ellipsoid.parted_widths(features, tasks)
    own = (radius * widths).sqrt()
    if ellipsoid.limits is not None:
        least = (radius * shown.clamp_min(0)).sqrt()
        own = bounded_bonuses(values, own, least, ellipsoid.limits)
    if not bool(posterior.missing_tries.any()):
        return own
    untried, lacking = posterior.untried_widths(features), posterior.lacking(features)
    bonuses = (radius * (widths + untried)).sqrt()
    required = required_tries(*lacking, values, bonuses, tasks, ellipsoid.shards)
    return torch.where(required, bonuses, own)


def center_ellipsoid(confidence_set: ConfidenceSet) -> HeadEllipsoid:
    """The heads allowed on the representation of the center."""
    ellipsoid = confidence_set.ellipsoid()
    if ellipsoid is None:
        raise InvalidInputError("the confidence set does not contain its own center")
    return ellipsoid


def optimistic_heads(
    template: MultiheadFunction,
    ellipsoid: HeadEllipsoid,
    action_sets: ActionSets,
    squared_radius: float,
) -> Selection:
    """Best actions and heads in `ellipsoid`, on the representation of `template`."""
    features = action_sets.features(template.representation)
    actions, is_exact = joint_actions(ellipsoid, features, action_sets)
    chosen = features[torch.arange(len(actions)), actions]
    heads, squared_distance = ellipsoid.farthest(chosen, action_sets.tasks)
    function = template.with_heads(heads)
    rest = squared_radius - ellipsoid.squared_radius
    return Selection(
        function=function,
        actions=actions,
        values=function.values_of_features(chosen, action_sets.tasks),
        squared_distance=rest + squared_distance,
        squared_radius=squared_radius,
        # With a norm bound the actions maximise an upper bound of the value only.
        is_exact=is_exact and ellipsoid.norm_bound is None,
        prediction=prediction_of(template, ellipsoid, features, actions, action_sets),
    )


def prediction_of(
    template: MultiheadFunction,
    ellipsoid: HeadEllipsoid,
    features: Tensor,
    actions: Tensor,
    action_sets: ActionSets,
) -> Prediction:
    """Mean and unit variance of the chosen actions [row] under the heads in `ellipsoid`."""
    chosen, tasks = features[torch.arange(len(actions)), actions], action_sets.tasks
    mean = template.offset + ellipsoid.center_values(chosen.unsqueeze(1), tasks).squeeze(1)
    return ellipsoid.prediction(mean, chosen, tasks)


def joint_actions(
    ellipsoid: HeadEllipsoid, features: Tensor, action_sets: ActionSets
) -> tuple[Tensor, bool]:
    """Actions [row] of the best tuple, and whether it is proven to be the best."""
    means = ellipsoid.center_values(features, action_sets.tasks).masked_fill(
        ~action_sets.available, -torch.inf
    )
    widths = ellipsoid.squared_widths(features, action_sets.tasks)
    if len(action_sets.tasks.unique()) == len(action_sets.tasks):
        choice = choose_jointly(
            means.cpu().numpy(), widths.cpu().numpy(), ellipsoid.squared_radius, ellipsoid.shards
        )
        return torch.as_tensor(choice.options, device=means.device), choice.is_exact
    return _joint_actions_of_repeated_tasks(ellipsoid, features, means, widths, action_sets)


def _joint_actions_of_repeated_tasks(
    ellipsoid: HeadEllipsoid,
    features: Tensor,
    means: Tensor,
    widths: Tensor,
    action_sets: ActionSets,
) -> tuple[Tensor, bool]:
    """The same where a task has several rows.

    Rows of one task share its head, so their combinations of actions form one group of options.
    If a task has more than `LARGEST_GROUP` combinations, only the actions with the largest upper
    values in each row are combined, and the result is not exact.
    """
    upper_values = means + (ellipsoid.squared_radius * widths).sqrt()
    groups = _rows_by_task(action_sets.tasks)
    combinations, is_exact = [], True
    for rows in groups:
        available = [action_sets.available[row].nonzero().squeeze(1).tolist() for row in rows]
        if math.prod(len(actions) for actions in available) > LARGEST_GROUP:
            is_exact = False
            available = _shortlists(upper_values[rows], available)
        combinations.append(torch.tensor(list(itertools.product(*available))))

    shape = (len(groups), max(len(c) for c in combinations))
    group_means, group_widths = np.full(shape, -np.inf), np.zeros(shape)
    for group, (rows, actions) in enumerate(zip(groups, combinations, strict=True)):
        group_means[group, : len(actions)] = means[rows, actions].sum(1).cpu()
        total = features[rows, actions].sum(1).unsqueeze(0)
        squared_widths = ellipsoid.squared_widths(total, action_sets.tasks[rows[:1]])
        group_widths[group, : len(actions)] = squared_widths.squeeze(0).cpu()
    choice = choose_jointly(group_means, group_widths, ellipsoid.squared_radius, ellipsoid.shards)
    chosen = torch.empty_like(action_sets.tasks)
    for rows, actions, option in zip(groups, combinations, choice.options, strict=True):
        chosen[rows] = actions[option].to(chosen.device)
    return chosen, is_exact and choice.is_exact


def _rows_by_task(tasks: Tensor) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for row, task in enumerate(tasks.tolist()):
        groups.setdefault(task, []).append(row)
    return list(groups.values())


def _shortlists(upper_values: Tensor, available: list[list[int]]) -> list[list[int]]:
    """The actions of each row with the largest upper values, few enough to list all tuples."""
    length = max(1, int(LARGEST_GROUP ** (1 / len(available))))
    return [
        sorted(actions, key=lambda a: -float(upper_values[row, a]))[:length]
        for row, actions in enumerate(available)
    ]

"""Optimism over the heads of one fixed representation, in closed form."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import ActionSets, Prediction, Selection
from gfucb.exploration.joint_choice import choose_jointly
from gfucb.models import ConfidenceSet, HeadEllipsoid, MultiheadFunction

# Combinations of actions listed for one task that stands several times in a action_sets.
LARGEST_GROUP = 10_000


@dataclass(frozen=True)
class LastLayer:
    """The most optimistic heads on the center's representation.

        max over actions and W of  sum_e <w_task, phi(x_e)>
        s.t.  sum_i |w_i - center_i|^2_{V_i} <= squared_radius,   V_i = Phi_i^T Phi_i + ridge I

    whose value is  sum_e mean_e + sqrt(squared_radius * sum_i |g_i|^2_{V_i^-1}),  g_i the sum
    of the chosen features of task i. Exact for a fixed representation. It is blind to what is
    not known of the representation itself. Cost: M solves of size k and the joint choice,
    whatever the number of samples.

    Args:
        joint: one radius for all entries together, as in Algorithm 1. False gives each entry
            the whole radius, as one task alone would have it: the sum of the bonuses is then
            up to sqrt(number of entries) larger than any one member allows.
    """

    joint: bool = True

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Choose actions, and the heads that bonus_scale most for them."""
        center = confidence_set.center
        ellipsoid = confidence_set.ellipsoid()
        if ellipsoid is None:
            raise InvalidInputError("the confidence set is empty around its own center")
        if self.joint:
            return optimistic_heads(center, ellipsoid, action_sets, confidence_set.squared_radius)
        features = action_sets.features(center.representation)
        widths = ellipsoid.squared_widths(features, action_sets.tasks)
        values = center.offset + ellipsoid.center_values(features, action_sets.tasks)
        values = values + (ellipsoid.squared_radius * widths).sqrt()
        actions = action_sets.best_actions(values)
        return Selection(
            function=center,
            actions=actions,
            values=values.gather(1, actions[:, None]).squeeze(1),
            squared_distance=ellipsoid.squared_radius,
            squared_radius=confidence_set.squared_radius,
            prediction=prediction_of(center, ellipsoid, features, actions, action_sets),
        )


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
    directions = torch.zeros_like(ellipsoid.centers).index_add(0, action_sets.tasks, chosen)
    function = template.with_heads(ellipsoid.farthest_heads(directions))
    rest = squared_radius - ellipsoid.squared_radius
    return Selection(
        function=function,
        actions=actions,
        values=function.values_of_features(chosen, action_sets.tasks),
        squared_distance=rest + ellipsoid.squared_distance(function.heads),
        squared_radius=squared_radius,
        # With a norm bound the actions were chosen by an upper bound of their value.
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
    """What the middle of `ellipsoid` and its widths prediction of the chosen actions [row]."""
    chosen = features[torch.arange(len(actions)), actions].unsqueeze(1)
    return Prediction(
        template.offset + ellipsoid.center_values(chosen, action_sets.tasks).squeeze(1),
        ellipsoid.squared_widths(chosen, action_sets.tasks).squeeze(1),
    )


def joint_actions(
    ellipsoid: HeadEllipsoid, features: Tensor, action_sets: ActionSets
) -> tuple[Tensor, bool]:
    """Actions [row] of the best tuple, and whether it is certainly the best."""
    means = ellipsoid.center_values(features, action_sets.tasks).masked_fill(
        ~action_sets.available, -torch.inf
    )
    widths = ellipsoid.squared_widths(features, action_sets.tasks)
    if len(action_sets.tasks.unique()) == len(action_sets.tasks):
        choice = choose_jointly(means.cpu().numpy(), widths.cpu().numpy(), ellipsoid.squared_radius)
        return torch.as_tensor(choice.options, device=means.device), choice.is_exact
    return _joint_actions_of_repeated_tasks(ellipsoid, features, means, widths, action_sets)


def _joint_actions_of_repeated_tasks(
    ellipsoid: HeadEllipsoid,
    features: Tensor,
    means: Tensor,
    widths: Tensor,
    action_sets: ActionSets,
) -> tuple[Tensor, bool]:
    """Entries of one task share its heads, so their combinations are listed as one group.

    A task that stands so often that the list is too long keeps, in each entry, the actions
    that look best alone; the answer is then marked as not certain.
    """
    solo = means + (ellipsoid.squared_radius * widths).sqrt()
    groups = _entries_by_task(action_sets.tasks)
    combinations, is_exact = [], True
    for entries in groups:
        offered = [action_sets.available[e].nonzero().squeeze(1).tolist() for e in entries]
        if math.prod(len(actions) for actions in offered) > LARGEST_GROUP:
            is_exact = False
            offered = _shortlists(solo[entries], offered)
        combinations.append(torch.tensor(list(itertools.product(*offered))))

    shape = (len(groups), max(len(c) for c in combinations))
    group_means, group_widths = np.full(shape, -np.inf), np.zeros(shape)
    for group, (entries, actions) in enumerate(zip(groups, combinations, strict=True)):
        group_means[group, : len(actions)] = means[entries, actions].sum(1).cpu()
        total = features[entries, actions].sum(1).unsqueeze(0)
        squared_widths = ellipsoid.squared_widths(total, action_sets.tasks[entries[:1]])
        group_widths[group, : len(actions)] = squared_widths.squeeze(0).cpu()
    choice = choose_jointly(group_means, group_widths, ellipsoid.squared_radius)
    chosen = torch.empty_like(action_sets.tasks)
    for entries, actions, option in zip(groups, combinations, choice.options, strict=True):
        chosen[entries] = actions[option].to(chosen.device)
    return chosen, is_exact and choice.is_exact


def _entries_by_task(tasks: Tensor) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for entry, task in enumerate(tasks.tolist()):
        groups.setdefault(task, []).append(entry)
    return list(groups.values())


def _shortlists(solo: Tensor, offered: list[list[int]]) -> list[list[int]]:
    """The most promising actions of each entry, few enough for all combinations to be listed."""
    length = max(1, int(LARGEST_GROUP ** (1 / len(offered))))
    return [
        sorted(actions, key=lambda a: -float(solo[row, a]))[:length]
        for row, actions in enumerate(offered)
    ]

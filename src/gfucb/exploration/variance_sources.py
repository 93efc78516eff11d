"""Where the uncertainty of every action comes from."""

from __future__ import annotations

import torch

from gfucb.core.action_sets import ActionSets
from gfucb.core.protocols import ActionSelector
from gfucb.exploration.last_layer import center_ellipsoid
from gfucb.models import ConfidenceSet
from gfucb.models.posterior_set import PosteriorSet
from gfucb.models.reward_weights import VarianceParts, posterior_variance_parts


def variance_parts(
    confidence_set: ConfidenceSet, action_sets: ActionSets, selector: ActionSelector
) -> VarianceParts:
    """The unit variances [row, action] that a selector uses, by their sources.

    Selectors that include the weights of a network report the part of chosen actions, so they are
    called once for each action. All others vary the heads alone.
    """
    features = action_sets.features(confidence_set.center.representation)
    if isinstance(confidence_set, PosteriorSet):
        counts = None if selector.joint else confidence_set.growing_counts
        return posterior_variance_parts(
            confidence_set.posterior, features, action_sets.tasks, counts
        )
    if selector.weight_statistics is not None:
        found = _parts_of_selector(confidence_set, action_sets, selector)
        if found is not None:
            return found
    head = center_ellipsoid(confidence_set).squared_widths(features, action_sets.tasks)
    return VarianceParts(head, torch.zeros_like(head), torch.zeros_like(head))


def _parts_of_selector(
    confidence_set: ConfidenceSet, action_sets: ActionSets, selector: ActionSelector
) -> VarianceParts | None:
    totals, shared = [], []
    for action in range(action_sets.available.shape[1]):
        only = torch.full_like(action_sets.tasks, action)
        selection = selector(confidence_set, action_sets.restricted_to(only))
        if selection.prediction is None or selection.representation_widths is None:
            return None
        totals.append(selection.prediction.variance)
        shared.append(selection.representation_widths)
    total = torch.stack(totals, dim=1)
    of_weights = torch.stack(shared, dim=1).minimum(total)
    return VarianceParts(total - of_weights, of_weights, torch.zeros_like(total))

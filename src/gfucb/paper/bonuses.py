"""Exploration bonuses at test images: optimistic value minus fit, for any action selector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.stats import spearmanr
from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.bandits.bandit_settings import default_radius
from gfucb.core.action_sets import ActionSets
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Prediction
from gfucb.estimation.calibration import Calibration
from gfucb.exploration import GradientBonus, LastLayer, Linearised
from gfucb.models import ConfidenceSet, MultitaskDataset

# Selectors that give each row of a batch the whole radius, so one call serves many images.
BATCHED_SELECTORS: Mapping[str, ActionSelector] = {
    "last layer": LastLayer(joint=False),
    "linearised": Linearised(joint=False),
    "gradient": GradientBonus(),
}


@dataclass(frozen=True, eq=False)
class Bonuses:
    """Errors and bonuses of a fit at images, [image] each.

    Attributes:
        error: true mean reward minus fit.
        bonus: optimistic value minus fit, not clipped.
        distance: squared distance of the optimistic function, over the squared radius.
    """

    error: Tensor
    bonus: Tensor
    distance: Tensor


def batched_bonuses(
    selector: ActionSelector,
    confidence_set: ConfidenceSet,
    images: Tensor,
    task: int,
    true_means: Tensor,
) -> Bonuses:
    """Bonuses of a selector of `BATCHED_SELECTORS` for one task.

    Args:
        selector: called once, with one action set per image.
        confidence_set: the set it maximises over.
        images: [image, *input].
        task: the task whose head predicts.
        true_means: mean rewards of the images, [image].
    """
    inputs = images.to(confidence_set.data.inputs.device)
    tasks = torch.full((len(inputs),), task, device=inputs.device)
    action_sets = single_action_sets(inputs, tasks)
    fit = confidence_set.center.values(inputs, tasks)
    bonus = selector(confidence_set, action_sets).values - fit
    # These selectors use the whole radius by construction, on the tangent.
    return Bonuses(true_means - fit.cpu(), bonus.cpu(), torch.ones_like(true_means))


def bonuses_one_by_one(
    selector: ActionSelector,
    confidence_set: ConfidenceSet,
    images: Tensor,
    task: int,
    true_means: Tensor,
) -> Bonuses:
    """The same for any selector: one optimisation problem per image, as in the paper."""
    inputs = images.to(confidence_set.data.inputs.device)
    tasks = torch.full((1,), task, device=inputs.device)
    fit = confidence_set.center.values(inputs, tasks.expand(len(inputs))).cpu()
    selections = [
        selector(confidence_set, single_action_sets(image[None], tasks)) for image in inputs
    ]
    values = torch.cat([selection.values.cpu() for selection in selections])
    distances = torch.tensor([selection.squared_distance for selection in selections])
    return Bonuses(true_means - fit, values - fit, distances / confidence_set.squared_radius)


def single_action_sets(inputs: Tensor, tasks: Tensor) -> ActionSets:
    """Action sets with one action each: [row, *input], [row]."""
    return ActionSets(inputs[:, None], tasks, torch.ones_like(tasks, dtype=torch.bool)[:, None])


def replay_calibrations(
    agent: GFUCB, log: MultitaskDataset, selectors: Mapping[str, ActionSelector]
) -> dict[str, Calibration]:
    """Let the agent learn the log round by round, and calibrate the interval of each selector.

    In each round every task has an action set with one action: the logged one. A selector predicts
    its reward before the agent learns it.
    """
    radius = default_radius(agent.network_learner.scaling.value_range or (0.0, 1.0))
    calibrations = {name: radius.initial() for name in selectors}
    for start in range(0, len(log), log.num_tasks):
        part = slice(start, start + log.num_tasks)
        tasks, inputs, rewards = log.tasks[part], log.inputs[part], log.targets[part]
        action_sets = single_action_sets(inputs, tasks)
        confidence_set = agent.confidence_set(inputs, num_sharing=1)
        for name, selector in selectors.items():
            prediction = _predict(selector, confidence_set, action_sets)
            calibrations[name] = calibrations[name].after(prediction, rewards.cpu())
        agent.learn(tasks, inputs, rewards)
    return calibrations


def _predict(
    selector: ActionSelector, confidence_set: ConfidenceSet, action_sets: ActionSets
) -> Prediction:
    selection = selector(confidence_set, action_sets)
    phi = confidence_set.center.representation
    features = action_sets.features_of_chosen(phi, selection.actions)
    return selection.prediction or confidence_set.head_prediction(features, action_sets.tasks)


def bonus_statistics(error: ArrayLike, bonus: ArrayLike) -> dict[str, float]:
    """Means and shares over images, by the names of the columns of the rows.

    `above`: share of images with bonus >= |error|. `covered`: share with optimistic value >= true
    mean. `correlation`: Spearman's rank correlation of bonus and |error|.
    """
    error, bonus = np.asarray(error, dtype=float), np.asarray(bonus, dtype=float)
    size = np.abs(error)
    varies = np.ptp(size) > 0 and np.ptp(bonus) > 0
    return {
        "error": float(size.mean()),
        "bonus": float(bonus.mean()),
        "above": float((bonus >= size).mean()),
        "covered": float((bonus >= error).mean()),
        "correlation": float(spearmanr(bonus, size).statistic) if varies else 0.0,
    }

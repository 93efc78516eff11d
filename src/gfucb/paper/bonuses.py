"""What solvers add to the fit at images they are asked about one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.bandits.gfucb import default_radius, head_prediction
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import ActionSets, Prediction
from gfucb.estimation.calibration import Calibration
from gfucb.exploration import GradientBonus, LastLayer, Linearised
from gfucb.models import ConfidenceSet, MultitaskDataset

# Solvers that give each entry the whole radius, so that many images can be asked about at once.
BATCHED: Mapping[str, ActionSelector] = {
    "last layer": LastLayer(joint=False),
    "linearised": Linearised(joint=False),
    "gradient": GradientBonus(),
}


@dataclass(frozen=True, eq=False)
class Asked:
    """What was said of images, [image] each.

    Attributes:
        error: truth minus fit.
        bonus: optimistic value minus fit, not clipped.
        distance: squared distance of the optimistic function, over the squared radius.
    """

    error: Tensor
    bonus: Tensor
    distance: Tensor


def ask_at_once(
    solver: ActionSelector, around: ConfidenceSet, images: Tensor, task: int, truth: Tensor
) -> Asked:
    """Ask a solver of `BATCHED` about images [image, *input] of a task that pay truth [image]."""
    inputs = images.to(around.data.inputs.device)
    action_sets = action_sets_of(inputs, torch.full((len(inputs),), task, device=inputs.device))
    fit = around.center.values(inputs, action_sets.tasks)
    bonus = solver(around, action_sets).values - fit
    # These solvers spend the radius by construction, on the tangent.
    return Asked(truth - fit.cpu(), bonus.cpu(), torch.ones_like(truth))


def ask_one_by_one(
    solver: ActionSelector, around: ConfidenceSet, images: Tensor, task: int, truth: Tensor
) -> Asked:
    """The same with a problem for each image, as the paper has it, for any solver."""
    inputs = images.to(around.data.inputs.device)
    tasks = torch.full((1,), task, device=inputs.device)
    fit = around.center.values(inputs, tasks.expand(len(inputs))).cpu()
    choices = [solver(around, action_sets_of(image[None], tasks)) for image in inputs]
    values = torch.cat([choice.values.cpu() for choice in choices])
    distances = torch.tensor([choice.squared_distance for choice in choices])
    return Asked(truth - fit, values - fit, distances / around.squared_radius)


def action_sets_of(inputs: Tensor, tasks: Tensor) -> ActionSets:
    """One action for each entry: [row, *input], [row]."""
    return ActionSets(inputs[:, None], tasks, torch.ones_like(tasks, dtype=torch.bool)[:, None])


def replayed(
    agent: GFUCB, log: MultitaskDataset, solvers: Mapping[str, ActionSelector]
) -> dict[str, Calibration]:
    """Let the agent learn the log round by round, and test the bounds of each solver.

    Every round is a action_sets of one action for each task, the one that was taken: what a solver
    bounds of it is known before its reward is.
    """
    radius = default_radius(agent.learner.value_range or (0.0, 1.0))
    found = {name: Calibration.begin(radius) for name in solvers}
    for start in range(0, len(log), log.num_tasks):
        part = slice(start, start + log.num_tasks)
        tasks, inputs, rewards = log.tasks[part], log.inputs[part], log.targets[part]
        action_sets, around = action_sets_of(inputs, tasks), agent.confidence_set(inputs, asked=1)
        for name, solver in solvers.items():
            found[name] = found[name].after(_promise(solver, around, action_sets), rewards.cpu())
        agent.learn(tasks, inputs, rewards)
    return found


def _promise(solver: ActionSelector, around: ConfidenceSet, action_sets: ActionSets) -> Prediction:
    choice = solver(around, action_sets)
    return choice.prediction or head_prediction(around, action_sets, choice.actions)


def quality(error: Any, bonus: Any) -> dict[str, float]:
    """Mean error and bonus, share above y = x, share of optimistic values, rank correlation."""
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

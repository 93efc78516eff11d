"""What solvers add to the fit at images they are asked about one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from gfucb.agents import GFUCB
from gfucb.agents.gfucb import default_radius, head_promise
from gfucb.contracts import Menu, OptimismSolver, Promise
from gfucb.estimation.calibration import Calibration
from gfucb.functions import ConfidenceSet, MultitaskDataset
from gfucb.optimism import Gradient, LastLayer, Linearised

# Solvers that give each entry the whole radius, so that many images can be asked about at once.
BATCHED: Mapping[str, OptimismSolver] = {
    "last layer": LastLayer(joint=False),
    "linearised": Linearised(joint=False),
    "gradient": Gradient(),
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
    solver: OptimismSolver, around: ConfidenceSet, images: Tensor, task: int, truth: Tensor
) -> Asked:
    """Ask a solver of `BATCHED` about images [image, *input] of a task that pay truth [image]."""
    inputs = images.to(around.data.inputs.device)
    menu = menu_of(inputs, torch.full((len(inputs),), task, device=inputs.device))
    fit = around.center.values(inputs, menu.tasks)
    bonus = solver(around, menu).values - fit
    # These solvers spend the radius by construction, on the tangent.
    return Asked(truth - fit.cpu(), bonus.cpu(), torch.ones_like(truth))


def ask_one_by_one(
    solver: OptimismSolver, around: ConfidenceSet, images: Tensor, task: int, truth: Tensor
) -> Asked:
    """The same with a problem for each image, as the paper has it, for any solver."""
    inputs = images.to(around.data.inputs.device)
    tasks = torch.full((1,), task, device=inputs.device)
    fit = around.center.values(inputs, tasks.expand(len(inputs))).cpu()
    choices = [solver(around, menu_of(image[None], tasks)) for image in inputs]
    values = torch.cat([choice.values.cpu() for choice in choices])
    distances = torch.tensor([choice.squared_distance for choice in choices])
    return Asked(truth - fit, values - fit, distances / around.squared_radius)


def menu_of(inputs: Tensor, tasks: Tensor) -> Menu:
    """One action for each entry: [entry, *input], [entry]."""
    return Menu(inputs[:, None], tasks, torch.ones_like(tasks, dtype=torch.bool)[:, None])


def replayed(
    agent: GFUCB, log: MultitaskDataset, solvers: Mapping[str, OptimismSolver]
) -> dict[str, Calibration]:
    """Let the agent learn the log round by round, and test the promises of each solver.

    Every round is a menu of one action for each task, the one that was taken: what a solver
    promises of it is known before its reward is.
    """
    radius = default_radius(agent.learner.value_range or (0.0, 1.0))
    found = {name: Calibration.begin(radius) for name in solvers}
    for start in range(0, len(log), log.num_tasks):
        part = slice(start, start + log.num_tasks)
        tasks, inputs, rewards = log.tasks[part], log.inputs[part], log.targets[part]
        menu, around = menu_of(inputs, tasks), agent.confidence_set(inputs, asked=1)
        for name, solver in solvers.items():
            found[name] = found[name].after(_promise(solver, around, menu), rewards.cpu())
        agent.learn(tasks, inputs, rewards)
    return found


def _promise(solver: OptimismSolver, around: ConfidenceSet, menu: Menu) -> Promise:
    choice = solver(around, menu)
    return choice.promise or head_promise(around, menu, choice.actions)


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

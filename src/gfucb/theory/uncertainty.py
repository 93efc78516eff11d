"""The generalised eluder dimension along a run: D^2 uncertainties of linear classes.

D_t^2 = sup_f f(x_t)^2 / (ridge |f|^2 + sum_{s < t, same task} f(x_s)^2), over linear
f(x) = <w, phi(x)>, is phi_t^T (ridge I + G_t)^-1 phi_t with G_t the Gram matrix of the earlier
samples of the task (Gentile, Wang and Zhang 2022; Agarwal, Jin and Zhang 2023; Zhao, He and Gu
2023). A network is treated as a linear class through its gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.linalg import ridge_cholesky, task_grams, task_sums
from gfucb.models import MultiheadFunction
from gfucb.models.tangents import WeightSketch
from gfucb.theory.requirements import require_positive

# Number of samples of a task that share one factorisation.
BLOCK = 64
# Gram matrices with a larger ratio to the ridge have no correct digits left.
LARGEST_CONDITION = 1e14


def d2_uncertainties(features: Tensor, tasks: Tensor, ridge: float) -> Tensor:
    """D_t^2 = phi_t^T (ridge I + sum_{s < t, same task} phi_s phi_s^T)^-1 phi_t: [sample].

    Source: the module's docstring. Works in blocks: after whitening by the earlier blocks,
    1 + D_t^2 is the squared diagonal of a Cholesky factor. O(samples d^2 + blocks d^3).

    Args:
        features: phi_t in the order of time, [sample, feature].
        tasks: the task of each sample, [sample].
        ridge: lambda, positive.
    """
    features, tasks = checked_samples(features, tasks, ridge)
    uncertainties = features.new_zeros(len(features))
    for task in tasks.unique():
        mine = tasks == task
        uncertainties[mine] = single_task_uncertainties(features[mine], ridge)
    return uncertainties


def single_task_uncertainties(features: Tensor, ridge: float) -> Tensor:
    """The same for one task, [sample, feature] -> [sample]."""
    gram = features.new_zeros(features.shape[1], features.shape[1])
    blocks = []
    for block in features.split(BLOCK):
        cholesky = ridge_cholesky(gram, ridge)
        whitened = torch.linalg.solve_triangular(cholesky, block.T, upper=False)
        factor = ridge_cholesky(whitened.T @ whitened, 1.0)
        blocks.append(factor.diagonal().square() - 1)
        gram = gram + block.T @ block
    return torch.cat(blocks).clamp_min(0)


def generalised_eluder_estimate(
    features: Tensor, tasks: Tensor, num_tasks: int, ridge: float
) -> Tensor:
    """Sum over a run of min(1, D_t^2), for each task: [task].

    The quantity in `repaired_theorem_1`: at most the generalised eluder dimension, and at most
    log_det_dimension / log 2. O(samples d^2).
    """
    checked_samples(features, tasks, ridge, num_tasks)
    return task_sums(d2_uncertainties(features, tasks, ridge).clamp_max(1), tasks, num_tasks)


def log_det_dimension(features: Tensor, tasks: Tensor, num_tasks: int, ridge: float) -> Tensor:
    """Log det(I + G / ridge), the sum of log(1 + D_t^2) over the run, for each task: [task].

    Source: the elliptical potential, Abbasi-Yadkori et al. 2011, lemma 11. O(samples d^2 + d^3).
    """
    features, tasks = checked_samples(features, tasks, ridge, num_tasks)
    cholesky = ridge_cholesky(task_grams(features, tasks, num_tasks) / ridge, 1.0)
    return 2 * cholesky.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def effective_dimension(features: Tensor, tasks: Tensor, num_tasks: int, ridge: float) -> Tensor:
    """The trace of G (G + ridge I)^-1, for each task: [task]; between 0 and the number of features.

    Source: ridge regression's degrees of freedom. O(samples d^2 + d^3).
    """
    features, tasks = checked_samples(features, tasks, ridge, num_tasks)
    eigenvalues = torch.linalg.eigvalsh(task_grams(features, tasks, num_tasks)).clamp_min(0)
    return (eigenvalues / (eigenvalues + ridge)).sum(-1)


def gradient_features(
    function: MultiheadFunction,
    inputs: Tensor,
    tasks: Tensor,
    *,
    sketch: WeightSketch | None = None,
) -> Tensor:
    """Gradients of f_i(x) = <heads[i], phi(x)> in the weights of phi: [sample, weight].

    They are the features of the linearised network (of the neural tangent kernel). A `sketch`
    shortens them and preserves inner products in expectation: [sample, sketch]. O(samples weights).

    Args:
        function: f, on a `NeuralRepresentation`; evaluated in evaluation mode.
        inputs: [sample, *input].
        tasks: the head of each sample, [sample].
        sketch: the random projection; None returns all weights.
    """
    return (sketch or WeightSketch(dim=None)).of(function, inputs, tasks)


def checked_samples(
    features: Tensor, tasks: Tensor, ridge: float, num_tasks: int | None = None
) -> tuple[Tensor, Tensor]:
    """Features in float64 and their tasks; refuses shapes that disagree, NaN and a ridge <= 0."""
    require_positive(ridge=ridge)
    if features.ndim != 2 or tasks.shape != features.shape[:1]:
        raise InvalidInputError(
            "features must be [sample, feature] and tasks [sample], "
            f"got {list(features.shape)} and {list(tasks.shape)}"
        )
    if not len(features) or not features.isfinite().all():
        raise InvalidInputError("features must be finite and of at least one sample")
    if int(tasks.min()) < 0 or (num_tasks is not None and int(tasks.max()) >= num_tasks):
        raise InvalidInputError(
            f"tasks must be numbered 0 to num_tasks - 1, got {int(tasks.min())} to "
            f"{int(tasks.max())} with num_tasks={num_tasks}"
        )
    largest = float(features.abs().max())
    if largest**2 * len(features) > LARGEST_CONDITION * ridge:
        raise InvalidInputError(
            f"features up to {largest:.3g} with a ridge of {ridge:.3g} exceed double "
            "precision; scale the features down or use a larger ridge"
        )
    return features.to(torch.float64), tasks

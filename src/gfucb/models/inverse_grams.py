"""Inverse Gram matrices of tasks: from all samples, and updated by single ones."""

from __future__ import annotations

import torch
from torch import Tensor

from gfucb.core.linalg import ridge_cholesky, task_grams
from gfucb.core.shards import ONE_SHARD, Shards, largest
from gfucb.models.copy_on_write import CopyOnWriteRows


def with_samples(covariances: CopyOnWriteRows, tasks: Tensor, features: Tensor) -> CopyOnWriteRows:
    """Add one sample [n, feature] to each of the distinct tasks [n] (Sherman and Morrison)."""
    before = covariances[tasks]
    gains = (before @ features.unsqueeze(-1)).squeeze(-1)
    scales = (1 + (gains * features).sum(-1)).rsqrt()
    gains = gains * scales[:, None]
    after = torch.baddbmm(before, gains[:, :, None], gains[:, None, :], alpha=-1)
    return covariances.replaced(tasks, after)


def with_groups(covariances: CopyOnWriteRows, tasks: Tensor, features: Tensor) -> CopyOnWriteRows:
    """Add samples [n, feature] of tasks [n], several to a task at once (Woodbury)."""
    if len(tasks.unique()) == len(tasks):
        return with_samples(covariances, tasks, features)
    for task in tasks.unique():
        own, before = features[tasks == task], covariances[task[None]][0]
        gains = before @ own.mT
        inner = torch.linalg.cholesky(torch.eye(len(own)).to(gains) + own @ gains)
        whitened = torch.linalg.solve_triangular(inner, gains.mT, upper=False)
        after = before - whitened.mT @ whitened
        covariances = covariances.replaced(task[None], after[None])
    return covariances


def inverse_grams(features: Tensor, tasks: Tensor, num_tasks: int) -> Tensor:
    """(I + Phi_i^T Phi_i)^-1 of samples [n, feature], [n]: [task, feature, feature]."""
    factors = ridge_cholesky(task_grams(features, tasks, num_tasks), 1.0)
    # In the memory layout of saved tensors, so that a restored agent rounds in the same way.
    return torch.cholesky_inverse(factors).contiguous()


def distinct_rounds(tasks: Tensor) -> list[Tensor]:
    """Indices of samples, split so that no task occurs twice in a part: the order is kept."""
    seen: dict[int, int] = {}
    rounds: list[list[int]] = []
    for index, task in enumerate(tasks.tolist()):
        count = seen.get(task, 0)
        if count == len(rounds):
            rounds.append([])
        rounds[count].append(index)
        seen[task] = count + 1
    return [torch.tensor(indices, device=tasks.device) for indices in rounds]


def parts_of_rows(tasks: Tensor, most: int, shards: Shards = ONE_SHARD) -> list[Tensor]:
    """Indices of rows [n] in at most `most` parts: the first rows of all tasks, then the next.

    The parts have distinct tasks, if no task has more than `most` rows. All shards have as many
    parts, of which some may be empty.
    """
    rounds = distinct_rounds(tasks)
    num_missing = int(largest(shards, len(rounds))[0]) - len(rounds)
    rounds += [tasks.new_zeros(0)] * num_missing
    if len(rounds) <= most:
        return rounds
    sizes = [len(rounds) // most + (index < len(rounds) % most) for index in range(most)]
    ends = [sum(sizes[: index + 1]) for index in range(most)]
    return [torch.cat(rounds[end - size : end]) for size, end in zip(sizes, ends, strict=True)]

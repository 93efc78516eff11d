"""The batches of a fit whose tasks are in several shards: the same for any number of shards.

A draw is a hash of the seed of the fit, the step and the number of the task, so each shard draws
for its own tasks. The tasks of a step are those with the smallest draws. Only the draws that may be
among these are exchanged, for all steps at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from gfucb.core.hashed_draws import GOLDEN, hashed_words, mixed
from gfucb.core.shards import global_tasks, largest, totals
from gfucb.models import MultitaskDataset
from gfucb.models.nn.seeded_layers import seeded_layers

# Exchanged are so many draws more than the tasks of a step, in standard deviations, and this many.
MARGIN, FEWEST_MORE = 8.0, 16
LARGEST_DRAW = 2**63 - 1


@dataclass(frozen=True, eq=False)
class TaskPlan:
    """The part of each step's batch that belongs to this shard.

    Attributes:
        samples: indices into the data, [task, slot] for each step.
        present: which slots hold a sample, [task, slot] for each step.
        row_seeds: of the layers that draw at random, [layer, task * slot] for each step.
        totals: the number of samples in the whole batch of each step.
    """

    samples: tuple[Tensor, ...]
    present: tuple[Tensor, ...]
    row_seeds: tuple[Tensor, ...]
    totals: tuple[int, ...]

    def to(self, device: torch.device) -> TaskPlan:
        """The plan on a device."""
        return TaskPlan(
            tuple(samples.to(device) for samples in self.samples),
            tuple(present.to(device) for present in self.present),
            tuple(seeds.to(device) for seeds in self.row_seeds),
            self.totals,
        )

    def __len__(self) -> int:
        return len(self.samples)

    def batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor, int]]:
        """Samples, present slots, seeds and the number of samples of each step."""
        return zip(self.samples, self.present, self.row_seeds, self.totals, strict=True)


def draw_by_task(
    data: MultitaskDataset,
    module: nn.Module,
    generator: torch.Generator,
    *,
    steps: int,
    batch_size: int,
    samples_per_task: int,
) -> TaskPlan:
    """The plan of `FitPlan.draw`, with draws that do not depend on where tasks are.

    The generators of all shards are in the same state.
    """
    seeds = torch.randint(2**62, (3,), generator=generator)
    layer_seeds = torch.randint(2**62, (steps, len(seeded_layers(module))), generator=generator)
    counts = data.samples_per_task.cpu()
    num_slots = min(int(largest(data.shards, int(counts.max()))[0]), samples_per_task)
    step_seeds = hashed_words(seeds[0], steps)
    chosen = _chosen_tasks(data, counts, step_seeds, max(1, batch_size // num_slots))
    order, starts = _shuffled(data, counts, seeds[1])
    window_seeds, slots = hashed_words(seeds[2], steps), torch.arange(num_slots)
    samples, present, row_seeds, sizes = [], [], [], []
    for step, (tasks, all_counts) in enumerate(chosen):
        sizes.append(int(all_counts.clamp_max(num_slots).sum()))
        numbers = global_tasks(data.shards, tasks)
        in_task = counts[tasks].unsqueeze(-1)
        draws = (_hash(window_seeds[step], numbers).double() / 2**63).unsqueeze(-1)
        positions = ((draws * in_task).long().clamp_max(in_task - 1) + slots) % in_task
        samples.append(order[starts[tasks].unsqueeze(-1) + positions])
        present.append(slots < in_task)
        rows = (numbers.unsqueeze(-1) * num_slots + slots).flatten()
        row_seeds.append(mixed(layer_seeds[step].unsqueeze(-1) + rows * GOLDEN))
    return TaskPlan(tuple(samples), tuple(present), tuple(row_seeds), tuple(sizes))


def _chosen_tasks(
    data: MultitaskDataset, counts: Tensor, step_seeds: Tensor, num_tasks: int
) -> list[tuple[Tensor, Tensor]]:
    """For each step the own tasks of the batch, and the sample counts of all its tasks."""
    shards = data.shards
    with_data = counts.nonzero().squeeze(1)
    num_with_data = int(totals(shards, len(with_data))[0])
    num_tasks = min(num_tasks, num_with_data)
    more = MARGIN * math.sqrt(num_tasks) + FEWEST_MORE
    for limit in (int(min(1.0, (num_tasks + more) / num_with_data) * LARGEST_DRAW), LARGEST_DRAW):
        rows = shards.gather(_draws_below(limit, with_data, counts, step_seeds, data))
        found = torch.bincount(rows[:, 0], minlength=len(step_seeds))
        if bool((found >= num_tasks).all()):
            break
    rows = rows[torch.from_numpy(np.lexsort((rows[:, 1].numpy(), rows[:, 0].numpy())))]
    chosen = []
    for own in rows.split(found.tolist()):
        _, _, numbers, all_counts = own[:num_tasks].unbind(1)
        is_own = numbers % shards.count == shards.index
        chosen.append((numbers[is_own] // shards.count, all_counts))
    return chosen


def _draws_below(
    limit: int, tasks: Tensor, counts: Tensor, step_seeds: Tensor, data: MultitaskDataset
) -> Tensor:
    """Step, draw, number and sample count of each task whose draw is below a limit: [n, 4]."""
    numbers, rows = global_tasks(data.shards, tasks), []
    for step, seed in enumerate(step_seeds):
        draws = _hash(seed, numbers)
        few = (draws <= limit).nonzero().squeeze(1)
        steps = torch.full_like(few, step)
        rows.append(torch.stack([steps, draws[few], numbers[few], counts[tasks[few]]], dim=1))
    return torch.cat(rows)


def _shuffled(data: MultitaskDataset, counts: Tensor, seed: Tensor) -> tuple[Tensor, Tensor]:
    """Samples grouped by task, each group in a random order, and where the groups start."""
    tasks = data.tasks.cpu()
    starts = counts.cumsum(0) - counts
    by_task = tasks.argsort(stable=True)
    grouped = tasks[by_task]
    ranks = torch.arange(len(tasks)) - starts[grouped]
    task_seeds = _hash(seed, global_tasks(data.shards, grouped))
    draws = mixed(task_seeds + ranks * GOLDEN)
    return by_task[torch.from_numpy(np.lexsort((draws.numpy(), grouped.numpy())))], starts


def _hash(seed: Tensor, numbers: Tensor) -> Tensor:
    """Random integers from 0 to 2^63 - 1 of a seed and numbers [n]: [n]."""
    return mixed(mixed(numbers * GOLDEN + seed)) & LARGEST_DRAW

"""The batches of a fit whose tasks are in several shards: the same for any number of shards.

A draw is a hash of the seed of the fit, the step and the number of the task, so each shard draws
for its own tasks. The tasks of a step are those with the smallest draws in each class of tasks. The
classes are so chosen that all shards have as much to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from gfucb.core.hashed_draws import GOLDEN, hashed_words, mixed
from gfucb.core.shards import global_tasks, largest, totals
from gfucb.models import MultitaskDataset
from gfucb.models.nn.seeded_layers import seeded_layers

LARGEST_DRAW = 2**63 - 1
# A class has about this many tasks or more, and there are at most this many classes. A step takes
# random tasks of each class; with few tasks in each, the same tasks would often come together.
TASKS_OF_CLASS, MOST_CLASSES = 16, 1024


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
    for step, (tasks, counted) in enumerate(chosen):
        sizes.append(counted.clamp_max(num_slots).sum())
        numbers = global_tasks(data.shards, tasks)
        in_task = counts[tasks].unsqueeze(-1)
        draws = (_hash(window_seeds[step], numbers).double() / 2**63).unsqueeze(-1)
        positions = ((draws * in_task).long().clamp_max(in_task - 1) + slots) % in_task
        samples.append(order[starts[tasks].unsqueeze(-1) + positions])
        present.append(slots < in_task)
        rows = (numbers.unsqueeze(-1) * num_slots + slots).flatten()
        row_seeds.append(mixed(layer_seeds[step].unsqueeze(-1) + rows * GOLDEN))
    own_sizes = torch.stack(sizes) if sizes else torch.zeros(0, dtype=torch.int64)
    all_sizes = tuple(data.shards.sum(own_sizes).tolist())
    return TaskPlan(tuple(samples), tuple(present), tuple(row_seeds), all_sizes)


@dataclass(frozen=True, eq=False)
class _Quotas:
    """How many tasks a step takes of each class of tasks, by systematic sampling.

    The class of a task is its number modulo the number of classes, a power of 2. In the order of
    reversed bits the tasks of one of 2, 4, 8 .. shards follow each other, so a step takes as many
    tasks of each shard, up to one, if all have as many tasks with samples. Every task is taken with
    the same probability.

    Attributes:
        sizes: the number of tasks with samples of each class, in all shards, [class].
        num_tasks: of a step.
    """

    sizes: Tensor
    num_tasks: int

    def of_step(self, offset: float) -> Tensor:
        """The numbers of tasks [class] for a random offset from 0 to 1."""
        bits = (len(self.sizes) - 1).bit_length()
        order = torch.tensor(
            sorted(range(len(self.sizes)), key=lambda number: f"{number:0{bits}b}"[::-1])
        )
        ends = self.sizes[order].double().cumsum(0) * (self.num_tasks / float(self.sizes.sum()))
        ends[-1] = self.num_tasks  # not less by rounding
        whole = (ends + offset).floor().long()
        taken = whole.diff(prepend=whole.new_zeros(1))
        return torch.empty_like(taken).index_copy(0, order, taken)


def _chosen_tasks(
    data: MultitaskDataset, counts: Tensor, step_seeds: Tensor, num_tasks: int
) -> list[tuple[Tensor, Tensor]]:
    """For each step the own tasks of the batch, and sample counts: those of all tasks, once.

    With 2, 4, 8 .. shards a class of tasks is in one shard, which knows its own tasks only.
    Otherwise, or if tasks are few, all shards know all tasks.
    """
    shards = data.shards
    with_data = counts.nonzero().squeeze(1)
    numbers, sizes = global_tasks(shards, with_data), counts[with_data]
    num_classes = _num_classes(int(totals(shards, len(with_data))[0]))
    all_sizes = shards.sum(torch.bincount(numbers % num_classes, minlength=num_classes))
    quotas = _Quotas(all_sizes, min(num_tasks, int(all_sizes.sum())))
    if num_classes % shards.count:
        numbers, sizes = shards.gather(torch.stack([numbers, sizes], dim=1)).unbind(1)
    classes = numbers % num_classes
    chosen = []
    for seed in step_seeds:
        taken = quotas.of_step(float(_hash(seed, seed.new_zeros(1))) / 2**63)
        rows = _smallest_of_classes(_hash(seed, numbers + 1), classes, taken)
        own = rows[numbers[rows] % shards.count == shards.index]
        is_first = shards.index == 0 or num_classes % shards.count == 0  # who counts a task
        chosen.append((numbers[own] // shards.count, sizes[rows if is_first else rows[:0]]))
    return chosen


def _num_classes(num_tasks: int) -> int:
    return min(MOST_CLASSES, 2 ** max(0, (num_tasks // TASKS_OF_CLASS).bit_length() - 1))


def _smallest_of_classes(draws: Tensor, classes: Tensor, taken: Tensor) -> Tensor:
    """Indices of the smallest draws [n] of each class, as many as are taken of it, [class]."""
    rows = (taken[classes] > 0).nonzero().squeeze(1)
    order = np.lexsort((draws[rows].numpy(), classes[rows].numpy()))
    rows = rows[torch.from_numpy(order)]
    of_rows = classes[rows]
    lengths = torch.bincount(of_rows, minlength=len(taken))
    ranks = torch.arange(len(rows)) - (lengths.cumsum(0) - lengths)[of_rows]
    return rows[ranks < taken[of_rows]]


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

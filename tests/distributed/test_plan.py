"""The batches of a fit of several shards."""

import pytest
import torch
from thread_shards import in_threads
from torch import nn

from gfucb.core.shards import num_own_tasks
from gfucb.estimation.task_plan import draw_by_task
from gfucb.models import MultitaskDataset

TASKS, STEPS = 160, 20


def plan_of(shards, batch_size=96, samples=3):
    """The global tasks of each step, and the sizes of all batches."""
    own = num_own_tasks(TASKS, shards.index, shards.count)
    data = MultitaskDataset(own, (1,), torch.float32, shards=shards)
    tasks = torch.arange(own).repeat(samples)
    inputs = torch.arange(len(tasks))[:, None].float()
    data.append(tasks, inputs, torch.zeros(len(tasks)))
    generator = torch.Generator().manual_seed(0)
    plan = draw_by_task(
        data, nn.Identity(), generator, steps=STEPS, batch_size=batch_size, samples_per_task=2
    )
    numbers = [data.tasks[rows[:, 0]] * shards.count + shards.index for rows in plan.samples]
    for rows, present in zip(plan.samples, plan.present, strict=True):
        assert bool(present.all()) and bool((data.tasks[rows] == data.tasks[rows][:, :1]).all())
        assert bool((rows[:, 0] != rows[:, 1]).all())
    return numbers, plan.totals


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_batches_have_as_many_tasks_of_each_shard_and_do_not_depend_on_their_number(count):
    [(expected, totals)] = in_threads(1, plan_of)
    found = in_threads(count, plan_of)
    assert totals == (96,) * STEPS
    for step in range(STEPS):
        parts = [numbers[step] for numbers, _ in found]
        assert sorted(torch.cat(parts).tolist()) == sorted(expected[step].tolist())
        sizes = [len(part) for part in parts]
        assert sum(sizes) == 48
        if count != 3:  # of eight classes
            assert max(sizes) - min(sizes) <= 1
    assert all(own == totals for _, own in found)


def test_all_tasks_are_taken_as_often():
    [(numbers, _)] = in_threads(1, lambda shards: plan_of(shards, batch_size=20))
    counts = torch.bincount(torch.cat(numbers), minlength=TASKS)
    assert int(counts.sum()) == 10 * STEPS and int(counts.max()) <= 8
    assert len({tuple(sorted(own.tolist())) for own in numbers}) == STEPS

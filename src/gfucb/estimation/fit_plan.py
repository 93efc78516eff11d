"""The random draws of a fit by stochastic gradients, made before its first step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gfucb.models import MultitaskDataset
from gfucb.models.nn.seeded_layers import seeded_layers

# With more tasks the draws are not sorted, only the smallest are found. Equal draws may then come
# in another order.
MANY_TASKS = 10_000


@dataclass(frozen=True, eq=False)
class FitPlan:
    """The batch of every step, and the seeds of the layers that draw at random.

    A batch is grouped by task, so that the heads of all its tasks are solved at once.

    Attributes:
        samples: indices into the data, [step, task, slot].
        present: which slots hold a sample, [step, task, slot].
        seeds: of the layers that draw at random, [step, layer].
    """

    samples: Tensor
    present: Tensor
    seeds: Tensor

    @classmethod
    def draw(
        cls,
        data: MultitaskDataset,
        module: nn.Module,
        generator: torch.Generator,
        *,
        steps: int,
        batch_size: int,
        samples_per_task: int,
        held_out: Tensor | None = None,
    ) -> FitPlan:
        """Random tasks for each step, and a random window of the shuffled samples of each.

        A step uses at most `batch_size` samples, and at most `samples_per_task` of a task, and no
        sample that is `held_out`, [sample] of booleans.
        """
        shuffled = torch.randperm(len(data), generator=generator)
        if held_out is not None:
            shuffled = shuffled[~held_out[shuffled]]
        tasks_shuffled = data.tasks.cpu()[shuffled]
        order = shuffled[tasks_shuffled.argsort(stable=True)]
        counts = torch.bincount(tasks_shuffled, minlength=data.num_tasks)
        starts = counts.cumsum(0) - counts
        with_data = counts.nonzero().squeeze(1)
        num_slots = min(int(counts.max()), samples_per_task)
        num_tasks = min(len(with_data), max(1, batch_size // num_slots))

        draws = torch.rand(steps, len(with_data), generator=generator)
        tasks = with_data[_smallest(draws, num_tasks)]  # [step, task]
        windows = torch.rand(steps, num_tasks, 1, generator=generator, dtype=torch.float64)
        in_task = counts[tasks].unsqueeze(-1)
        slots = torch.arange(num_slots)
        positions = ((windows * in_task).long() + slots) % in_task
        num_layers = len(seeded_layers(module))
        seeds = torch.randint(2**62, (steps, num_layers), generator=generator)
        return cls(order[starts[tasks].unsqueeze(-1) + positions], slots < in_task, seeds)

    @classmethod
    def stack(cls, plans: Sequence[FitPlan]) -> FitPlan:
        """The plans of several replicas, [step, replica, ...]."""
        return cls(
            torch.stack([plan.samples for plan in plans], dim=1),
            torch.stack([plan.present for plan in plans], dim=1),
            torch.stack([plan.seeds for plan in plans], dim=1),
        )

    def to(self, device: torch.device) -> FitPlan:
        """The plan on a device."""
        return FitPlan(self.samples.to(device), self.present.to(device), self.seeds.to(device))

    def __len__(self) -> int:
        return len(self.samples)

    def batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Samples, present slots, seeds and the number of samples of each step."""
        sizes = (present.sum() for present in self.present)
        return zip(self.samples, self.present, self.seeds, sizes, strict=True)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        return zip(self.samples, self.present, self.seeds, strict=True)


def _smallest(draws: Tensor, count: int) -> Tensor:
    """The indices of the smallest draws of each row, [row, count]."""
    if draws.shape[1] <= MANY_TASKS:
        return draws.argsort(1)[:, :count]
    return draws.topk(count, dim=1, largest=False).indices


def plan_generator(generator: torch.Generator) -> torch.Generator:
    """A generator for the plans of a fit that draws them one after another.

    Its draws do not depend on other draws of `generator`, such as those of augmentations.
    """
    seed = int(torch.randint(2**62, (), generator=generator))
    return torch.Generator().manual_seed(seed)

"""The samples (task, input, target) of all tasks, in the order they arrived."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from gfucb.core.shards import ONE_SHARD, Shards, of_each


class MultitaskDataset:
    """Samples of all tasks in one growing table.

    Storage doubles when it is full, so an append costs amortised constant time. Inputs keep their
    type: an image of bytes takes a quarter of the memory of a float32 image.

    Attributes:
        num_tasks: number of tasks; task indices are 0 .. num_tasks - 1.
        shards: of which this process holds one; these are the samples of its tasks.
        auxiliary_targets: further targets for the representation, [sample, target]; None without.
    """

    def __init__(
        self,
        num_tasks: int,
        input_shape: torch.Size,
        input_dtype: torch.dtype,
        *,
        device: torch.device | str = "cpu",
        capacity: int = 64,
        shards: Shards = ONE_SHARD,
    ) -> None:
        self.num_tasks = num_tasks
        self.shards = shards
        self.auxiliary_targets: Tensor | None = None
        self._size = 0
        self._inputs = torch.empty(capacity, *input_shape, dtype=input_dtype, device=device)
        self._tasks = torch.empty(capacity, dtype=torch.int64, device=device)
        self._targets = torch.empty(capacity, dtype=torch.float64, device=device)
        self._counts = torch.zeros(num_tasks, dtype=torch.int64, device=device)
        # Of the other shards: all their samples, and the most samples of a task; the same before
        # the last append.
        self._others = self._others_before = (0, 0)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        shape = list(self._inputs.shape[1:])
        return f"MultitaskDataset({len(self)} samples, {self.num_tasks} tasks, inputs {shape})"

    @property
    def inputs(self) -> Tensor:
        """[sample, *input], a view."""
        return self._inputs[: self._size]

    @property
    def tasks(self) -> Tensor:
        """[sample], a view."""
        return self._tasks[: self._size]

    @property
    def targets(self) -> Tensor:
        """[sample], float64, a view."""
        return self._targets[: self._size]

    @property
    def samples_per_task(self) -> Tensor:
        """[task]."""
        return self._counts

    @property
    def total(self) -> int:
        """The number of samples of all shards."""
        return self._size + self._others[0]

    @property
    def round_index(self) -> int:
        """The paper's t: one more than the largest number of samples any task has.

        If every task has a reward in every round, this is the index of the next round, from 1.
        """
        # Paper: E_t holds the data up to t - 1 in (*) and up to t in the lemmas; here, t - 1.
        return 1 + max(int(self._counts.max()) if self.num_tasks else 0, self._others[1])

    @property
    def capacity(self) -> int:
        """The number of samples for which storage is allocated."""
        return len(self._tasks)

    def append(self, tasks: Tensor, inputs: Tensor, targets: Tensor) -> None:
        """Add samples: [sample], [sample, *input], [sample]."""
        end = self._size + len(tasks)
        self._reserve(end)
        self._inputs[self._size : end] = inputs
        self._tasks[self._size : end] = tasks
        self._targets[self._size : end] = targets
        added = torch.bincount(self._tasks[self._size : end], minlength=self.num_tasks)
        counts = self._counts + added
        others = self._count_others(end, counts)
        self._others, self._others_before = others, self._others
        self._counts, self._size = counts, end

    def snapshot(self) -> MultitaskDataset:
        """The samples so far as a value: later appends do not change it.

        Both share their storage, which only grows at its end, so this costs nothing.
        """
        same = copy.copy(self)
        same._inputs, same._tasks, same._targets = self.inputs, self.tasks, self.targets
        return same

    def with_targets(self, targets: Tensor) -> MultitaskDataset:
        """The samples so far with other targets [sample], as a value."""
        same = self.snapshot()
        same._targets = targets
        return same

    def with_tasks(self, count: int) -> MultitaskDataset:
        """The samples so far with `count` more tasks, which have no samples, as a value."""
        same = self.snapshot()
        same.num_tasks += count
        same._counts = torch.cat([self._counts, self._counts.new_zeros(count)])
        return same

    def with_auxiliary_targets(self, auxiliary_targets: Tensor) -> MultitaskDataset:
        """The samples so far with auxiliary targets [sample, target], as a value.

        `VariableProjection` trains the representation to predict them too, with temporary heads
        for each task and target. Other fits ignore them.
        """
        same = self.snapshot()
        same.auxiliary_targets = auxiliary_targets
        return same

    def taken(self, rows: Tensor) -> MultitaskDataset:
        """The samples with `rows` [sample] of booleans, in a storage of their own."""
        taken = MultitaskDataset(
            self.num_tasks,
            self._inputs.shape[1:],
            self._inputs.dtype,
            device=self._inputs.device,
            capacity=max(1, int(rows.sum())),
        )
        taken.append(self.tasks[rows], self.inputs[rows], self.targets[rows])
        return taken

    def truncate(self, size: int) -> None:
        """Remove all samples after the first `size`: those of the last append, with shards."""
        self._size = min(size, self._size)
        self._counts = torch.bincount(self.tasks, minlength=self.num_tasks)
        self._others = self._others_before

    def _count_others(self, size: int, counts: Tensor) -> tuple[int, int]:
        """Ask the other shards for their samples: all shards append together."""
        if self.shards.count == 1:
            return 0, 0
        most = int(counts.max()) if self.num_tasks else 0
        sizes = of_each(self.shards, size, most)
        return int(sizes[:, 0].sum()) - size, int(sizes[:, 1].max())

    def _reserve(self, size: int) -> None:
        if size <= self.capacity:
            return
        capacity = max(size, 2 * self.capacity)
        for name in ("_inputs", "_tasks", "_targets"):
            old = getattr(self, name)
            new = old.new_empty(capacity, *old.shape[1:])
            new[: self._size] = old[: self._size]
            setattr(self, name, new)

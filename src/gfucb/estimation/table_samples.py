"""The samples of a fit of a table, those of one shard or of all tasks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.core.hashed_draws import GOLDEN, mixed
from gfucb.core.shards import ONE_SHARD, Shards, global_tasks, totals
from gfucb.estimation.evidence import TaskMoments, log_evidence, two_level_posterior
from gfucb.estimation.sample_evidence import SampleEvidence
from gfucb.estimation.sample_moments import SampleMoments
from gfucb.models.sample_covariances import SampleCovariances
from gfucb.models.table_features import TableColumns, TableScales
from gfucb.models.table_sizes import MANY_TASKS

# A search for scales has at most this many samples.
MOST_SEARCH_SAMPLES = 3000
# Tasks in a search: their number times feature_dim^3 is at most this, but at least four tasks.
SEARCH_COST, FEWEST_SEARCH_TASKS = 1e8, 4
# Matrices of samples are used if they cost at most this many times as much as those of features;
# they cost less than their size says, since no products of features have to be summed.
SAMPLE_COST = 2.0
# Candidates are drawn anew if at most this share of the last samples has a value of a column that
# was chosen before.
MOST_REPEATED, LAST_SAMPLES = 0.05, 1000
# Draws are from 0 to this number.
LARGEST_DRAW = 2**63 - 1


@dataclass(frozen=True, eq=False)
class TableSamples:
    """The samples of a fit.

    Attributes:
        inputs: [n, column].
        tasks: [n].
        targets: [n].
        num_tasks: the number of tasks, those of this shard.
        columns: standardisation and frequencies.
        pseudo_square: see `TaskMoments`.
        pooled: values of the pooled function, [n], if they are a feature.
        shards: of which this process holds one.
        total_tasks: the number of tasks of all shards; 0 if all shards have the same tasks, which
            are then actions.
        keys: a number of each sample that no other one has, [n]; see `sample_keys`.
        total_samples: the number of samples of all shards; 0 if this process has all.
    """

    inputs: Tensor
    tasks: Tensor
    targets: Tensor
    num_tasks: int
    columns: TableColumns
    pseudo_square: float
    pooled: Tensor | None = None
    shards: Shards = ONE_SHARD
    total_tasks: int = 0
    keys: Tensor | None = None
    total_samples: int = 0

    @classmethod
    def of(
        cls,
        inputs: Tensor,
        tasks: Tensor,
        targets: Tensor,
        num_tasks: int,
        columns: TableColumns,
        pseudo_square: float,
        shards: Shards,
        *,
        with_keys_from: int,
    ) -> TableSamples:
        """The samples of a shard; with keys if there are several or more samples than this."""
        num_samples, all_tasks = (int(x) for x in totals(shards, len(targets), num_tasks))
        has_keys = shards.count > 1 or num_samples > with_keys_from
        return cls(
            inputs,
            tasks,
            targets,
            num_tasks,
            columns,
            pseudo_square,
            shards=shards,
            total_tasks=all_tasks,
            keys=sample_keys(tasks, shards) if has_keys else None,
            total_samples=num_samples,
        )

    @property
    def total(self) -> int:
        """The number of samples of all shards."""
        return self.total_samples or len(self.targets)

    @property
    def all_tasks(self) -> int:
        """The number of tasks of all shards."""
        return self.total_tasks or self.num_tasks

    @property
    def has_many_tasks(self) -> bool:
        """Whether there are too many tasks for a matrix each."""
        return self.total_tasks > MANY_TASKS

    def where(self, kept: Tensor) -> TableSamples:
        """The samples with `kept` [n]."""
        if bool(kept.all()):
            return self
        return replace(
            self,
            inputs=self.inputs[kept],
            tasks=self.tasks[kept],
            targets=self.targets[kept],
            pooled=None if self.pooled is None else self.pooled[kept],
            keys=None if self.keys is None else self.keys[kept],
        )

    def sums(self, length: float) -> TaskMoments:
        """Sums of features with this length scale."""
        features = self.columns.features(self.inputs, length, self.pooled)
        return TaskMoments.of(
            features, self.tasks, self.targets, self.num_tasks, pseudo_square=self.pseudo_square
        )

    def all_sums(self, length: float) -> TaskMoments | SampleMoments:
        """The same in the form that takes less memory, for any number of tasks."""
        if not self.has_many_tasks:
            return self.sums(length)
        features = self.columns.features(self.inputs, length, self.pooled)
        return SampleMoments(features, self.tasks, self.targets, self.num_tasks, self.pseudo_square)

    def subset(self, generator: torch.Generator, most_samples: int | None = None) -> TableSamples:
        """The tasks with most samples, and a random part of their samples: bounds the search.

        With several shards the samples are those of all, in one process.
        """
        if self.has_few_samples:
            return self if self.shards.count == 1 else self._all_gathered()
        most_samples = most_samples or MOST_SEARCH_SAMPLES
        position, num_chosen = self._positions(generator, self._most_search_tasks)
        rows = (position[self.tasks] >= 0).nonzero().squeeze(1)
        if self.shards.count > 1:
            return self._gathered(rows, position, num_chosen, generator, most_samples)
        if len(rows) > most_samples:
            order = torch.randperm(len(rows), generator=generator)[:most_samples]
            rows = rows[order.to(rows.device)]
        return replace(
            self,
            inputs=self.inputs[rows],
            tasks=position[self.tasks[rows]],
            targets=self.targets[rows],
            pooled=None if self.pooled is None else self.pooled[rows],
            num_tasks=num_chosen,
            keys=None,
            total_samples=0,
        )

    @property
    def _num_features(self) -> int:
        return len(self.columns.scales(TableScales()))

    @property
    def _most_search_tasks(self) -> int:
        return max(FEWEST_SEARCH_TASKS, int(SEARCH_COST / self._num_features**3))

    @property
    def has_few_samples(self) -> bool:
        """Whether a search is cheaper with matrices of samples than with those of features."""
        num_tasks = min(self.all_tasks, self._most_search_tasks)
        return self.total**3 <= SAMPLE_COST * num_tasks * self._num_features**3

    def evidence(self) -> Callable[[TableScales], float]:
        """From scales to their log marginal likelihood, up to a constant."""
        if self.has_few_samples:
            return SampleEvidence.of(
                self.columns,
                self.inputs,
                self.tasks,
                self.targets,
                self.pooled,
                pseudo_square=self.pseudo_square,
            ).log_evidence
        sums: dict[float, TaskMoments] = {}

        def from_sums(scales: TableScales) -> float:
            if scales.length not in sums:
                sums[scales.length] = self.sums(scales.length)
            deviations = self.columns.scales(scales)
            return log_evidence(sums[scales.length], deviations, scales.mean_ratio)

        return from_sums

    def _positions(self, generator: torch.Generator, most: int) -> tuple[Tensor, int]:
        """The positions [task] of the tasks with most samples, -1 for others, and their number."""
        shards, is_divided = self.shards, self.shards.count > 1 and self.total_tasks > 0
        counts = torch.bincount(self.tasks, minlength=self.num_tasks)
        position = self.tasks.new_full((self.num_tasks,), -1)
        if not is_divided:
            counts = shards.sum(counts).double()
            draws = torch.rand(self.num_tasks, generator=generator, dtype=torch.float64)
            keys = counts.cpu() + draws
            chosen = keys.topk(min(most, self.num_tasks)).indices.to(self.tasks.device)
            position[chosen] = torch.arange(len(chosen), device=self.tasks.device)
            return position, len(chosen)
        draws = torch.rand(self.total_tasks, generator=generator, dtype=torch.float64)
        keys = counts.cpu().double() + draws[shards.index :: shards.count]
        own = keys.topk(min(most, self.num_tasks))
        numbers = global_tasks(shards, own.indices).double()
        found = shards.gather(torch.stack([own.values, numbers], dim=1))
        best = found[:, 0].topk(min(most, self.total_tasks)).indices
        chosen = found[best, 1].long()
        is_own = chosen % shards.count == shards.index
        slots = torch.arange(len(chosen))[is_own].to(position)
        position[(chosen[is_own] // shards.count).to(position)] = slots
        return position, len(chosen)

    def _all_gathered(self) -> TableSamples:
        """All samples of all shards, which are few."""
        numbers = torch.arange(self.num_tasks, device=self.tasks.device)
        position = global_tasks(self.shards, numbers) if self.total_tasks else numbers
        rows = torch.arange(len(self.targets), device=self.tasks.device)
        return self._gathered(rows, position, self.all_tasks, None, self.total)

    def _gathered(
        self,
        rows: Tensor,
        position: Tensor,
        num_tasks: int,
        generator: torch.Generator | None,
        most: int,
    ) -> TableSamples:
        """The rows of all shards, or as many of them as those with the smallest draws."""
        assert self.keys is not None  # samples of shards have keys
        shards, keys = self.shards, self.keys[rows]
        if generator is not None and totals(shards, len(rows))[0] > most:
            seed = torch.randint(2**62, (), generator=generator).to(keys.device)
            draws = mixed(keys * GOLDEN + seed) & LARGEST_DRAW
            smallest = draws.topk(min(most, len(draws)), largest=False).values
            limit = shards.gather(smallest).sort().values[most - 1]
            rows = rows[draws <= limit]
        numbers = [position[self.tasks[rows]].double(), self.targets[rows]]
        if self.pooled is not None:
            numbers.append(self.pooled[rows])
        found = shards.gather(torch.cat([torch.stack(numbers, 1), self.inputs[rows]], dim=1))
        keys = shards.gather(self.keys[rows])
        found = found[keys.argsort()]  # in an order that does not depend on the shards
        first = len(numbers)
        return replace(
            self,
            inputs=found[:, first:].contiguous(),
            tasks=found[:, 0].long(),
            targets=found[:, 1].contiguous(),
            pooled=None if self.pooled is None else found[:, 2].contiguous(),
            num_tasks=num_tasks,
            shards=ONE_SHARD,
            total_tasks=0,
            keys=None,
            total_samples=0,
        )

    def are_drawn_anew(self) -> bool:
        """Whether hardly any value of any column is chosen twice, and there are no one-hot actions.

        Candidates of a list, and settings with few values, are chosen again and again, even if
        they come with a context that varies. Tables with indicators never count as drawn anew.
        """
        if self.columns.layout.num_actions:
            return False
        last = self.inputs[-LAST_SAMPLES:]
        is_repeated = last.sort(0).values.diff(dim=0) == 0
        most = MOST_REPEATED * totals(self.shards, len(last))[0]
        return bool((self.shards.sum(is_repeated.sum(0)) <= most).all())

    def tries(self) -> Tensor:
        """The number of samples of each action, see `HeadPosterior`."""
        counts = (self.columns.linear_features(self.inputs) != 0).sum(0).double()
        return self.shards.sum(counts).where(self.columns.action_columns(), torch.inf)

    def linear_covariances(self, precision: float) -> Tensor | SampleCovariances:
        """(I + k X_i^T X_i)^-1 of the linear features, [task, linear feature, linear feature].

        k is the precision of samples, see `HeadPosterior`.
        """
        linear = math.sqrt(precision) * self.columns.linear_features(self.inputs)
        if self.has_many_tasks:
            return SampleCovariances.of(linear, self.tasks, self.num_tasks)
        sums = TaskMoments.of(
            linear, self.tasks, self.targets, self.num_tasks, pseudo_square=self.pseudo_square
        )
        return two_level_posterior(sums, linear.new_ones(linear.shape[1]), 0.0).covariances


def sample_keys(tasks: Tensor, shards: Shards) -> Tensor:
    """A number of each sample of tasks [n], the same wherever the task is: [n].

    Samples of a task are numbered in the order in which they came.
    """
    order = tasks.argsort(stable=True)
    counts = torch.bincount(tasks)
    first = (counts.cumsum(0) - counts)[tasks[order]]
    ranks = torch.empty_like(tasks)
    ranks[order] = torch.arange(len(tasks), device=tasks.device) - first
    return global_tasks(shards, tasks) * 2**31 + ranks


def drawn(keys: Tensor, seed: Tensor, share: float) -> Tensor:
    """Which samples with these keys [n] belong to a random part of this share: [n], booleans."""
    draws = mixed(keys * GOLDEN + seed.to(keys.device)) & LARGEST_DRAW
    return draws.double() < share * LARGEST_DRAW

"""The search for the scales of table features: larger marginal likelihood, one scale at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from gfucb.estimation.evidence import TaskMoments, log_evidence, two_level_posterior
from gfucb.estimation.sample_evidence import SampleEvidence
from gfucb.models.table_features import TableColumns, TableScales

# Scales are searched with at least this many samples, and with at most this many.
FEWEST_SEARCH_SAMPLES, MOST_SEARCH_SAMPLES = 4, 3000
# Tasks in a search: their number times feature_dim^3 is at most this, but at least four tasks.
SEARCH_COST, FEWEST_SEARCH_TASKS = 1e8, 4
# Matrices of samples are used if they cost at most this many times as much as those of features;
# they cost less than their size says, since no products of features have to be summed.
SAMPLE_COST = 2.0
# A step of the search must raise the log evidence by this much.
SMALLEST_GAIN = 0.1
FACTOR, LENGTH_FACTOR, SHARED_STEP = 4.0, 1.6, 0.2
LIMITS = {
    "bias": (1e-4, 1e9),
    "linear": (1e-4, 1e9),
    "fourier": (1e-4, 1e9),
    "length": (0.05, 10.0),
    "shared": (0.0, 0.8),
    "pooled": (1e-4, 1e9),
    "mean_ratio": (1e-3, 1e3),
}
# The prior of the scales: log evidence falls by this times the squared number of decades between
# a scale and its default. Without it few samples select extreme scales.
SCALE_PRIOR = 2.0
LENGTH_PRIOR = 8.0


@dataclass(frozen=True, eq=False)
class TableSamples:
    """The samples of a fit.

    Attributes:
        inputs: [n, column].
        tasks: [n].
        targets: [n].
        num_tasks: M.
        columns: standardisation and frequencies.
        pseudo_square: see `TaskMoments`.
        pooled: values of the pooled function, [n], if they are a feature.
    """

    inputs: Tensor
    tasks: Tensor
    targets: Tensor
    num_tasks: int
    columns: TableColumns
    pseudo_square: float
    pooled: Tensor | None = None

    def sums(self, length: float) -> TaskMoments:
        """Sums of features with this length scale."""
        features = self.columns.features(self.inputs, length, self.pooled)
        return TaskMoments.of(
            features, self.tasks, self.targets, self.num_tasks, pseudo_square=self.pseudo_square
        )

    def subset(self, generator: torch.Generator, most_samples: int | None = None) -> TableSamples:
        """The tasks with most samples, and a random part of their samples: bounds the search."""
        if self.has_few_samples:
            return self
        most_samples = most_samples or MOST_SEARCH_SAMPLES
        most_tasks = self._most_search_tasks
        counts = torch.bincount(self.tasks, minlength=self.num_tasks).double()
        keys = counts.cpu() + torch.rand(self.num_tasks, generator=generator, dtype=torch.float64)
        chosen = keys.topk(min(most_tasks, self.num_tasks)).indices.to(self.tasks.device)
        position = self.tasks.new_full((self.num_tasks,), -1)
        position[chosen] = torch.arange(len(chosen), device=self.tasks.device)
        rows = (position[self.tasks] >= 0).nonzero().squeeze(1)
        if len(rows) > most_samples:
            order = torch.randperm(len(rows), generator=generator)[:most_samples]
            rows = rows[order.to(rows.device)]
        return replace(
            self,
            inputs=self.inputs[rows],
            tasks=position[self.tasks[rows]],
            targets=self.targets[rows],
            pooled=None if self.pooled is None else self.pooled[rows],
            num_tasks=len(chosen),
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
        num_tasks = min(self.num_tasks, self._most_search_tasks)
        return len(self.targets) ** 3 <= SAMPLE_COST * num_tasks * self._num_features**3

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

    def tries(self) -> Tensor:
        """The number of samples of each action, see `HeadPosterior`."""
        counts = (self.columns.linear_features(self.inputs) != 0).sum(0).double()
        return counts.where(self.columns.action_columns(), torch.inf)

    def linear_covariances(self) -> Tensor:
        """(I + X_i^T X_i)^-1 of the linear features, [task, linear feature, linear feature]."""
        linear = self.columns.linear_features(self.inputs)
        sums = TaskMoments.of(
            linear, self.tasks, self.targets, self.num_tasks, pseudo_square=self.pseudo_square
        )
        return two_level_posterior(sums, linear.new_ones(linear.shape[1]), 0.0).covariances


def search_scales(samples: TableSamples, start: TableScales) -> TableScales:
    """Raise the log evidence by steps of one scale at a time, until none helps."""
    evidence = samples.evidence()

    def score(scales: TableScales) -> float:
        return evidence(scales) - _prior_cost(scales)

    best, best_score, sweeps = start, score(start), 2
    for _ in range(sweeps):
        before = best
        for step in _steps(samples.columns, start):
            while (changed := step(best)) is not None:
                changed_score = score(changed)
                if not changed_score > best_score + SMALLEST_GAIN:
                    break
                best, best_score = changed, changed_score
        if best == before:
            break
    return best


def _steps(
    columns: TableColumns, start: TableScales
) -> Iterator[Callable[[TableScales], TableScales | None]]:
    """The steps of the search: each maps scales to changed scales, or to None at a limit."""
    names = ["bias"]
    if start.mean_ratio > 0:
        names.append("mean_ratio")
    if columns.num_directions:
        names += ["length", "linear", "fourier"]
    if columns.layout.num_actions:
        names.append("shared")
    if columns.has_pooled:
        names.append("pooled")
    for name in names:
        for direction in (1, -1):
            yield _step(name, direction)


def _step(name: str, direction: int) -> Callable[[TableScales], TableScales | None]:
    def step(scales: TableScales) -> TableScales | None:
        value = getattr(scales, name)
        if name == "shared":
            changed = round(value + direction * SHARED_STEP, 10)
        else:
            changed = value * (LENGTH_FACTOR if name == "length" else FACTOR) ** direction
        low, high = LIMITS[name]
        return replace(scales, **{name: changed}) if low <= changed <= high else None

    return step


def _prior_cost(scales: TableScales) -> float:
    """Minus the log prior of scales, up to a constant."""
    default, cost = TableScales(), 0.0
    for name in (field.name for field in fields(scales)):
        value, usual = getattr(scales, name), getattr(default, name)
        if name == "shared":
            cost += LENGTH_PRIOR * (value - usual) ** 2
        elif value > 0:
            weight = LENGTH_PRIOR if name == "length" else SCALE_PRIOR
            cost += weight * math.log10(value / usual) ** 2
    return cost

"""The fit of tables: features chosen by marginal likelihood, heads around a shared mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from gfucb.estimation.evidence import (
    TaskMoments,
    log_evidence,
    two_level_posterior,
)
from gfucb.estimation.head_covariance import covariance_factor
from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.head_posterior import HeadPosterior, PosteriorFit
from gfucb.models.table_features import TableColumns, TableFeatures, TableScales

# Scales are searched with at least this many samples, and with at most this many.
FEWEST_SEARCH_SAMPLES, MOST_SEARCH_SAMPLES = 4, 3000
# Tasks in a search: their number times feature_dim^3 is at most this, but at least four tasks.
SEARCH_COST, FEWEST_SEARCH_TASKS = 1e8, 4
# A step of the search must raise the log evidence by this much.
SMALLEST_GAIN = 0.1
FACTOR, LENGTH_FACTOR, SHARED_STEP = 4.0, 1.6, 0.2
LIMITS = {
    "bias": (1e-4, 1e9),
    "linear": (1e-4, 1e9),
    "fourier": (1e-4, 1e9),
    "length": (0.05, 10.0),
    "shared": (0.0, 0.8),
    "mean_ratio": (1e-3, 1e3),
}
# The prior of the scales: log evidence falls by this times the squared number of decades between
# a scale and its default. Without it few samples select extreme scales.
SCALE_PRIOR = 2.0
LENGTH_PRIOR = 8.0
# Exploration: linear effects as large as this share of the reward range are considered possible,
# in the sense of LinUCB, and less so after many samples.
EXPLORED_SHARE, EXPLORED_SAMPLES = 0.25, 1000
# The squared radius is the noise variance: intervals of one posterior standard deviation. Arms
# without any context are tried again only because of their bonus. With this factor 8.5% of tasks
# were stuck on a wrong arm instead of 15.8% (twenty tuning seeds), at the same regret.
RADIUS_WITHOUT_CONTEXT = 3.0
# The range of rewards, in standard deviations, if it is not known.
UNKNOWN_RANGE = 4.0


def fit_table(
    inputs: Tensor,
    tasks: Tensor,
    rewards: Tensor,
    *,
    num_tasks: int,
    start: TableFeatures,
    reward_range: float | None,
    generator: torch.Generator,
) -> PosteriorFit:
    """Choose scales by marginal likelihood, starting from `start`, and solve all heads.

    With several tasks, the covariance of their heads is then estimated around these scales.

    Args:
        inputs: [n, column].
        tasks: [n].
        rewards: [n], without outliers.
        num_tasks: M.
        start: standardisation and frequencies, and scales and covariance of the previous fit.
        reward_range: the width of the range of rewards, if it is known.
        generator: selects the samples of the search, if there are too many.
    """
    offset = float(rewards.mean())
    targets = rewards - offset
    spread = float(targets.square().mean().sqrt())
    width = reward_range or UNKNOWN_RANGE * spread or 1.0
    columns, scales = start.columns, start.scales
    if num_tasks == 1:
        scales = replace(scales, mean_ratio=0.0)
    samples = _Samples(inputs, tasks, targets, num_tasks, columns, width**2)
    if len(rewards) >= FEWEST_SEARCH_SAMPLES:
        scales = _search(samples.subset(generator), scales)
    sums, deviations = samples.sums(scales.length), columns.scales(scales)
    factor = None
    if num_tasks > 1:
        # Fourier features of another length are other features.
        known = start.factor if scales.length == start.scales.length else None
        factor = covariance_factor(sums, deviations, scales.mean_ratio, known)
    posterior = two_level_posterior(sums, deviations, scales.mean_ratio, factor)
    share = EXPLORED_SHARE**2 * EXPLORED_SAMPLES / (EXPLORED_SAMPLES + len(rewards))
    explored = share * width**2 / posterior.noise
    factor_of_radius = 1.0 if columns.num_directions else RADIUS_WITHOUT_CONTEXT
    squared_radius = factor_of_radius * posterior.noise
    heads = HeadPosterior(
        CopyOnWriteRows(posterior.covariances),
        posterior.moments,
        posterior.mean,
        posterior.mean_covariance,
        CopyOnWriteRows(samples.linear_covariances()),
        explored / factor_of_radius,
        posterior.noise,
        squared_radius,
        samples.tries(),
    )
    return PosteriorFit(TableFeatures(columns, scales, factor), heads, offset)


def prior_posterior(
    inputs: Tensor, *, num_tasks: int, columns: TableColumns, reward_range: float | None
) -> HeadPosterior:
    """The posterior of no data; `inputs` [n, column] are any inputs."""
    scales = TableScales()
    size = len(columns.scales(scales))
    width = reward_range or 1.0
    noise = (EXPLORED_SHARE * width) ** 2
    ratio = scales.mean_ratio if num_tasks > 1 else 0.0
    return HeadPosterior.empty(
        num_tasks,
        size,
        columns.linear_features(inputs[:1]).shape[1],
        mean_variances=columns.location.new_full((size,), ratio),
        exploration_scale=1.0,
        noise=noise,
    )


@dataclass(frozen=True, eq=False)
class _Samples:
    """The samples of a fit."""

    inputs: Tensor
    tasks: Tensor
    targets: Tensor
    num_tasks: int
    columns: TableColumns
    pseudo_square: float

    def sums(self, length: float) -> TaskMoments:
        """Sums of features with this length scale."""
        features = self.columns.features(self.inputs, length)
        return TaskMoments.of(
            features, self.tasks, self.targets, self.num_tasks, pseudo_square=self.pseudo_square
        )

    def subset(self, generator: torch.Generator) -> _Samples:
        """The tasks with most samples, and a random part of their samples: bounds the search."""
        size = len(self.columns.scales(TableScales()))
        most_tasks = max(FEWEST_SEARCH_TASKS, int(SEARCH_COST / size**3))
        counts = torch.bincount(self.tasks, minlength=self.num_tasks).double()
        keys = counts.cpu() + torch.rand(self.num_tasks, generator=generator, dtype=torch.float64)
        chosen = keys.topk(min(most_tasks, self.num_tasks)).indices.to(self.tasks.device)
        position = self.tasks.new_full((self.num_tasks,), -1)
        position[chosen] = torch.arange(len(chosen), device=self.tasks.device)
        rows = (position[self.tasks] >= 0).nonzero().squeeze(1)
        if len(rows) > MOST_SEARCH_SAMPLES:
            order = torch.randperm(len(rows), generator=generator)[:MOST_SEARCH_SAMPLES]
            rows = rows[order.to(rows.device)]
        return replace(
            self,
            inputs=self.inputs[rows],
            tasks=position[self.tasks[rows]],
            targets=self.targets[rows],
            num_tasks=len(chosen),
        )

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


def _search(samples: _Samples, start: TableScales) -> TableScales:
    """Raise the log evidence by steps of one scale at a time, until none helps."""
    sums: dict[float, TaskMoments] = {}

    def score(scales: TableScales) -> float:
        if scales.length not in sums:
            sums[scales.length] = samples.sums(scales.length)
        evidence = log_evidence(
            sums[scales.length], samples.columns.scales(scales), scales.mean_ratio
        )
        return evidence - _prior_cost(scales)

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

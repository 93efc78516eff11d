"""The search for the scales of table features: larger marginal likelihood, one scale at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import astuple, fields, replace

import torch

from gfucb.core.shards import of_each
from gfucb.estimation.table_samples import TableSamples
from gfucb.models.table_features import TableColumns, TableScales

# Scales are searched with at least this many samples.
FEWEST_SEARCH_SAMPLES = 4
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


def search_subset(
    samples: TableSamples,
    start: TableScales,
    generator: torch.Generator,
    most_samples: int | None = None,
) -> TableScales:
    """`search_scales` of a bounded part of the samples of all shards, the same in all of them."""
    scales = search_scales(samples.subset(generator, most_samples), start)
    if samples.shards.count > 1:
        # All compute the same; of machines that round differently the first one counts.
        scales = TableScales(*of_each(samples.shards, *astuple(scales))[0].tolist())
    return scales


def search_scales(samples: TableSamples, start: TableScales) -> TableScales:
    """Raise the log evidence by steps of one scale at a time, until none helps."""
    evidence = samples.evidence()

    def score(scales: TableScales) -> float:
        return evidence(scales) - _prior_cost(scales, samples.columns.usual_scales)

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


def _prior_cost(scales: TableScales, center: TableScales) -> float:
    """Minus the log prior of scales around the usual ones, up to a constant."""
    cost = 0.0
    for name in (field.name for field in fields(scales)):
        value, usual = getattr(scales, name), getattr(center, name)
        if name == "shared":
            cost += LENGTH_PRIOR * (value - usual) ** 2
        elif value > 0:
            weight = LENGTH_PRIOR if name == "length" else SCALE_PRIOR
            cost += weight * math.log10(value / usual) ** 2
    return cost

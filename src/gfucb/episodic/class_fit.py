"""Fits of latent classes: annealed starts, a warm start, and classes merged where data allow."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import torch

from gfucb.episodic.class_data import ClassData
from gfucb.episodic.class_model import ClassModel, dirichlet_evidence
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.latent_classes import LatentClasses, design_of, standardising

# Classes of an annealed start: more than needed, then merged. With the right number from the
# start, fits end in worse local optima.
FIRST_CLASSES = 8
# Annealed starts in each fit, their steps, and the first temperature.
STARTS = 2
ANNEALING_STEPS = 40
FIRST_TEMPERATURE = 2.5


def fit_classes(
    data: ClassData, previous: LatentClasses | None, generator: torch.Generator
) -> tuple[LatentClasses, ClassModel]:
    """The classes with the highest evidence among an annealed fit and one from the `previous`."""
    center, transform = standardising(data.inputs)
    design = design_of(data.inputs, center, transform)
    noise = None if previous is None else previous.noise
    found = [_annealed(data, design, noise, _most_classes(previous), generator)]
    if previous is not None:
        weights = _moved(previous, center, transform)
        found.append(ClassModel.from_weights(data, design, weights, noise).iterate(30))
    merged = [merge_classes(model.iterate(5)) for model in found]
    best = max(merged, key=lambda model: model.evidence())
    return LatentClasses(center, transform, best.weights, best.noise), best


def _most_classes(previous: LatentClasses | None) -> int:
    known = 0 if previous is None else previous.num_classes
    return max(FIRST_CLASSES, known + 4)


def _moved(previous: LatentClasses, center: Floats, transform: Floats) -> Floats:
    """The weights that give nearly the previous features on another scale of inputs."""
    slopes = np.linalg.lstsq(transform, previous.transform @ previous.weights[:-1], rcond=None)[0]
    shift = (center - previous.center) @ previous.transform @ previous.weights[:-1]
    return np.concatenate([slopes, (previous.weights[-1] + shift)[None]])


def _annealed(
    data: ClassData,
    design: Floats,
    noise: float | None,
    num_classes: int,
    generator: torch.Generator,
) -> ClassModel:
    """The best of several starts from random weights whose shares are flattened at first."""
    size = design.shape[1]
    found = []
    for _ in range(STARTS):
        draws = torch.randn(size, num_classes, generator=generator, dtype=torch.float64)
        model = ClassModel.from_weights(data, design, 2 * draws.numpy() / size**0.5, noise)
        for inverse in np.linspace(1 / FIRST_TEMPERATURE, 1.0, ANNEALING_STEPS):
            model = model.step(1 / float(inverse))
        found.append(model.iterate(5))
    return max(found, key=lambda model: model.evidence()).iterate(20)


def merge_classes(model: ClassModel) -> ClassModel:
    """Merge two classes as long as that does not lower the evidence."""
    evidence = model.evidence()
    while model.num_classes > 2:
        merged = _best_merger(model)
        if merged.evidence() < evidence:
            break
        model, evidence = merged, merged.evidence()
    return model


def _best_merger(model: ClassModel) -> ClassModel:
    """The model without one class, which is merged with the most similar one."""
    data = model.data
    weighted = data.counts[:, None] * model.shares
    outcomes = data.by_outcome(weighted * data.goes_on)
    totals = data.by_group(weighted * data.goes_on)
    log_phi = model.log_features[data.pairs]

    def gain(first: int, second: int) -> float:
        """The change of the part of the evidence that these two classes have."""
        both = [first, second]
        change = dirichlet_evidence(
            outcomes[:, both].sum(1, keepdims=True),
            totals[:, both].sum(1, keepdims=True),
            data.num_next,
        ) - dirichlet_evidence(outcomes[:, both], totals[:, both], data.num_next)
        own, joined = model.shares[:, both], model.shares[:, both].sum(1)
        logs = np.logaddexp(log_phi[:, first], log_phi[:, second])
        change += data.counts @ (joined * (logs - np.log(joined + 1e-300)))
        separate = (own * (log_phi[:, both] - np.log(own + 1e-300))).sum(1)
        return float(change - data.counts @ separate)

    first, second = max(combinations(range(model.num_classes), 2), key=lambda both: gain(*both))
    rest = [index for index in range(model.num_classes) if index not in (first, second)]
    masses = weighted.sum(axis=0)[[first, second]] + 1e-9
    mean = model.weights[:, [first, second]] @ masses / masses.sum()
    shares = model.shares[:, [first, second]].sum(axis=1)
    merged = replace(model, weights=np.column_stack([model.weights[:, rest], mean]))
    both = np.column_stack([model.shares[:, rest], shares])
    return merged.with_shares(both, model.noise, newton_steps=5).iterate(10)

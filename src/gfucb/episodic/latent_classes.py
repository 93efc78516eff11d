"""A representation for linear MDPs: probabilities of latent classes, given the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import LARGEST_COMPUTED
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.episodic.distinct_rows import Floats

# Inputs with more columns are reduced to this number of principal directions.
LARGEST_RANK = 40
SMALLEST_NOISE = 1e-300
# Names of saved tensors.
CENTER, TRANSFORM, WEIGHTS, NOISE = "center", "transform", "weights", "noise"


@dataclass(frozen=True, eq=False)
class LatentClasses:
    """phi(x) = softmax of a linear function of the input, shared by all tasks and stages.

    In a linear MDP, P(s' | s, a) = <phi(s, a), mu(s')>. With phi in the simplex, a pair belongs to
    one of a few latent classes with probabilities phi, and each class has a distribution of next
    states, mu, of its own in every task and stage.

    Attributes:
        center: subtracted from inputs, [column].
        transform: from centered inputs to coordinates of unit variance, [column, coordinate].
        weights: of the coordinates and of a constant, [coordinate + 1, class].
        noise: the variance of rewards within a class.
    """

    center: Floats
    transform: Floats
    weights: Floats
    noise: float

    @property
    def num_classes(self) -> int:
        """The number of features."""
        return int(self.weights.shape[1])

    def features(self, inputs: NDArray[np.generic]) -> Floats:
        """Features of inputs [n, column]: [n, class]."""
        return np.exp(log_softmax(design_of(inputs, self.center, self.transform) @ self.weights))

    def tensors(self) -> dict[str, Tensor]:
        """Named tensors of a saved state."""
        arrays = {CENTER: self.center, TRANSFORM: self.transform, WEIGHTS: self.weights}
        saved = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        return saved | {NOISE: torch.tensor(self.noise, dtype=torch.float64)}

    @classmethod
    def of_tensors(cls, state: Mapping[str, Tensor], num_columns: int) -> LatentClasses:
        """The classes of a saved state, after a check of its tensors."""
        validate_state_names(state, [CENTER, TRANSFORM, WEIGHTS, NOISE])
        transform = _floats(state, TRANSFORM, [num_columns, None])
        center = _floats(state, CENTER, [num_columns])
        weights = _floats(state, WEIGHTS, [transform.shape[1] + 1, None])
        if not weights.shape[1]:
            raise InvalidInputError(f"{WEIGHTS!r} of the state have no class")
        noise = validate_state_tensor(state, NOISE, [], dtype=torch.float64, low=SMALLEST_NOISE)
        return cls(center, transform, weights, float(noise))


def _floats(state: Mapping[str, Tensor], name: str, shape: Sequence[int | None]) -> Floats:
    most = LARGEST_COMPUTED
    found = validate_state_tensor(state, name, shape, dtype=torch.float64, low=-most, high=most)
    return np.asarray(found.numpy().copy())


def standardising(inputs: Floats) -> tuple[Floats, Floats]:
    """The center [column] of inputs [n, column], and a transform to coordinates of unit variance.

    Columns without variance are left out; of many columns, the principal directions are kept.
    """
    center, spread = inputs.mean(axis=0), inputs.std(axis=0)
    varies = np.flatnonzero(spread > 1e-9 * max(1.0, float(np.abs(center).max(initial=0.0))))
    transform = np.zeros((inputs.shape[1], len(varies)))
    transform[varies, np.arange(len(varies))] = 1 / spread[varies]
    if len(varies) > LARGEST_RANK:
        standardised = (inputs - center) @ transform
        values, vectors = np.linalg.eigh(standardised.T @ standardised / len(inputs))
        leading = slice(-1, -LARGEST_RANK - 1, -1)
        scales = np.sqrt(np.maximum(values[leading], 1e-9 * values[-1]))
        transform = transform @ (vectors[:, leading] / scales)
    return center, transform


def design_of(inputs: NDArray[np.generic], center: Floats, transform: Floats) -> Floats:
    """Coordinates of inputs [n, column] and a constant: [n, coordinate + 1]."""
    coordinates = (inputs.astype(np.float64) - center) @ transform
    return np.concatenate([coordinates, np.ones((len(coordinates), 1))], axis=1)


def log_softmax(logits: Floats) -> Floats:
    """Logarithms of the softmax along the last axis."""
    return np.asarray(logits - log_sum(logits)[..., None])


def log_sum(logits: Floats) -> Floats:
    """Logarithms of the sums of exponentials along the last axis."""
    largest = logits.max(axis=-1)
    return np.asarray(largest + np.log(np.exp(logits - largest[..., None]).sum(axis=-1)))

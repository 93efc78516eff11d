"""The joint choice of actions where all tasks also share the uncertainty of the weights."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Up to this many tuples are listed, which is exact; above it, coordinate ascent.
LARGEST_LISTING = 4096
MAX_SWEEPS = 20
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class TangentChoice:
    """max over tuples of  sum mean + sqrt(squared_radius (sum_task |sum own|^2 + |sum shared|^2)).

    Attributes:
        means: [row, action]; minus infinity for unavailable actions.
        own: whitened gradients in the head of the row's task, [row, action, feature].
        shared: whitened gradients in the weights, [row, action, sketch].
        tasks: [row].
    """

    means: Floats
    own: Floats
    shared: Floats
    tasks: Indices
    squared_radius: float

    def __post_init__(self) -> None:
        available = ~np.isneginf(self.means)
        arrays = (self.means[available], self.own[available], self.shared[available])
        if not all(np.isfinite(array).all() for array in arrays):
            raise InvalidInputError(
                "predicted values and gradients must be finite; rewards or inputs are too large, "
                "or the fit has diverged"
            )

    def solve(self, start: Indices) -> tuple[Indices, bool]:
        """The best tuple [row], and whether it is proven to be; ascent begins at `start`."""
        available = [np.flatnonzero(np.isfinite(row)) for row in self.means]
        if np.prod([float(len(actions)) for actions in available]) <= LARGEST_LISTING:
            tuples = [np.array(t, dtype=np.intp) for t in itertools.product(*available)]
            return max(tuples, key=self.value), True
        return self._ascend(start), False

    def value(self, actions: Indices) -> float:
        """The joint value of a tuple [row]."""
        rows = np.arange(len(actions))
        own_sum, shared_sum = self._sums(actions)
        squared = np.square(own_sum).sum() + np.square(shared_sum).sum()
        return float(self.means[rows, actions].sum() + np.sqrt(self.squared_radius * squared))

    def _sums(self, actions: Indices) -> tuple[Floats, Floats]:
        """Sums of the whitened gradients of a tuple: [task, feature] and [sketch]."""
        rows = np.arange(len(actions))
        own_sum = np.zeros((int(self.tasks.max()) + 1, self.own.shape[-1]))
        np.add.at(own_sum, self.tasks, self.own[rows, actions])
        return own_sum, self.shared[rows, actions].sum(0)

    def _ascend(self, start: Indices) -> Indices:
        """Coordinate ascent: change one action at a time while the value increases."""
        actions = start.copy()
        own_sum, shared_sum = self._sums(actions)
        squared_own = float(np.square(own_sum).sum())
        for _ in range(MAX_SWEEPS):
            changed = False
            for row, task in enumerate(self.tasks):
                before = actions[row]
                own_rest = own_sum[task] - self.own[row, before]
                shared_rest = shared_sum - self.shared[row, before]
                others = squared_own - float(np.square(own_sum[task]).sum())
                squared = (
                    others
                    + np.square(own_rest + self.own[row]).sum(-1)
                    + np.square(shared_rest + self.shared[row]).sum(-1)
                )
                values = self.means[row] + np.sqrt(self.squared_radius * squared)
                best = int(values.argmax())
                if values[best] > values[before] + ROUNDING * (1 + abs(values[before])):
                    actions[row], changed = best, True
                    own_sum[task] = own_rest + self.own[row, best]
                    shared_sum = shared_rest + self.shared[row, best]
                    squared_own = others + float(np.square(own_sum[task]).sum())
            if not changed:
                break
        return actions

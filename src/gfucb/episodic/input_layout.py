"""Which columns of inputs describe the observation, and which the action."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfucb.episodic.distinct_rows import Floats

Inputs = NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class InputLayout:
    """How the candidates of an observation are stored.

    Inputs are often an observation, the same for all actions, and a description of the action, the
    same for all observations: `gfucb.with_actions` builds them. An observation is then stored once,
    and not once for every action. Other inputs describe pairs of state and action, and all of them
    are stored.

    Attributes:
        shared: the columns that all actions have in common, [column] of booleans.
        actions: the other columns of each action, [action, column]; None if they differ between
            observations, so that inputs describe pairs.
    """

    shared: NDArray[np.bool_]
    actions: Floats | None

    @classmethod
    def of(cls, candidates: Inputs) -> InputLayout:
        """The layout of flat candidates [row, action, column]."""
        shared = (candidates == candidates[:, :1]).all(axis=(0, 1))
        actions = candidates[0][:, ~shared]
        if not (candidates[:, :, ~shared] == actions).all():
            return cls(shared, None)
        return cls(shared, actions.astype(np.float64))

    @property
    def is_factored(self) -> bool:
        """Whether inputs are an observation and an action."""
        return self.actions is not None

    def accepts(self, candidates: Inputs) -> bool:
        """Whether candidates [row, action, column] have this layout."""
        if self.actions is None:
            return True
        if len(self.actions) != candidates.shape[1]:
            return False
        own = candidates[:, :, ~self.shared]
        same = candidates[:, :, self.shared]
        return bool((own == self.actions).all() and (same == same[:, :1]).all())

    def keys(self, candidates: Inputs) -> Inputs:
        """The vectors that are stored: [row, action, column] -> [row, 1 or action, column]."""
        return candidates if self.actions is None else candidates[:, :1, self.shared]

    def keys_of_inputs(self, inputs: Inputs) -> Inputs:
        """The vectors of chosen inputs: [row, column] -> [row, column]."""
        return inputs if self.actions is None else inputs[:, self.shared]

    def candidates(self, keys: Inputs) -> Inputs:
        """All inputs of stored observations: [row, column] -> [row, action, column]."""
        assert self.actions is not None
        inputs = np.empty((len(keys), len(self.actions), len(self.shared)), dtype=keys.dtype)
        inputs[:, :, self.shared] = keys[:, None]
        inputs[:, :, ~self.shared] = self.actions.astype(keys.dtype)
        return inputs

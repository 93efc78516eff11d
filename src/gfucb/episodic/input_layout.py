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
    same for all observations: `gfucb.with_actions` builds them. Or they are the products of an
    observation and a one-hot action, such as one-hot vectors of (state, action). An observation is
    then stored once, and not once for every action. Other inputs describe pairs of state and
    action, and all of them are stored.

    Attributes:
        shared: the columns that all actions have in common, [column] of booleans.
        actions: the other columns of each action, [action, column]; None if they differ between
            observations, so that inputs describe pairs or are products.
        is_product: whether column s * A + a of an input is column s of the observation for action
            a, and zero for all others.
    """

    shared: NDArray[np.bool_]
    actions: Floats | None
    is_product: bool = False

    @classmethod
    def of(cls, candidates: Inputs) -> InputLayout:
        """The layout of flat candidates [row, action, column]."""
        shared = (candidates == candidates[:, :1]).all(axis=(0, 1))
        actions = candidates[0][:, ~shared]
        if (candidates[:, :, ~shared] == actions).all():
            return cls(shared, actions.astype(np.float64))
        return cls(shared, None, is_product=_are_products(candidates))

    @property
    def is_factored(self) -> bool:
        """Whether inputs are an observation and an action."""
        return self.actions is not None or self.is_product

    def accepts(self, candidates: Inputs) -> bool:
        """Whether candidates [row, action, column] have this layout."""
        if self.is_product:
            return _are_products(candidates)
        if self.actions is None:
            return True
        if len(self.actions) != candidates.shape[1]:
            return False
        own = candidates[:, :, ~self.shared]
        same = candidates[:, :, self.shared]
        return bool((own == self.actions).all() and (same == same[:, :1]).all())

    def keys(self, candidates: Inputs) -> Inputs:
        """The vectors that are stored: [row, action, column] -> [row, 1 or action, column]."""
        if self.is_product:
            return candidates[:, :1, :: candidates.shape[1]]
        return candidates if self.actions is None else candidates[:, :1, self.shared]

    def keys_of_inputs(self, inputs: Inputs, num_actions: int) -> Inputs:
        """The vectors of chosen inputs: [row, column] -> [row, column]."""
        if self.is_product:
            return np.asarray(inputs.reshape(len(inputs), -1, num_actions).sum(axis=2))
        return inputs if self.actions is None else inputs[:, self.shared]

    def key_length(self, num_actions: int) -> int:
        """The number of columns of the stored vectors."""
        if self.is_product:
            return len(self.shared) // num_actions
        return len(self.shared) if self.actions is None else int(self.shared.sum())

    def candidates(self, keys: Inputs, num_actions: int) -> Inputs:
        """All inputs of stored observations: [row, column] -> [row, action, column]."""
        assert self.is_factored
        inputs = np.zeros((len(keys), num_actions, len(self.shared)), dtype=keys.dtype)
        if self.actions is None:
            for action in range(num_actions):
                inputs[:, action, action::num_actions] = keys
            return inputs
        inputs[:, :, self.shared] = keys[:, None]
        inputs[:, :, ~self.shared] = self.actions.astype(keys.dtype)
        return inputs


def _are_products(candidates: Inputs) -> bool:
    """Whether candidates [row, action, column] are products of observation and one-hot action."""
    rows, number, length = candidates.shape
    if number < 2 or length % number or length == number:
        return False
    blocks = candidates.reshape(rows, number, -1, number)
    own = np.stack([blocks[:, action, :, action] for action in range(number)], axis=1)
    others = blocks[:, ~np.eye(number, dtype=bool)[:, None].repeat(blocks.shape[2], axis=1)]
    return bool((own == own[:, :1]).all() and not others.any())

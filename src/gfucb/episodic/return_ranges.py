"""Bounds of values, and the sums of rewards that were observed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from gfucb.core.records import Transitions
from gfucb.core.validation.settings import LARGEST_COMPUTED
from gfucb.core.validation.states import validate_state_tensor
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.episodic_settings import Range

# Names of saved tensors.
SUMS, OBSERVED = "return_sums", "return_range"
NOTHING = np.array([1.0, -1.0]) * LARGEST_COMPUTED


class ReturnRanges:
    """The bounds of values in each stage, widened to the sums of rewards that were observed.

    Args:
        num_tasks: M.
        given: bounds of the values of each stage, [stage]; None where nothing is known.

    Attributes:
        sums: of the rewards of the running episode of each task, [task].
        observed: the smallest and the largest sum of an episode so far, [2]; (largest float,
            smallest float) before the first.
    """

    def __init__(self, num_tasks: int, given: Sequence[Range | None]) -> None:
        self.given = tuple(given)
        self.sums: Floats = np.zeros(num_tasks)
        self.observed: Floats = NOTHING.copy()
        self._used: Floats = NOTHING.copy()
        self._has_warned = False

    def use(self) -> None:
        """Take the sums so far into account, until the next call."""
        self._used = self.observed

    def state(self) -> dict[str, Tensor]:
        """What was observed, as named tensors."""
        observed = np.concatenate([self.observed, self._used])
        return {SUMS: torch.from_numpy(self.sums.copy()), OBSERVED: torch.from_numpy(observed)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a saved state."""
        most = LARGEST_COMPUTED
        sums = validate_state_tensor(
            state, SUMS, [len(self.sums)], dtype=torch.float64, low=-most, high=most
        )
        observed = validate_state_tensor(
            state, OBSERVED, [4], dtype=torch.float64, low=-most, high=most
        )
        self.sums, both = sums.numpy().copy(), observed.numpy().copy()
        self.observed, self._used = both[:2], both[2:]

    def of(self, stage: int) -> Range:
        """The bounds of the values of a stage."""
        whole, own = self.given[0], self.given[stage]
        if whole is None or own is None:
            low, high = self._used.tolist()
            return (low, high) if high > low else (0.0, 1.0)
        below = max(0.0, whole[0] - float(self._used[0]))
        above = max(0.0, float(self._used[1]) - whole[1])
        return own[0] - below, own[1] + above

    def add(self, stage: int, transitions: Transitions) -> None:
        """Add the rewards of a stage; warn once if a sum contradicts the given range."""
        tasks = np.array(transitions.tasks, dtype=np.int64)
        if stage == 0:
            self.sums[tasks] = 0.0
        np.add.at(self.sums, tasks, transitions.rewards)
        whole = self.sums[tasks[transitions.ended]]
        if not len(whole):
            return
        low, high = float(whole.min()), float(whole.max())
        self.observed = np.array([min(self.observed[0], low), max(self.observed[1], high)])
        self._warn(low, high)

    def _warn(self, low: float, high: float) -> None:
        given = self.given[0]
        if given is None or self._has_warned:
            return
        # Noise may exceed bounds of expected sums a little.
        margin = 0.5 * (given[1] - given[0])
        if low < given[0] - margin or high > given[1] + margin:
            self._has_warned = True
            warnings.warn(
                f"the rewards of an episode sum to {low if low < given[0] else high:g}, but "
                f"value_range, the bounds of the *sum* of the rewards of an episode, is "
                f"[{given[0]:g}, {given[1]:g}]; give value_range=(lowest, highest sum). Until "
                "then the agent uses the range of the sums it has observed",
                UserWarning,
                stacklevel=6,  # the caller of EpisodicGFUCB.observe
            )

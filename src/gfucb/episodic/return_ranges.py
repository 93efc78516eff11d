"""Bounds of values, and the sums of rewards that were observed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import GFUCBWarning
from gfucb.core.records import Transitions
from gfucb.core.validation.settings import LARGEST_COMPUTED
from gfucb.core.validation.states import validate_state_tensor
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.episodic_settings import Range

# Names of saved tensors.
SUMS, OBSERVED, BEFORE = "return_sums", "return_range", "sums_before_stages"
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
        before: the smallest and the largest sum of the rewards before each stage, [stage, 2].
    """

    def __init__(self, num_tasks: int, given: Sequence[Range | None]) -> None:
        self.given = tuple(given)
        self.sums: Floats = np.zeros(num_tasks)
        self.observed: Floats = NOTHING.copy()
        self.before: Floats = np.tile(NOTHING, (len(self.given), 1))
        self._used: Floats = NOTHING.copy()
        self._used_before = self.before.copy()
        self._has_warned = False

    def use(self) -> None:
        """Take the sums so far into account, until the next call."""
        self._used, self._used_before = self.observed, self.before.copy()

    def state(self) -> dict[str, Tensor]:
        """What was observed, as named tensors."""
        observed = np.concatenate([self.observed, self._used])
        before = np.stack([self.before, self._used_before])
        return {
            SUMS: torch.from_numpy(self.sums.copy()),
            OBSERVED: torch.from_numpy(observed),
            BEFORE: torch.from_numpy(before),
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a saved state."""
        most = LARGEST_COMPUTED
        sums = validate_state_tensor(
            state, SUMS, [len(self.sums)], dtype=torch.float64, low=-most, high=most
        )
        observed = validate_state_tensor(
            state, OBSERVED, [4], dtype=torch.float64, low=-most, high=most
        )
        before = validate_state_tensor(
            state, BEFORE, [2, len(self.given), 2], dtype=torch.float64, low=-most, high=most
        )
        self.sums, both = sums.numpy().copy(), observed.numpy().copy()
        self.observed, self._used = both[:2], both[2:]
        self.before, self._used_before = before.numpy().copy()

    def of(self, stage: int) -> Range:
        """The bounds of the values of a stage."""
        low, high = self._of_sums(stage)
        if stage == 0 or low <= 0 <= high:
            return low, high
        # Sums of whole episodes that exclude 0 do not bound what is left of an episode.
        if low > 0:
            return 0.0, high
        least, most = self._used_before[stage].tolist()
        if most >= 0 or most < least:
            return low, 0.0
        return low - most, min(0.0, high - least)

    def _of_sums(self, stage: int) -> Range:
        """The range that was given for a stage, widened by the sums of whole episodes."""
        whole, own = self.given[0], self.given[stage]
        low, high = self._used.tolist()
        if whole is None or own is None:
            return (low, high) if high > low else (0.0, 1.0)
        if low <= high < whole[0]:  # sums in another unit: the given range says nothing
            return low, high + max(high - low, whole[1] - whole[0])
        return own[0] - max(0.0, whole[0] - low), own[1] + max(0.0, high - whole[1])

    def add(self, stage: int, transitions: Transitions) -> None:
        """Add the rewards of a stage; warn once if a sum contradicts the given range."""
        tasks = np.array(transitions.tasks, dtype=np.int64)
        if stage == 0:
            self.sums[tasks] = 0.0
        np.add.at(self.sums, tasks, transitions.rewards)
        left = self.sums[tasks[~transitions.ended]]
        if len(left) and stage + 1 < len(self.before):
            least, most = self.before[stage + 1]
            self.before[stage + 1] = min(least, left.min()), max(most, left.max())
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
            named = high if high > given[1] + margin else low
            warnings.warn(
                f"the rewards of an episode sum to {named:g}, but "
                f"value_range, the bounds of the *sum* of the rewards of an episode, is "
                f"[{given[0]:g}, {given[1]:g}]; give value_range=(lowest, highest sum). Until "
                "then the agent uses the range of the sums it has observed",
                GFUCBWarning,
                stacklevel=6,  # the caller of EpisodicGFUCB.observe
            )

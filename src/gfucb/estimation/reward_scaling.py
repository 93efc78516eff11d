"""How an agent finds the scale of its rewards: stated by the user, estimated, or not used."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from gfucb.core.errors import GFUCBWarning, InvalidInputError
from gfucb.core.shards import ONE_SHARD, Shards, in_any, largest, totals
from gfucb.core.validation.settings import validate_offset, validate_pair
from gfucb.estimation.reward_scale import FEWEST_REWARDS, RewardScale

# A stated range is wrong if more than this share of rewards are on one side of it, or if all are so
# many times its width away on one side.
ONE_SIDED, FAR = 0.8, 10.0
AUTO: Literal["auto"] = "auto"
ValueRange = tuple[float, float] | Literal["auto"] | None


@dataclass(frozen=True)
class RewardScaling:
    """The settings of the scale of rewards.

    Args:
        value_range: the range of expected rewards; "auto" estimates it from the rewards; None uses
            rewards as they are and clips nothing.
        offset: the location; by default the middle of the range, and 0 without a range.
    """

    value_range: ValueRange = AUTO
    offset: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value_range", _validate_value_range(self.value_range))
        if self.offset is not None:
            object.__setattr__(self, "offset", validate_offset(self.offset))

    @property
    def stated_range(self) -> tuple[float, float] | None:
        """The range, if the user knows it."""
        return self.value_range if isinstance(self.value_range, tuple) else None

    @property
    def is_estimated(self) -> bool:
        """Whether location and scale are estimated from the rewards."""
        return self.value_range == AUTO

    @property
    def is_located(self) -> bool:
        """Whether the location is known before any reward."""
        return not self.is_estimated or self.offset is not None

    def initial(self) -> RewardScale:
        """The scale before any reward."""
        if isinstance(self.value_range, tuple):
            return RewardScale.of_range(self.value_range, self.offset)
        return RewardScale(0.0 if self.offset is None else self.offset)

    def estimated(self, rewards: Tensor, shards: Shards = ONE_SHARD) -> RewardScale:
        """The scale after rewards [n], n >= 1. Only an estimated one has another location."""
        if self.value_range is None:
            return self.initial()
        if self.is_estimated:
            return RewardScale.estimated(rewards, self.offset, shards)
        return self.initial().covering(rewards, shards)

    def reported_range(self, scale: RewardScale) -> tuple[float, float] | None:
        """The range to which reported values are clipped; None if they are not."""
        return scale.value_range if self.is_estimated else self.stated_range

    def after(
        self,
        scale: RewardScale,
        rewards: Tensor,
        num_old: int,
        *,
        is_due: bool = False,
        shards: Shards = ONE_SHARD,
    ) -> tuple[RewardScale, bool]:
        """The scale after new rewards, and whether the targets of old samples change with it.

        `rewards` [n] are all rewards so far, of which `num_old` came before the new ones. Most
        rewards are within the limits, and the scale stays until the next fit, unless a new estimate
        `is_due`. Of rewards outside the limits, outliers are clipped, and others, such as the third
        large reward, change scale and limits, but not the location. With several shards all rewards
        are those of a shard, and the result is that of all.
        """
        old, new = rewards[:num_old], rewards[num_old:]
        num_before, num_outdated = totals(shards, num_old, float(scale.is_outdated_by(new)))
        if num_before == 0:
            return self.estimated(rewards, shards), False
        is_due = is_due and self.is_estimated
        if not is_due and not num_outdated:
            return scale, False
        found = self.estimated(rewards, shards)
        if not is_due:  # another location would cost a pass over the data
            found = replace(found, location=scale.location)
        outside = new[scale.is_outside(new)]
        num_outside, num_still = totals(shards, len(outside), int(found.is_outside(outside).sum()))
        if not is_due and num_outside and num_still == num_outside:
            return scale, False
        is_moved = found.location != scale.location
        is_clipped = in_any(shards, not torch.equal(found.clip(old), scale.clip(old)))
        return found, is_moved or is_clipped

    def tensors(self, scale: RewardScale) -> dict[str, Tensor]:
        """What a state must hold of the scale: nothing if it is always the same."""
        return {} if self.value_range is None else scale.tensors()

    def restored(
        self, tensors: Mapping[str, Tensor], rewards: Tensor | None, shards: Shards = ONE_SHARD
    ) -> RewardScale:
        """The scale with these `tensors`; one that cannot be that of rewards [n] is refused.

        Rewards are None if the scale is also that of rewards that are no longer stored.
        """
        known = self.initial()
        if self.value_range is None:
            return known
        scale = RewardScale.restored(tensors)
        if self.is_estimated:
            known_range = (-math.inf, math.inf) if rewards is None else _range_of(rewards, shards)
            lowest, highest = known_range
            expected = RewardScale.of_rewards_in(scale.low, scale.high, scale.location)
            is_possible = scale == expected and lowest <= scale.low and scale.high <= highest
            is_possible &= self.offset is not None or lowest <= scale.location <= highest
        else:
            is_possible = scale.scale == known.scale
            is_possible &= scale.low <= known.low and known.high <= scale.high
        if not is_possible or (self.is_located and scale.location != known.location):
            raise InvalidInputError(
                f"'reward_scale' of the state does not follow from its rewards: {scale}. "
                "The state was changed"
            )
        return scale

    def warn(self, rewards: Tensor, num_new: int, limits: tuple[float, float] | None) -> bool:
        """Give the `warning`, if there is one, at the line that called this library."""
        message = self.warning(rewards, num_new, limits)
        if message is not None:
            warnings.warn(message, GFUCBWarning, stacklevel=_level_of_caller())
        return message is not None

    def warning(
        self, rewards: Tensor, num_new: int, limits: tuple[float, float] | None
    ) -> str | None:
        """What does not agree with a stated range; None if nothing, or if no range is stated.

        Args:
            rewards: all rewards so far, [n].
            num_new: how many of them, at the end, are new.
            limits: outside of which there are outliers; None if there are none.
        """
        if not isinstance(self.value_range, tuple):
            return None
        if limits is None and not self._is_contradicted_by(rewards, num_new):
            return None
        low, high = self.value_range
        seen = (
            f"rewards between {float(rewards.min()):g} and {float(rewards.max()):g} were observed "
            f"with value_range=({low:g}, {high:g})"
        )
        if limits is None:
            return (
                f"{seen}; nearly all are outside. Pass the range of expected rewards, or "
                "value_range='auto', which estimates it"
            )
        return (
            f"{seen}; those outside [{limits[0]:g}, {limits[1]:g}] are far from all others and "
            "count as the smallest or the largest of those. If such rewards are expected, pass a "
            "value_range that contains them"
        )

    def _is_contradicted_by(self, rewards: Tensor, num_new: int) -> bool:
        """Whether nearly all rewards are on one side of the stated range, or the first are far."""
        assert isinstance(self.value_range, tuple)  # `warning` has checked it
        low, high = self.value_range
        new = rewards[-num_new:]
        distance = float(torch.maximum(low - new, new - high).max())
        if distance <= 0:
            return False
        if len(rewards) < FEWEST_REWARDS:
            nearest = max(float(rewards.min()) - high, low - float(rewards.max()))
            return nearest > FAR * (high - low)
        # Noise of any size is above the range at most as often as not, and below it too.
        larger_side = max(int((rewards > high).sum()), int((rewards < low).sum()))
        return larger_side > ONE_SIDED * len(rewards)


def _level_of_caller() -> int:
    """How many frames above the function that calls this the first one outside the library is.

    Agents call learners through decorators and wrappers, in more than one way.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_internal(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _is_internal(module: str) -> bool:
    return module == "contextlib" or module.split(".")[0] == "gfucb"


def _validate_value_range(value_range: Any) -> ValueRange:
    if value_range is None or (isinstance(value_range, str) and value_range == AUTO):
        return value_range
    if isinstance(value_range, str):
        raise InvalidInputError(
            f'value_range must be (low, high), "auto" or None, got {value_range!r}'
        )
    return validate_pair(value_range, "value_range")


def _range_of(rewards: Tensor, shards: Shards) -> tuple[float, float]:
    """The smallest and the largest of the rewards [n] of all shards."""
    if shards.count == 1:
        return float(rewards.min()), float(rewards.max())
    ends = (-float(rewards.min()), float(rewards.max())) if len(rewards) else (-math.inf, -math.inf)
    low, high = largest(shards, *ends)
    return -low, high

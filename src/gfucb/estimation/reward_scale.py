"""Location, scale and limits of rewards: given by a known range, or estimated robustly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.shards import ONE_SHARD, Shards, totals
from gfucb.core.validation.settings import LARGEST_REWARD
from gfucb.core.validation.states import validate_state_tensor

# So many of the smallest and so many of the largest rewards can be outliers. One more reward of
# this size is a rare reward, which counts fully.
MOST_OUTLIERS = 2
# Outliers are farther from all other rewards than this many times the range of those.
FAR = 10.0
# With fewer rewards none is an outlier: too few others to compare with.
FEWEST_REWARDS = 20
# Rewards that differ by less than this share of their size are equal up to rounding.
ROUNDING = 1e-12
# Squares of smaller numbers underflow.
SMALLEST_SCALE = 1e-100
# The scale of rewards that are all equal. Standardised, they are zero with any scale.
SCALE_OF_EQUAL_REWARDS = 1.0
STATE_NAME = "reward_scale"


@dataclass(frozen=True)
class RewardScale:
    """Where rewards lie, as a value: standardised rewards are (clipped reward - location) / scale.

    Rewards farther than one width (high - low) outside [low, high] are clipped to [low, high], so
    an outlier has the influence of a usual reward. All other rewards do not change.

    Attributes:
        location: the value that becomes 0.
        scale: the distance that becomes 1, > 0.
        low: the smallest reward that is no outlier, or less; -inf if nothing is clipped.
        high: the largest reward that is no outlier, or more; inf if nothing is clipped.
    """

    location: float = 0.0
    scale: float = 1.0
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        is_located = math.isfinite(self.location) and self.low <= self.high
        if not (is_located and SMALLEST_SCALE <= self.scale < math.inf):
            raise InvalidInputError(
                "a reward scale needs a finite location, a positive finite scale and low <= high, "
                f"got {self}"
            )

    @classmethod
    def of_range(
        cls, value_range: tuple[float, float], location: float | None = None
    ) -> RewardScale:
        """The scale 1 of a known range of expected rewards; by default located in its middle."""
        low, high = value_range
        return cls((low + high) / 2 if location is None else location, 1.0, low, high)

    @classmethod
    def estimated(
        cls, rewards: Tensor, location: float | None = None, shards: Shards = ONE_SHARD
    ) -> RewardScale:
        """The scale of rewards [n], n >= 1: the middle and the width of their `robust_range`.

        With a rewards + b, a > 0, the standardised rewards are the same up to rounding. All equal
        rewards have the scale `SCALE_OF_EQUAL_REWARDS`.
        """
        return cls.of_rewards_in(*robust_range(rewards, shards), location)

    @classmethod
    def of_rewards_in(cls, low: float, high: float, location: float | None = None) -> RewardScale:
        """The scale of rewards whose robust range is [low, high]."""
        scale = SCALE_OF_EQUAL_REWARDS if _are_equal(low, high) else high - low
        return cls(low + (high - low) / 2 if location is None else location, scale, low, high)

    @property
    def width(self) -> float:
        """High - low; 0 for rewards that are equal up to rounding."""
        return 0.0 if _are_equal(self.low, self.high) else self.high - self.low

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest reward that are not clipped."""
        if self.width == 0:  # nothing is known yet about rewards that differ
            return -math.inf, math.inf
        return self.low - self.width, self.high + self.width

    @property
    def value_range(self) -> tuple[float, float] | None:
        """(low, high), if both are finite and differ."""
        return (self.low, self.high) if 0 < self.width < math.inf else None

    def is_outside(self, rewards: Tensor) -> Tensor:
        """Which rewards are clipped: [n] -> [n], booleans."""
        low, high = self.limits
        return (rewards < low) | (rewards > high)

    def clip(self, rewards: Tensor) -> Tensor:
        """Rewards, with those outside the `limits` clipped to [low, high]."""
        if self.width in (0, math.inf):
            return rewards
        return torch.where(self.is_outside(rewards), rewards.clamp(self.low, self.high), rewards)

    def standardise(self, rewards: Tensor) -> Tensor:
        """(clipped rewards - location) / scale."""
        return (self.clip(rewards) - self.location) / self.scale

    def restore(self, standardised: Tensor) -> Tensor:
        """Location + scale * standardised: the inverse of `standardise`, without clipping."""
        return self.location + self.scale * standardised

    @property
    def known_range(self) -> tuple[float, float]:
        """The `limits`, or all rewards so far if they are equal; others need a new estimate."""
        return self.limits if self.width > 0 else (self.low, self.high)

    def is_outdated_by(self, rewards: Tensor) -> bool:
        """Whether some of new rewards [n] are outside the `known_range`."""
        low, high = self.known_range
        return bool(((rewards < low) | (rewards > high)).any())

    def covering(self, rewards: Tensor, shards: Shards = ONE_SHARD) -> RewardScale:
        """The same location and scale; [low, high] also contains the robust range of rewards [n].

        Noise makes rewards leave the range of their expectations; it is not clipped.
        """
        low, high = robust_range(rewards, shards)
        return replace(self, low=min(self.low, low), high=max(self.high, high))

    def tensors(self) -> dict[str, Tensor]:
        """The four numbers, for saving."""
        numbers = [self.location, self.scale, self.low, self.high]
        return {STATE_NAME: torch.tensor(numbers, dtype=torch.float64)}

    @classmethod
    def restored(cls, tensors: Mapping[str, Tensor]) -> RewardScale:
        """The scale with these `tensors`, checked."""
        largest = 2 * LARGEST_REWARD  # the scale of rewards of both signs
        saved = validate_state_tensor(
            tensors, STATE_NAME, (4,), dtype=torch.float64, low=-largest, high=largest
        )
        try:
            return cls(*saved.tolist())
        except InvalidInputError as error:
            raise InvalidInputError(f"{STATE_NAME!r} of the state: {error}") from error


def robust_range(rewards: Tensor, shards: Shards = ONE_SHARD) -> tuple[float, float]:
    """The smallest and the largest of rewards [n], n >= 1, without far outliers.

    Set aside the two smallest and the two largest rewards. Those of them that are farther from the
    others than ten times the range of the others are outliers. So a rare large reward is an outlier
    the first two times, and counts from the third time on. There are no outliers among fewer than
    20 rewards, nor if the others are all equal: among zeros a first 1 is a reward. With several
    shards the rewards are those of all.
    """
    count = MOST_OUTLIERS + 1
    (num_rewards,) = totals(shards, len(rewards))
    if shards.count > 1:
        rewards = shards.gather(_extremes(rewards, count))
    if num_rewards < FEWEST_REWARDS:
        return float(rewards.min()), float(rewards.max())
    smallest = rewards.topk(count, largest=False).values.tolist()
    largest = rewards.topk(count).values.tolist()
    inner_low, inner_high = smallest[-1], largest[-1]
    if _are_equal(inner_low, inner_high):
        return smallest[0], largest[0]
    reach = FAR * (inner_high - inner_low)
    low = min(reward for reward in smallest if reward >= inner_low - reach)
    high = max(reward for reward in largest if reward <= inner_high + reach)
    return low, high


def _extremes(rewards: Tensor, count: int) -> Tensor:
    """The `count` smallest and the `count` largest of rewards [n]; all, if they are few."""
    if len(rewards) <= 2 * count:
        return rewards
    ordered = [rewards.topk(count, largest=is_largest).values for is_largest in (False, True)]
    return torch.cat(ordered)


def _are_equal(low: float, high: float) -> bool:
    """Whether two rewards are equal up to rounding; infinite limits are not."""
    rounding = max(ROUNDING * max(abs(low), abs(high)), SMALLEST_SCALE)
    return math.isfinite(rounding) and high - low <= rounding

"""Time limits of rewards: after them a default reward is learned, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from gfucb.core.errors import InvalidInputError
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.log_records import RowChange, RowStatus
from gfucb.core.validation.arrays import validate_rewards
from gfucb.core.validation.settings import validate_number
from gfucb.serving.rewards import LogRow, states_of


@dataclass(frozen=True)
class TimeLimit:
    """A decision without a reward is closed after so many seconds; None never closes it.

    Attributes:
        seconds: positive.
        default_reward: learned from closed rows; None learns nothing.
    """

    seconds: float | None = None
    default_reward: float | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None:
            validate_number(self.seconds, "reward_limit, in seconds,", above=0.0)
        if self.default_reward is not None:
            try:
                reward = float(validate_rewards([self.default_reward], 1)[0]) + 0.0
            except InvalidInputError:
                raise InvalidInputError(
                    f"default_reward must be a number that can be a reward, or None to learn "
                    f"nothing, got {self.default_reward!r}"
                ) from None
            object.__setattr__(self, "default_reward", reward)
            if self.seconds is None:
                raise InvalidInputError("a default_reward needs a reward_limit in seconds")

    def first_overdue(self, log: DecisionStore, count: int) -> list[LogRow]:
        """The first rows of a log that are past the limit, at most so many."""
        if self.seconds is None:
            return []
        return log.open_rows(log.clock() - self.seconds, count)

    def overdue_among(self, rows: Sequence[LogRow], log: DecisionStore) -> list[LogRow]:
        """Those of the rows that are past the limit."""
        if self.seconds is None:
            return []
        latest, decision_of = log.clock() - self.seconds, cache(log.decision)
        late = [
            (number, row)
            for number, row in dict.fromkeys(rows)
            if (decision := decision_of(number)) is not None and decision.time <= latest
        ]
        states = states_of(late, log)
        return [(number, row) for number, row in late if states[number][row][0] == RowStatus.OPEN]

    def changes(self, rows: Sequence[LogRow]) -> list[RowChange]:
        """What happens to rows that are past the limit."""
        if self.default_reward is None:
            return [RowChange(*row, RowStatus.EXPIRED) for row in rows]
        return [RowChange(*row, RowStatus.DEFAULT, self.default_reward) for row in rows]

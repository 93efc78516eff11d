"""Records of a decision log: decisions with their rows, and the events that change an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor


class RowStatus(IntEnum):
    """What is known of the reward of a row."""

    OPEN = 0
    REWARDED = 1
    DEFAULT = 2  # the time limit has passed, and the default reward was learned
    EXPIRED = 3  # the time limit has passed, and nothing was learned
    INACTIVE = 4  # the decision was never shown


@dataclass(frozen=True)
class LoggedRow:
    """One row of a decision: what was chosen and what was predicted.

    Attributes:
        row: its position in the decision.
        task: the number of the task.
        action: the position of the chosen action among those offered.
        probability: the probability with which it was chosen.
        optimistic_value: clipped to the value range.
        mean: the predicted mean; None if nothing was predicted, and so the next three.
        variance: of squared radius 1.
        low: the lower end of the predicted interval.
        high: its upper end.
    """

    row: int
    task: int
    action: int
    probability: float
    optimistic_value: float
    mean: float | None
    variance: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False)
class LoggedDecision:
    """A decision with all that was offered.

    Attributes:
        number: counts decisions in the log, from 1.
        session: the event with which the deciding process opened the log.
        event: the last event that the agent had learned from: the version of the model.
        time: seconds since 1970.
        offered: [row, action, *input], or [action, *input] if `is_shared`.
        is_shared: whether all rows chose from one catalogue.
        available: [row, action], or None if all actions were.
        action_names: the encoded names of the actions, if they have names.
        rows: in order.
        action_probabilities: with which all actions were drawn, [row, action]; None if the choice
            was not random.
        monte_carlo_samples: that estimate the probabilities; None if they are exact.
    """

    number: int
    session: int
    event: int
    time: float
    offered: Tensor
    is_shared: bool
    available: Tensor | None
    action_names: tuple[str, ...] | None
    rows: tuple[LoggedRow, ...]
    action_probabilities: Tensor | None = None
    monte_carlo_samples: int | None = None

    @property
    def candidates(self) -> Tensor:
        """What was offered, [row, action, *input]."""
        if not self.is_shared:
            return self.offered
        return self.offered.expand(len(self.rows), *self.offered.shape)

    @property
    def mask(self) -> Tensor:
        """Which actions were available, [row, action]."""
        if self.available is not None:
            return self.available
        return torch.ones(self.candidates.shape[:2], dtype=torch.bool)


@dataclass(frozen=True)
class RowChange:
    """A reward, or another change of status, of one row of a decision."""

    decision: int
    row: int
    status: RowStatus
    reward: float | None = None


@dataclass(frozen=True)
class LogEvent:
    """A change of the agent: rewards, tasks, a fit.

    Attributes:
        number: counts events in the log, from 1; events are applied in this order.
        time: seconds since 1970.
        kind: such as "observe".
        detail: of this kind, in the types of JSON.
        changes: of rows, in the order in which they are learned.
    """

    number: int
    time: float
    kind: str
    detail: Mapping[str, Any]
    changes: tuple[RowChange, ...] = ()

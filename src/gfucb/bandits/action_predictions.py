"""What an agent predicts of all actions, with names and as rows of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gfucb.core.optional_packages import optional_package

# Numbers of a prediction, in the order of the columns of a table.
NUMBERS = ("mean", "lower", "upper", "head_share", "shared_share", "exploration_share")


@dataclass(frozen=True, eq=False, repr=False)
class ActionPredictions:
    """Mean, interval and sources of uncertainty of every action; made by `predict`.

    Intervals are those of the confidence set at each action, the ones by which the agent explores;
    with one task and one-hot actions in a context, it explores less near the top of a stated range.
    Nothing is clipped to the value range. Before the first reward, if the scale of rewards is not
    stated, means and intervals are NaN: nothing is known. So are numbers of actions that are not
    available.

    Attributes:
        tasks: the number or the name of the task of each row.
        actions: positions of the actions among those offered, [row, action].
        action_names: of all actions offered; None if they have none.
        available: [row, action], booleans.
        mean: [row, action].
        lower: the lower end of the interval, [row, action].
        upper: its upper end, [row, action].
        head_share: the share of the variance that is due to the head of the task, [row, action].
        shared_share: the share due to what all tasks share: the mean of all heads, or the weights
            of a network if the action selector includes them, [row, action].
        exploration_share: the share due to effects that the model of a table has not seen, and to
            actions that were tried too rarely, [row, action]. The three shares sum to 1.
        is_greedy: whether the action has the largest mean of its row, [row, action]; all False if
            nothing is known, and None if not all actions of the rows are known.
    """

    tasks: tuple[Any, ...]
    actions: Tensor
    action_names: tuple[Any, ...] | None
    available: Tensor
    mean: Tensor
    lower: Tensor
    upper: Tensor
    head_share: Tensor
    shared_share: Tensor
    exploration_share: Tensor
    is_greedy: Tensor | None

    def __len__(self) -> int:
        return len(self.tasks)

    def __repr__(self) -> str:
        return f"ActionPredictions({len(self)} rows, {self.actions.shape[1]} actions)"

    def taken(self, rows: Sequence[int]) -> ActionPredictions:
        """The predictions of some rows."""
        index = torch.tensor(list(rows))
        numbers = {name: getattr(self, name)[index] for name in (*NUMBERS, "actions", "available")}
        greedy = None if self.is_greedy is None else self.is_greedy[index]
        tasks = tuple(self.tasks[row] for row in rows)
        return replace(self, tasks=tasks, is_greedy=greedy, **numbers)

    def positions(self) -> list[tuple[int, int]]:
        """The row and the column of every available action."""
        return [(row, column) for row, column in self.available.nonzero().tolist()]

    def action_row(self, row: int, column: int) -> dict[str, Any]:
        """One action in the types of JSON; numbers that are not known are None."""
        action = int(self.actions[row, column])
        names = {} if self.action_names is None else {"action_name": self.action_names[action]}
        numbers = {name: number_or_none(getattr(self, name)[row, column]) for name in NUMBERS}
        greedy = None if self.is_greedy is None else bool(self.is_greedy[row, column])
        return {"action": action, **names, **numbers, "is_greedy": greedy}

    def rows(self) -> list[dict[str, Any]]:
        """One dict for each available action, for `pandas.DataFrame` or JSON."""
        return [
            {"row": row, "task": self.tasks[row], **self.action_row(row, column)}
            for row, column in self.positions()
        ]

    def table(self) -> Any:
        """The rows as a data frame; needs pandas."""
        return optional_package("pandas", "table()").DataFrame(self.rows())


def plain_values(value: Any) -> Any:
    """Nested dicts and lists in the types of JSON; names of other types, such as dates, as text."""
    if isinstance(value, dict):
        return {name: plain_values(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(part) for part in value]
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def number_or_none(value: Tensor | float) -> float | None:
    """The number in the types of JSON, which has no NaN."""
    number = float(value)
    return number if math.isfinite(number) else None
